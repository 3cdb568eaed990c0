//! An existing cluster: tests use it, and leave it as it was outside their own namespaces.

use super::life::{ONE_AT_A_TIME, SMALL_TEST};
use anyhow::{Context, Result, ensure};
use std::{collections::BTreeSet, env, fs, process::Stdio, time::Duration};
use support::{
    crds,
    lab::{Lab, own_name, state::Tier},
    wait,
};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

const DEADLINE: Duration = Duration::from_secs(180);
const GONE: Duration = Duration::from_secs(30);

/// Tests of every sort: in a namespace alone, with our kinds, with a registration, with a program of ours.
const ALL_SORTS: &[&str] = &[
    SMALL_TEST,
    "api_server::",
    "registration::",
    "documents::metrics::",
    "webhook::guard::",
    "webhook::hostile::",
    "webhook::lookup::",
    "webhook::quiet::",
];

/// Runs tests of this program in a process that is told to use the cluster; returns the names of those left out. Nothing
/// may be built for it: `kubectl` is found in the PATH.
async fn guest(cluster: &Lab, tests: &[&str]) -> Result<BTreeSet<String>> {
    let (cache, target) = (TempDir::new()?, TempDir::new()?);
    let kubectl = cluster.kubectl_program().parent().context("a folder")?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(
        [kubectl.to_owned()]
            .into_iter()
            .chain(env::split_paths(&path)),
    )?;
    let run = Command::new(env::current_exe()?)
        .args(tests)
        .arg("--nocapture")
        .env_remove("LAB_REUSE")
        .env_remove("KUBEBUILDER_ASSETS")
        .env("LAB_USE_EXISTING_CLUSTER", "1")
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("LAB_CACHE", cache.path())
        .env("CARGO_TARGET_DIR", target.path()) // what is left out there is not left out here
        .env("PATH", path)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, run).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{told}{said}");
    ensure!(!said.contains("usable after"), "a lab was started: {said}");
    let built = fs::read_dir(cache.path())?.count();
    ensure!(built == 0, "{built} things were built: {said}");
    let noted = fs::read_to_string(target.path().join("left-out-tests.txt")).unwrap_or_default();
    let names = noted.lines().filter_map(|line| line.split_once('\t'));
    Ok(names.map(|(name, _)| name.to_owned()).collect())
}

/// What concerns the whole cluster, and how often each was changed. Kubernetes makes namespaces of its own as it starts.
async fn whole(cluster: &Lab) -> Result<BTreeSet<String>> {
    let kinds = "namespaces,customresourcedefinitions,mutatingwebhookconfigurations,validatingwebhookconfigurations";
    let each =
        "jsonpath={range .items[*]}{.kind}/{.metadata.name}/{.metadata.generation}{'\\n'}{end}";
    let listed = cluster
        .kubectl()
        .run(&["get", kinds, "--output", each])
        .await?
        .ok()?;
    let lines = listed.lines().filter(|line| !line.contains("/kube-"));
    Ok(lines.map(str::to_owned).collect())
}

async fn as_it_was(cluster: &Lab, before: &BTreeSet<String>) -> Result<()> {
    let look = || async {
        let now = whole(cluster).await?;
        let changed: Vec<_> = now.symmetric_difference(before).collect();
        ensure!(changed.is_empty(), "it differs in {changed:?}");
        Ok(())
    };
    wait::retry("the cluster is as it was", GONE, look).await
}

#[tokio::test]
async fn an_existing_cluster_is_used_and_left_as_it_was() -> Result<()> {
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = Lab::start(&own_name("existing")?, Tier::ControlPlane).await?;
    let bare = whole(&cluster).await?;
    let left_out = guest(&cluster, ALL_SORTS).await?;
    as_it_was(&cluster, &bare).await?;
    for test in [
        "api_server::install::the_crds_install_without_a_warning_and_are_established",
        "api_server::refusals::every_wrong_object_is_refused_with_a_message_that_names_the_field",
        "registration::a_registration_of_its_own_rung_is_found_to_be_as_it_should",
        "webhook::guard::a_job_goes_with_its_run",
    ] {
        assert!(left_out.contains(test), "{test} is not in {left_out:?}");
    }
    assert!(!left_out.contains(SMALL_TEST));

    crds::install(&cluster).await?;
    let with_kinds = whole(&cluster).await?;
    assert_eq!(
        with_kinds.len(),
        bare.len() + agents::api::kind::Kind::ALL.len()
    );
    let left_out = guest(
        &cluster,
        &["api_server::refusals::", "api_server::install::"],
    )
    .await?;
    as_it_was(&cluster, &with_kinds).await?;
    let cluster_wide =
        "api_server::install::the_crds_install_without_a_warning_and_are_established";
    assert_eq!(left_out, [cluster_wide.to_owned()].into());
    Ok(())
}
