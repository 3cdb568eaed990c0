//! What cannot work is said at once and in full.

use anyhow::Result;
use serde_json::json;
use support::lab;

use super::scene::{Scene, condition, holds};
use crate::kit::process::{Process, product};

#[tokio::test]
async fn a_run_that_breaks_rules_fails_with_all_of_them() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let run = scene
        .run(
            "wrong",
            json!({"secrets": [" "], "runtime": {"type": "job", "config": {"backoffLimit": "x"}}}),
        )
        .await?;
    let failed = scene.until_phase("wrong", "Failed").await?;
    assert_eq!(
        condition(&failed, "InvalidSpec"),
        holds("True", "InvalidRuntimeConfig")
    );
    let told = scene.told(&run, "InvalidSpec").await?;
    assert_eq!(
        told[0].note,
        "spec.runtime.config.backoffLimit: has the wrong type; write a whole number, without quotes; spec.secrets[0]: is blank; give a name"
    );
    Ok(())
}

#[tokio::test]
async fn a_job_that_the_api_server_refuses_fails_the_run_with_its_words() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[]).await?;
    let _controller = scene.controller().await?;
    let config = json!({"type": "job", "config": {"nodeSelector": {"not a key!": "x"}}});
    scene.run("refused", json!({ "runtime": config })).await?;
    let failed = scene.until_phase("refused", "Failed").await?;
    assert_eq!(condition(&failed, "Failed"), holds("True", "SubmitFailed"));
    Ok(())
}

#[tokio::test]
async fn a_controller_without_rights_ends_with_all_that_it_lacks() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let lab = lab::shared().await?;
    let kubeconfig = std::fs::read_to_string(lab.kubeconfig())?;
    let mut kubeconfig: serde_json::Value = serde_saphyr::from_str(&kubeconfig)?;
    kubeconfig["users"][0]["user"]["as"] = json!("someone-without-rights");
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    let environment = [
        ("KUBECONFIG", file.to_str().unwrap_or_default()),
        ("AGENTS_ADMIN_LISTEN", "127.0.0.1:0"),
        ("JANGAR_AGENTS_CONTROLLER_NAMESPACES", &scene.here.name),
    ];
    let ended = Process::start(&product("agents"), &["controller"], &environment)
        .end()
        .await;
    assert_eq!(ended.code, Some(1));
    let log = ended.log.join("\n");
    for resource in [
        "agentruns.agents.proompteng.ai",
        "jobs.batch",
        "pods",
        "leases.coordination.k8s.io",
        "secrets",
    ] {
        let said = format!(" {resource} in namespace ");
        assert!(log.contains(&said), "nothing about {resource}: {log}");
    }
    Ok(())
}
