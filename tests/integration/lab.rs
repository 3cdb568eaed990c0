//! The lab itself: how fast it is, and that it leaves nothing behind.

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
