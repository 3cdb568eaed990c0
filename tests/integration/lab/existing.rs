//! An existing cluster: tests use it, and leave it as it was outside their own namespaces.

use super::life::{ONE_AT_A_TIME, SMALL_TEST};
use anyhow::{Context, Result, ensure};
use std::{collections::BTreeSet, env, fs, path::Path, process::Stdio, time::Duration};
use support::{
    crds,
    kubectl::Said,
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
    "controller::",
    "documents::",
    "lab::",
    "registration::",
    "webhook::",
];

/// What is told to use the cluster, with folders of its own.
struct Guest<'a> {
    cluster: &'a Lab,
    cache: TempDir,
    /// What is left out there is not left out here.
    target: TempDir,
}

impl<'a> Guest<'a> {
    fn of(cluster: &'a Lab) -> Result<Self> {
        Ok(Self {
            cluster,
            cache: TempDir::new()?,
            target: TempDir::new()?,
        })
    }

    /// Runs a program. Nothing may be built for it: `kubectl` is found in the PATH.
    async fn run(&self, program: &Path, words: &[&str]) -> Result<Said> {
        let kubectl = self.cluster.kubectl_program().parent();
        let path = env::var_os("PATH").unwrap_or_default();
        let kubectl = kubectl.context("a folder")?.to_owned();
        let path = env::join_paths([kubectl].into_iter().chain(env::split_paths(&path)))?;
        let run = Command::new(program)
            .args(words)
            .env_remove("LAB_REUSE")
            .env_remove("KUBEBUILDER_ASSETS")
            .env("LAB_USE_EXISTING_CLUSTER", "1")
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("LAB_CACHE", self.cache.path())
            .env("CARGO_TARGET_DIR", self.target.path())
            .env("PATH", path)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let said = Said::of(timeout(DEADLINE, run).await??)?;
        let built = fs::read_dir(self.cache.path())?.count();
        ensure!(built == 0, "{built} things were built: {}", said.stderr);
        Ok(said)
    }

    async fn lab(&self, words: &[&str]) -> Result<Said> {
        self.run(Path::new(env!("CARGO_BIN_EXE_lab")), words).await
    }

    /// Runs tests of this program; returns the names of those left out, which must all be agreed.
    async fn tests(&self, filters: &[&str]) -> Result<BTreeSet<String>> {
        let words = [filters, &["--nocapture"]].concat();
        let said = self.run(&env::current_exe()?, &words).await?;
        let Said { stdout, stderr, .. } = &said;
        ensure!(said.code == Some(0), "{stdout}{stderr}");
        ensure!(!stderr.contains("usable after"), "a lab began: {stderr}");
        self.lab(&["left-out"]).await?.ok()?;
        let noted = self.target.path().join("left-out-tests.txt");
        let noted = fs::read_to_string(noted).unwrap_or_default();
        let names = noted.lines().filter_map(|line| line.split_once('\t'));
        Ok(names.map(|(name, _)| name.to_owned()).collect())
    }
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
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let cluster = Lab::start(&own_name("existing")?, Tier::ControlPlane).await?;
    let bare = whole(&cluster).await?;
    let left_out = Guest::of(&cluster)?.tests(ALL_SORTS).await?;
    as_it_was(&cluster, &bare).await?;
    for test in [
        "api_server::install::the_crds_install_without_a_warning_and_are_established",
        "api_server::refusals::every_wrong_object_is_refused_with_a_message_that_names_the_field",
        "registration::a_registration_of_its_own_rung_is_found_to_be_as_it_should",
        "webhook::guard::a_job_goes_with_its_run_and_its_namespace_without_a_question",
        "controller::runs::a_run_succeeds_and_everything_that_it_held_is_let_go",
        "lab::life::a_killed_control_plane_is_cleared_by_down",
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
    let some = ["api_server::refusals::", "api_server::install::"];
    let left_out = Guest::of(&cluster)?.tests(&some).await?;
    as_it_was(&cluster, &with_kinds).await?;
    let cluster_wide =
        "api_server::install::the_crds_install_without_a_warning_and_are_established";
    assert_eq!(left_out, [cluster_wide.to_owned()].into());
    Ok(())
}

#[tokio::test]
async fn where_an_existing_cluster_is_to_be_used_nothing_is_built_and_no_tour_starts() -> Result<()>
{
    support::starts_labs!();
    let cluster = support::lab::shared().await?;
    let guest = Guest::of(cluster)?;
    let built = guest.lab(&["build"]).await?.ok()?;
    let kubectl = cluster.kubectl_program().display();
    assert_eq!(built, format!("kubectl {kubectl}\n"));
    let refused = guest.lab(&["tour"]).await?;
    let words = "lab: the tour changes more of a cluster than one namespace, so it starts a lab of its own: unset \
                 LAB_USE_EXISTING_CLUSTER\n";
    assert_eq!((refused.code, &*refused.stderr), (Some(1), words));
    Ok(())
}
