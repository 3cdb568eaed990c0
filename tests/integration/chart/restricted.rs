//! A namespace that the chart holds to the level `restricted` of Pod Security lets the pods of runs in.

use agents::api::{
    contract::{env, label},
    kind::Kind,
};
use anyhow::{Context, Result};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use serde_json::{Value, json};
use support::{events, helm::Helm, lab, wait};

use crate::controller::scene::{DEADLINE, Scene};

/// The security context that the chart gives to containers of runs; none if it leaves them alone.
async fn context(values: &Value) -> Result<Option<Value>> {
    let rendered = Helm::new().await?.render(values, &[]).await?;
    let variables = rendered.plain_variables("controllers")?;
    let found = variables.get(env::RUNNER_CONTAINER_SECURITY_CONTEXT);
    let found = found.map(|text| serde_json::from_str(text)).transpose();
    found.context("JSON")
}

/// Values by which the chart makes the namespace of the release, and more.
fn labelled(more: Value) -> Value {
    let mut values = json!({"podSecurityAdmission": {"enabled": true, "createNamespace": true}});
    super::variables::merge(&mut values, &more);
    values
}

#[tokio::test]
async fn containers_of_runs_are_restricted_exactly_where_the_chart_asks_it_of_them() -> Result<()> {
    let all_of_it = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let own =
        json!({"controller": {"defaultWorkload": {"containerSecurityContext": {"runAsUser": 7}}}});
    let elsewhere = json!({"controller": {"namespaces": ["team-a"]}});
    let everywhere = json!({"controller": {"namespaces": ["*"]}, "rbac": {"clusterScoped": true}});
    let tools = json!({"controller": {"namespaces": ["team-a"]}, "supportingController": {"namespaces": ["agents"]}});
    let level = |level: &str| json!({"podSecurityAdmission": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    for (values, expected) in [
        (json!({}), None),
        (json!({"podSecurityAdmission": {"enabled": true}}), None),
        (labelled(json!({})), Some(&all_of_it)),
        (labelled(level("restricted")), Some(&all_of_it)),
        (labelled(level("baseline")), None),
        (labelled(elsewhere), None),
        (labelled(everywhere), Some(&all_of_it)),
        (labelled(tools), Some(&all_of_it)),
        (labelled(own), Some(&json!({"runAsUser": 7}))),
    ] {
        assert_eq!(context(&values).await?.as_ref(), expected, "{values}");
    }
    Ok(())
}

/// A namespace that is held to the level, and a controller in it.
async fn held_to_it(settings: &[(&str, &str)]) -> Result<Scene> {
    let scene = Scene::with_agent(settings).await?;
    let level = "pod-security.kubernetes.io/enforce=restricted";
    let label = ["label", "namespace", &scene.here.name, level];
    lab::shared().await?.kubectl().run(&label).await?.ok()?;
    Ok(scene)
}

#[tokio::test]
async fn pods_of_runs_and_of_calls_are_admitted_where_the_level_is_enforced() -> Result<()> {
    support::kinds!();
    let context = context(&labelled(json!({}))).await?.context("a context")?;
    let setting = (
        env::RUNNER_CONTAINER_SECURITY_CONTEXT,
        &*context.to_string(),
    );
    let scene = held_to_it(&[setting]).await?;
    let _controller = scene.controller().await?;
    scene.begin(&["run"]).await?;
    let tool = json!({"image": "registry.example.com/lint:1", "command": ["/lint"]});
    scene.make(Kind::Tool, "lint", tool).await?;
    let call = json!({"toolRef": {"name": "lint"}});
    scene.make(Kind::ToolRun, "call", call).await?;
    let labels = format!("{}=call", label::TOOL_RUN);
    let some = |pods: &[Pod]| !pods.is_empty();
    wait::until_listed(&scene.here.api(), &labels, DEADLINE, some).await?;
    Ok(())
}

/// Else the one above would show nothing.
#[tokio::test]
async fn without_the_setting_the_same_namespace_turns_the_pod_of_a_run_away() -> Result<()> {
    support::kinds!();
    let scene = held_to_it(&[]).await?;
    let _controller = scene.controller().await?;
    scene.run("run", json!({})).await?;
    let jobs = scene.here.api::<Job>();
    let job = wait::until(&jobs, "run-job", DEADLINE, |_: &Job| true).await?;
    let refused = |said: &events::Said| said.note.contains("violates PodSecurity");
    events::until(&scene.here.client, &job, DEADLINE, refused).await?;
    Ok(())
}
