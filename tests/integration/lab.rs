//! The lab itself: how fast it is, what it can do, and that it leaves nothing behind.

mod alone;
mod command_line;
mod existing;
pub(crate) mod life;
pub(crate) mod node;
mod traces;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;

#[tokio::test]
async fn every_test_has_a_namespace_of_its_own_in_one_shared_control_plane() -> Result<()> {
    let first = support::namespace("lab").await?;
    let second = support::namespace("lab").await?;
    assert_ne!(first.name, second.name);
    let mut object = ConfigMap::default();
    object.metadata.name = Some("same".to_owned());
    for namespace in [&first, &second] {
        let created = namespace
            .api()
            .create(&PostParams::default(), &object)
            .await?;
        assert_eq!(created.metadata.namespace.as_ref(), Some(&namespace.name));
    }
    let listed = first
        .kubectl
        .run(&["get", "configmap", "same", "--output=name"])
        .await?;
    assert_eq!(listed.ok()?, "configmap/same\n");
    Ok(())
}

#[tokio::test]
async fn kubectl_failures_are_captured_with_code_and_words() -> Result<()> {
    let namespace = support::namespace("lab").await?;
    let said = namespace
        .kubectl
        .run(&["get", "configmap", "missing"])
        .await?;
    let words = "Error from server (NotFound): configmaps \"missing\" not found\n";
    assert_eq!(
        (said.code, said.stdout.as_str(), said.stderr.as_str()),
        (Some(1), "", words)
    );
    Ok(())
}

#[tokio::test]
async fn events_about_an_object_are_captured() -> Result<()> {
    let namespace = support::namespace("lab").await?;
    let job = r#"{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": {"template":
        {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "localhost/none:1"}]}}}}"#;
    namespace
        .kubectl
        .run_with_input(&["create", "--filename=-"], job)
        .await?
        .ok()?;
    let job = namespace
        .api::<k8s_openapi::api::batch::v1::Job>()
        .get("one")
        .await?;
    let deadline = std::time::Duration::from_secs(30);
    let found = support::events::until(&namespace.client, &job, deadline, |said| {
        said.reason == "SuccessfulCreate"
    })
    .await?;
    assert!(found.note.starts_with("Created pod: one-"), "{found:?}");
    assert_eq!(
        support::events::about(&namespace.client, &job).await?,
        [found]
    );
    Ok(())
}
