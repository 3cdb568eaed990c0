//! What cannot work is said at once and in full.

use anyhow::Result;
use serde_json::json;
use support::{gateway::Gateway, lab};

use crate::controller::scene::{Scene, condition, holds};
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
    assert_eq!(
        condition(&failed, "JobMissing"),
        holds("True", "JobNeverCreated")
    );
    let job = failed
        .status
        .as_ref()
        .and_then(|status| status.job_ref.clone());
    let missing = job.and_then(|job| job.missing).unwrap_or_default();
    assert_eq!(missing.class.as_deref(), Some("JobNeverCreated"));
    assert_eq!(missing.certainty.as_deref(), Some("certain"));
    scene.told(&failed, "JobNeverCreated").await?;
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
        ("AGENTS_QUEUE_LISTEN", "127.0.0.1:0"),
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

#[tokio::test]
async fn kinds_of_an_older_version_are_named_before_anything_is_lost() -> Result<()> {
    support::kinds!();
    let scene = Scene::new(&[]).await?;
    let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
    way.alter_kinds(|described| {
        let schemas = described["components"]["schemas"].as_object_mut();
        for schema in schemas.into_iter().flat_map(|all| all.values_mut()) {
            let fields = schema.pointer_mut("/properties/status/properties");
            if let Some(fields) = fields.and_then(|fields| fields.as_object_mut()) {
                fields.remove("jobRef");
            }
        }
    });
    let ended = scene.controller_by(way.kubeconfig())?.end().await;
    assert_eq!(ended.code, Some(1));
    let log = ended.log.join("\n");
    let said = "agentruns.agents.proompteng.ai v1alpha1 is of another version, it lacks status.jobRef; run `agents crds apply` of this version";
    assert!(log.contains(said), "{log}");
    assert_eq!(way.writes(), Vec::<String>::new());
    Ok(())
}
