//! The classes of a missing Job that take more than a Job and a controller: a name, an owner, a namespace. Status,
//! Events and metrics are compared whole with `tests/fixtures/lifecycle`.
//!
//! | why the Job is missing | what else is known | case |
//! | --- | --- | --- |
//! | someone whose name admission saw deleted it after its end | its last word tells how it ended | `ended-actor` |
//! | its run is being deleted | nothing; its pod tells how it ended | `owner-lost`, `owner-told` |
//! | its namespace is being deleted | nothing | `namespace-kept` |

use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use support::wait;

use super::case::{Case, kill};
use crate::controller::scene::{DEADLINE, Scene};
use crate::webhook::hook::Station;

/// Who deletes Jobs here.
const JANE: &str = "jane@example.com";

/// Webhook and controller together.
#[tokio::test]
async fn who_deleted_a_job_after_its_end_is_named() -> Result<()> {
    support::own_lab!();
    let (station, _policy) = Station::lenient().await?;
    let behind = async |settings: &[(&str, &str)]| {
        let scene = Scene::at(station.registered.namespace("custody").await?, settings);
        scene.make_agent().await?;
        anyhow::Ok(scene)
    };
    let (mut case, controller, way) = Case::running_unseen(behind).await?;
    case.scene.end_pod("x", 0).await?;
    case.witness.until_unrecorded(1.0).await?;
    case.scene.delete_job_as("x", JANE).await?;
    case.free().await?;
    case.witness.until_unrecorded(0.0).await?;
    way.release();
    case.agrees("ended-actor", controller).await
}

/// Lets the run be seen until the end of the test.
async fn keep(case: &Case) -> Result<Api<AgentRun>> {
    let runs = case.scene.here.api::<AgentRun>();
    let mut finalizers = runs.get("x").await?.finalizers().to_vec();
    finalizers.push("example.com/kept".to_owned());
    let kept = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    runs.patch("x", &PatchParams::default(), &kept).await?;
    Ok(runs)
}

async fn let_go(runs: &Api<AgentRun>) -> Result<()> {
    let free = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    runs.patch("x", &PatchParams::default(), &free).await?;
    Ok(())
}

#[tokio::test]
async fn a_job_that_went_with_its_run_is_told_so() -> Result<()> {
    support::kinds!();
    let (case, controller) = Case::running().await?;
    kill(controller).await;
    case.free().await?;
    case.free_pod().await?;
    let runs = keep(&case).await?;
    runs.delete("x", &DeleteParams::foreground()).await?;
    case.until_job_is_gone().await?;
    case.until_pod_is_gone().await?;
    let controller = case.scene.controller().await?;
    case.agrees("owner-lost", controller).await?;
    let_go(&runs).await
}

#[tokio::test]
async fn a_run_that_is_deleted_after_its_job_still_says_how_that_ended() -> Result<()> {
    support::kinds!();
    let case = Case::ended_alone(None, true).await?;
    case.until_complete().await?;
    let runs = keep(&case).await?;
    case.delete(DeleteParams::background()).await?;
    case.until_job_is_gone().await?;
    runs.delete("x", &DeleteParams::background()).await?;
    let controller = case.scene.controller().await?;
    case.agrees("owner-told", controller).await?;
    let_go(&runs).await
}

/// Nobody may delete runs in the namespace, so it stays, and the run with it, while everything else goes.
async fn keep_runs(case: &Case) -> Result<()> {
    let here = &case.scene.here;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": here.name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": here.name}},
                "resourceRules": [{"apiGroups": ["agents.proompteng.ai"], "apiVersions": ["*"], "operations": ["DELETE"],
                    "resources": ["agentruns"]}],
            },
            "validations": [{"expression": "false", "message": "runs are kept here"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": here.name}, "spec": {"policyName": here.name, "validationActions": ["Deny"]},
    });
    for object in [policy, binding] {
        let create = ["create", "--filename", "-"];
        let object = object.to_string();
        here.kubectl.run_with_input(&create, &object).await?.ok()?;
    }
    let dry = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    let runs = here.api::<AgentRun>();
    wait::retry("a refusal", DEADLINE, || async {
        let refused = runs.delete("x", &dry).await.is_err();
        ensure!(refused, "runs can still be deleted");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_job_that_went_with_its_namespace_is_told_so() -> Result<()> {
    support::own_lab!();
    support::kinds!();
    let (case, controller) = Case::running().await?;
    kill(controller).await;
    case.free().await?;
    case.free_pod().await?;
    keep_runs(&case).await?;
    let (kubectl, name) = (
        case.scene.here.kubectl.clone(),
        case.scene.here.name.clone(),
    );
    let namespaces: Api<Namespace> = Api::all(case.scene.here.client.clone());
    namespaces
        .delete(&name, &DeleteParams::background())
        .await?;
    case.until_job_is_gone().await?;
    case.until_pod_is_gone().await?;
    // No Event can be made any more, and those that there were go.
    let events = case.scene.here.api::<Event>();
    wait::until_listed(&events, "", DEADLINE, |events: &[Event]| events.is_empty()).await?;
    let controller = case.scene.controller().await?;
    case.agrees("namespace-kept", controller).await?;
    let policies = "validatingadmissionpolicy,validatingadmissionpolicybinding";
    let said = kubectl.run(&["delete", policies, &name]).await?;
    said.ok().map(drop).context("the policy stays")
}
