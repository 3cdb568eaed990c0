//! The chart on a real cluster with real pods: installed, asked, scraped, upgraded, and removed again.

mod doctor;
mod drift;
mod ending;
mod in_use;
mod leaving;
mod scraped;
mod stage;
mod used;
mod validation;

use std::collections::BTreeMap;

use agents::api::contract::queue;
use agents::api::kind::Kind;
use agents::api::kinds::{AgentRun, ToolRun};
use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};
use support::{fixtures::repository, http, sse::Reader, wait};

use crate::controller::scene::phase_of;
use crate::serve::scene::{ALL, person};
use ending::Ending;
use stage::{DEADLINE, Stage};

/// An object with faults.
const REFUSED: &str = "examples/refused/agent-run.yaml";

fn path(of: &str) -> Result<String> {
    let file = repository().join(of).into_os_string().into_string();
    file.ok().context("a path that is UTF-8")
}

/// What kubectl says to an object with faults, without storing it.
async fn tried(stage: &Stage) -> Result<String> {
    let apply = ["apply", "--dry-run=server", "--filename", &path(REFUSED)?];
    let said = stage.here.kubectl.run(&apply).await?;
    Ok(format!("{}{}", said.stdout, said.stderr))
}

async fn is_refused(stage: &Stage, wanted: bool) -> Result<()> {
    let what = format!(
        "the webhook {} a wrong object",
        if wanted { "refuses" } else { "lets through" }
    );
    wait::retry(&what, DEADLINE, || async {
        let said = tried(stage).await?;
        // The schema refuses one of the faults on every rung; this one only the webhook sees, and may warn of it.
        let told = said.lines().filter(|line| !line.starts_with("Warning: "));
        match told
            .into_iter()
            .any(|line| line.contains("spec.workload.image"))
        {
            refused if refused == wanted => Ok(()),
            _ => bail!("kubectl said: {said}"),
        }
    })
    .await
}

/// How many pods of each Deployment are ready.
async fn ready(stage: &Stage) -> Result<BTreeMap<String, Option<i32>>> {
    let deployments = stage.here.api::<Deployment>();
    let all = deployments.list(&ListParams::default()).await?;
    let pairs = all.into_iter().map(|deployment| {
        let ready = deployment.status.as_ref();
        let ready = ready.and_then(|status| status.ready_replicas);
        (deployment.name_any(), ready)
    });
    Ok(pairs.collect())
}

/// What the control plane says to someone with a token, by way of its Service.
async fn asked(stage: &Stage, token: &str) -> Result<()> {
    let relay = stage.service("agents", 80).await?;
    let authority = relay.address().to_string();
    let run = format!("/v1/agent-runs/{}/add-health-endpoint", stage.here.name);
    let refused = http::get(&authority, &run).await;
    assert!(format!("{:#}", refused.unwrap_err()).contains("401"));
    let run: Value = serde_json::from_str(&http::get_by(&authority, &run, token).await?)?;
    assert_eq!(run["phase"], "Succeeded", "{run:#}");
    let queue = wait::retry("what the leader says of its queue", DEADLINE, || async {
        let mut reader = Reader::open_as(relay.address(), queue::STREAM, None, token).await?;
        let event = reader.next().await?.context("an event")?;
        let told: Value = serde_json::from_str(&event.data)?;
        ensure!(told["leader"] == true, "{told:#}");
        Ok(told)
    })
    .await?;
    assert_eq!(queue["queue"]["cluster"]["waiting"], 0, "{queue:#}");
    Ok(())
}

/// Waits until no object of the release is left, of whatever kind.
async fn is_removed(stage: &Stage) -> Result<()> {
    let kubectl = stage.lab.kubectl();
    let kinds = ["api-resources", "--verbs=list", "--output=name"];
    let kinds = kubectl.run(&kinds).await?.ok()?;
    let kinds: Vec<_> = kinds.lines().collect();
    let list = [
        "get",
        &kinds.join(","),
        "--all-namespaces",
        "--selector",
        "app.kubernetes.io/instance=agents",
        "--output=name",
    ];
    // Pods and endpoints follow what made them.
    wait::retry("nothing that is left", DEADLINE, || async {
        let left = kubectl.run(&list).await?.ok()?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    })
    .await
}

/// Every object of the namespace, of whatever kind, but for what is said about others.
async fn objects(stage: &Stage) -> Result<BTreeMap<String, Value>> {
    let kubectl = &stage.here.kubectl;
    let kinds = ["api-resources", "--verbs=list", "--namespaced"];
    let kinds = [&kinds[..], &["--output=name"]].concat();
    let kinds = kubectl.run(&kinds).await?.ok()?;
    let kinds = kinds.lines().filter(|kind| !kind.starts_with("events"));
    let kinds: Vec<_> = kinds.collect();
    let get = ["get", &kinds.join(","), "--output=json"];
    let mut found: Value = serde_json::from_str(&kubectl.run(&get).await?.ok()?)?;
    let found = found["items"].as_array_mut().context("a list")?;
    let named = found.drain(..).map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let name = format!("{}/{name}", object["kind"].as_str().unwrap_or_default());
        (name, object)
    });
    Ok(named.collect())
}

/// Whether docs/install.md says that an object stays: one of our kinds, what belongs to one, or the lease.
fn is_said_to_stay(object: &Value) -> bool {
    let is_ours = |version: &Value| {
        let group = version.as_str().and_then(|version| version.split_once('/'));
        group.is_some_and(|(group, _)| Kind::ALL.iter().any(|kind| kind.group() == group))
    };
    let owners = object["metadata"]["ownerReferences"].as_array();
    let belongs = |owner: &Value| is_ours(&owner["apiVersion"]) || owner["kind"] == "Job";
    is_ours(&object["apiVersion"])
        || owners.into_iter().flatten().any(belongs)
        || object["kind"] == "Lease" && object["metadata"]["name"] == "jangar-controller-leader"
}

#[tokio::test]
async fn an_install_runs_a_run_an_upgrade_changes_the_rung_and_an_uninstall_leaves_what_it_says()
-> Result<()> {
    support::node_lab!();
    let stage = Stage::enter().await?;
    let secrets = ["apply", "--filename", &path("examples/00-secrets.yaml")?];
    stage.here.kubectl.run(&secrets).await?.ok()?;
    let someone = person(&stage.here, "someone", ALL).await?;
    let before = objects(&stage).await?;
    stage.put("install", &ending::lingering()).await?;
    let expected = [
        ("agents", 1),
        ("agents-controllers", 1),
        ("agents-webhook", 2),
    ];
    let expected = expected.map(|(name, pods)| (name.to_owned(), Some(pods)));
    assert_eq!(ready(&stage).await?, expected.into());
    is_refused(&stage, true).await?;

    let apply = ["apply", "--filename", &path("examples")?];
    stage.here.kubectl.run(&apply).await?.ok()?;
    let runs = stage.here.api::<AgentRun>();
    let succeeded = |run: &AgentRun| phase_of(run) == "Succeeded";
    wait::until(&runs, "add-health-endpoint", DEADLINE, succeeded).await?;
    validation::as_operators_look(&stage, "add-health-endpoint").await?;
    asked(&stage, &someone).await?;
    scraped::as_the_monitors_mean_it(&stage).await?;
    used::as_granted(&stage).await?;

    // Without the lingering there are other controllers; how those before them end is looked at meanwhile.
    let ending = Ending::of_controllers(&stage).await?;
    let audit = json!({"webhook": {"rung": "audit"}});
    let upgrade = stage.put("upgrade", &audit);
    let (said, ()) = tokio::try_join!(upgrade, ending.is_in_order(&stage))?;
    assert!(
        said.stdout.contains("Helm does not upgrade CRDs"),
        "{}",
        said.stdout
    );
    is_refused(&stage, false).await?;

    // What the examples set going comes to its end first: who leaves now would lose it.
    wait::until(&runs, "review-dependencies", DEADLINE, succeeded).await?;
    let linted = |run: &ToolRun| {
        let status = run.status.as_ref();
        status.and_then(|status| status.phase.as_deref()) == Some("Succeeded")
    };
    let lint = "ship-health-endpoint-1-lint-1";
    wait::until(&stage.here.api::<ToolRun>(), lint, DEADLINE, linted).await?;
    stage.make_agent(&stage.here).await?;
    for run in ["at-work", "unrecorded"] {
        stage.start_run(&stage.here, run).await?;
    }
    stage.uninstall().await?;
    is_removed(&stage).await?;
    let left = objects(&stage).await?.into_iter();
    let left = left.filter(|(name, object)| !before.contains_key(name) && !is_said_to_stay(object));
    let left: Vec<_> = left.map(|(name, _)| name).collect();
    assert_eq!(
        left,
        Vec::<String>::new(),
        "docs/install.md names none of it"
    );
    let kept = runs.get("add-health-endpoint").await?;
    assert!(succeeded(&kept), "runs and their kinds stay");
    leaving::after_an_uninstall(&stage).await
}
