//! `agents crds diff` and `apply` on a cluster of their own: from nothing, to the same, and back from what others changed.

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use support::lab::state::Tier;
use support::lab::{Lab, own_name};

use super::{agents, ended};

const RUNS: &str = "agentruns.agents.proompteng.ai";

/// The test begins on an empty cluster and changes definitions that every other test relies on.
#[tokio::test]
async fn definitions_are_compared_applied_and_never_drop_a_stored_version() -> Result<()> {
    support::starts_labs!();
    let lab = Lab::start(&own_name("definitions")?, Tier::ControlPlane).await?;
    let file = lab.kubeconfig();
    let unknown = agents(file, &["run", "list"]).await?;
    ended(&unknown, 3);
    assert!(
        unknown.stderr.contains("`agents crds apply` installs them"),
        "{}",
        unknown.stderr
    );
    let missing = agents(file, &["crds", "diff"]).await?;
    ended(&missing, 5);
    assert_eq!(
        missing.stdout.matches(" is missing\n").count(),
        19,
        "{}",
        missing.stdout
    );

    let created = agents(file, &["crds", "apply"]).await?;
    ended(&created, 0);
    assert_eq!(
        created.stdout.matches(" created\n").count(),
        19,
        "{}",
        created.stdout
    );
    assert!(
        created.stdout.ends_with("All 19 definitions are served.\n"),
        "{}",
        created.stdout
    );
    lab.kubectl().run(&["get", "agentruns"]).await?.ok()?;
    let same = agents(file, &["crds", "diff"]).await?;
    ended(&same, 0);
    assert_eq!(
        same.stdout.matches(" is as it should be\n").count(),
        19,
        "{}",
        same.stdout
    );
    let again = agents(file, &["crds", "apply"]).await?;
    ended(&again, 0);
    assert_eq!(
        again.stdout.matches(" unchanged\n").count(),
        19,
        "{}",
        again.stdout
    );

    let api: Api<CustomResourceDefinition> = Api::all(lab.client().await?);
    mend(&api, file).await?;
    keep_stored(&api, file).await
}

/// What someone else changed is shown, and taken back only on demand.
async fn mend(api: &Api<CustomResourceDefinition>, file: &std::path::Path) -> Result<()> {
    let params = PatchParams {
        field_manager: Some("someone".to_owned()),
        ..PatchParams::default()
    };
    let change = Patch::Merge(json!({"spec": {"names": {"shortNames": ["other"]}}}));
    api.patch(RUNS, &params, &change).await?;
    let differs = agents(file, &["crds", "diff"]).await?;
    ended(&differs, 5);
    let line = "  ~ spec.names.shortNames: [\"other\"] -> [\"arun\"]\n";
    assert!(
        differs
            .stdout
            .contains(&format!("{RUNS} differs in 1 field\n{line}")),
        "{}",
        differs.stdout
    );
    let conflict = agents(file, &["crds", "apply"]).await?;
    ended(&conflict, 3);
    assert!(conflict.stderr.contains("someone"), "{}", conflict.stderr);
    assert!(
        conflict.stderr.contains("next: --force-conflicts"),
        "{}",
        conflict.stderr
    );
    let forced = agents(file, &["crds", "apply", "--force-conflicts"]).await?;
    ended(&forced, 0);
    assert!(
        forced.stdout.contains(&format!("{RUNS} changed\n{line}")),
        "{}",
        forced.stdout
    );
    ended(&agents(file, &["crds", "diff"]).await?, 0);
    Ok(())
}

/// A version in which objects are stored stays, and then nothing else is touched either.
async fn keep_stored(api: &Api<CustomResourceDefinition>, file: &std::path::Path) -> Result<()> {
    let params = PatchParams::default();
    let live = api.get(RUNS).await?;
    let mut newer = live.spec.versions.first().context("a version")?.clone();
    newer.name = "v1beta1".to_owned();
    newer.storage = false;
    let mut versions = live.spec.versions.clone();
    versions.push(newer);
    api.patch(
        RUNS,
        &params,
        &Patch::Merge(json!({"spec": {"versions": versions}})),
    )
    .await?;
    let stored = json!({"status": {"storedVersions": ["v1alpha1", "v1beta1"]}});
    api.patch_status(RUNS, &params, &Patch::Merge(stored))
        .await?;
    let before = api.get(RUNS).await?;
    let refused = agents(file, &["crds", "apply", "--force-conflicts"]).await?;
    ended(&refused, 1);
    let why = format!(
        "nothing was applied: {RUNS} has objects stored as v1beta1, which this program does not know"
    );
    assert!(refused.stderr.contains(&why), "{}", refused.stderr);
    assert_eq!(refused.stdout, "");
    assert_eq!(
        api.get(RUNS).await?.metadata.generation,
        before.metadata.generation
    );
    let shown = agents(file, &["crds", "diff"]).await?;
    ended(&shown, 5);
    assert!(
        shown.stdout.contains("stored as v1beta1"),
        "{}",
        shown.stdout
    );
    Ok(())
}

#[tokio::test]
async fn what_is_printed_needs_no_cluster() -> Result<()> {
    let printed = agents(std::path::Path::new("/nowhere"), &["crds", "print"]).await?;
    ended(&printed, 0);
    assert_eq!(
        printed
            .stdout
            .matches("kind: CustomResourceDefinition\n")
            .count(),
        19
    );
    Ok(())
}
