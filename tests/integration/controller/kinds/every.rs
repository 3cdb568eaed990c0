//! An object of every kind, however it can stand: settled or at work, waiting for what it needs, or wrong.

use std::collections::BTreeSet;

use agents::api::kind::Kind;
use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use support::kstatus::{self, Stand};

use super::{standing as plain, tools, workspaces};
use crate::controller::scene::Scene;

/// Kinds whose objects come to an end.
pub(super) const RUNS: [Kind; 3] = [Kind::AgentRun, Kind::ToolRun, Kind::OrchestrationRun];

/// Kinds whose objects need no other object.
const SELF_SUFFICIENT: [Kind; 8] = [
    Kind::AgentProvider,
    Kind::Tool,
    Kind::Orchestration,
    Kind::ApprovalPolicy,
    Kind::Budget,
    Kind::SecretBinding,
    Kind::Signal,
    Kind::Artifact,
];

/// Nobody has forgotten a kind.
fn all(kinds: impl Iterator<Item = Kind>) {
    assert_eq!(kinds.collect::<BTreeSet<_>>(), BTreeSet::from(Kind::ALL));
}

/// The spec of a run of this Agent.
pub(super) fn run(agent: &str) -> Value {
    json!({
        "agentRef": {"name": agent}, "implementation": {"inline": {"text": "Do it."}},
        "runtime": {"type": "job"}, "workload": {"image": "registry.example.com/runner:1"},
    })
}

/// An object of each kind that stands until someone deletes it, and what `Ready` says when all is well. They need each other
/// by the name `x`; the Orchestration has one step.
pub(super) fn standing(step: Value) -> Vec<(Kind, Value, &'static str)> {
    let hook = json!({"secretRef": {"name": "hook"}});
    let more = [
        (Kind::Tool, tools::tool(), "True ValidSpec"),
        (
            Kind::Orchestration,
            json!({ "steps": [step] }),
            "True ValidSpec",
        ),
        (
            Kind::Schedule,
            json!({"cron": "0 0 1 1 *", "targetRef": {"kind": "AgentRun", "name": "good"}}),
            "True Active",
        ),
        (
            Kind::Workspace,
            json!({"size": "1Gi", "storageClassName": "none"}),
            "True Bound",
        ),
        (
            Kind::ImplementationSource,
            json!({"provider": "linear", "auth": hook, "webhook": {"enabled": true}}),
            "True WebhookReady",
        ),
    ];
    let good = plain::good().into_iter();
    let good = good.map(|(kind, spec, stands)| {
        let ready = stands.rsplit_once(' ').map_or(stands, |(ready, _)| ready);
        (kind, spec, ready)
    });
    good.chain(more).collect()
}

/// The Secrets that they need.
pub(super) async fn secrets(scene: &Scene) -> Result<()> {
    plain::secret(scene, "store").await?;
    token(scene, "hook").await
}

/// Makes a Secret with an entry `token`.
pub(super) async fn token(scene: &Scene, name: &str) -> Result<()> {
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": name}, "stringData": {"token": "x"}}))?;
    let secrets = scene.here.api();
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// A good object of every kind. Those that stand are called `x`, those that come to an end `good`.
pub(super) fn good() -> Vec<(Kind, &'static str, Value)> {
    let step = json!({
        "name": "build", "kind": "AgentRun", "agentRef": {"name": "x"},
        "implementation": {"inline": {"text": "Do it."}}, "workload": {"image": "registry.example.com/runner:1"},
    });
    let standing = standing(step).into_iter();
    let standing = standing.map(|(kind, spec, _)| (kind, "x", spec));
    let of_x = json!({"name": "x"});
    standing
        .chain([
            (Kind::AgentRun, "good", run("x")),
            (Kind::ToolRun, "good", json!({ "toolRef": of_x })),
            (
                Kind::OrchestrationRun,
                "good",
                json!({ "orchestrationRef": of_x }),
            ),
        ])
        .collect()
}

/// Makes them, and waits until each is settled or at work.
pub(super) async fn settle(scene: &Scene) -> Result<()> {
    secrets(scene).await?;
    all(good().iter().map(|(kind, ..)| *kind));
    for (kind, name, spec) in good() {
        scene.make(kind, name, spec).await?;
    }
    workspaces::bind(scene, "x").await?;
    for (kind, _, ready) in standing(json!({})) {
        until(scene, kind, "x", ready).await?;
    }
    for (kind, name) in [
        (Kind::AgentRun, "good"),
        (Kind::AgentRun, "good-0-build-1"),
        (Kind::ToolRun, "good"),
        (Kind::OrchestrationRun, "good"),
    ] {
        until(scene, kind, name, "Running").await?;
    }
    for job in ["good-job", "good-0-build-1-job", "good-tool"] {
        until_followed(scene, job).await?;
    }
    let dated = |signal: &DynamicObject| signal.data["status"]["lastDeliveryAt"].is_string();
    scene.until_any(Kind::Signal, "x", dated).await?;
    Ok(())
}

/// Makes an object of each kind that waits for something, called `waits`, and waits until it says so.
pub(super) async fn keep_waiting(scene: &Scene) -> Result<()> {
    let others = waiting().into_iter().map(|(kind, ..)| kind);
    all(others.chain(SELF_SUFFICIENT));
    for (kind, spec, ..) in waiting() {
        scene.make(kind, "waits", spec).await?;
    }
    for (kind, _, waits, _) in waiting() {
        let waiting = until(scene, kind, "waits", waits).await?;
        assert_eq!(kstatus::of(&waiting), Stand::InProgress, "{kind}");
    }
    Ok(())
}

/// Makes a wrong object of each kind, called `wrong`, and waits until it says so.
pub(super) async fn go_wrong(scene: &Scene) -> Result<()> {
    all(wrong().iter().map(|(kind, _)| *kind));
    for (kind, spec) in wrong() {
        scene.make(kind, "wrong", spec).await?;
    }
    for (kind, _) in wrong() {
        let is_told = |object: &DynamicObject| kstatus::of(object) == Stand::Failed;
        scene.until_any(kind, "wrong", is_told).await?;
    }
    Ok(())
}

/// Waits until an object stands so: by status and reason of `Ready`, or by its phase.
pub(super) async fn until(
    scene: &Scene,
    kind: Kind,
    name: &str,
    expected: &str,
) -> Result<DynamicObject> {
    if expected.contains(' ') {
        return scene.until_ready(kind, name, expected).await;
    }
    let is_there = |object: &DynamicObject| object.data["status"]["phase"] == expected;
    scene.until_any(kind, name, is_there).await
}

/// Waits until the cluster has nothing more to say about a Job at work either.
pub(super) async fn until_followed(scene: &Scene, job: &str) -> Result<()> {
    let is_followed = |job: &Job| {
        job.status
            .as_ref()
            .is_some_and(|status| status.ready.is_some())
    };
    scene.until_job_named(job, is_followed).await.map(drop)
}

/// An object of each kind that needs another one called `late`: what it says while that is missing, and when it has come.
pub(super) fn waiting() -> Vec<(Kind, Value, &'static str, &'static str)> {
    let late = json!({"name": "late"});
    let secret = json!({ "secretRef": late });
    vec![
        (
            Kind::Agent,
            json!({ "providerRef": late }),
            "False MissingProvider",
            "True ValidSpec",
        ),
        (
            Kind::ImplementationSpec,
            json!({"text": "Do it.", "vcsRef": late}),
            "False MissingVcsProvider",
            "True ValidSpec",
        ),
        (
            Kind::VersionControlProvider,
            json!({"provider": "github", "auth": {"token": {"secretRef": late, "type": "fine_grained"}}}),
            "False SecretNotFound",
            "True AuthReady",
        ),
        (
            Kind::Memory,
            json!({"type": "redis", "connection": secret}),
            "False SecretNotFound",
            "True SecretResolved",
        ),
        (
            Kind::ImplementationSource,
            json!({"provider": "linear", "auth": secret, "webhook": {"enabled": true}}),
            "False SecretNotFound",
            "True WebhookReady",
        ),
        (
            Kind::Workspace,
            json!({"size": "1Gi", "storageClassName": "none"}),
            "False Pending",
            "True Bound",
        ),
        (
            Kind::Schedule,
            json!({"cron": "0 0 1 1 *", "targetRef": {"kind": "AgentRun", "name": "late"}}),
            "False MissingTarget",
            "True Active",
        ),
        (
            Kind::SignalDelivery,
            json!({ "signalRef": late }),
            "False SignalMissing",
            "True Delivered",
        ),
        (Kind::AgentRun, run("late"), "False MissingAgent", "Running"),
        (
            Kind::ToolRun,
            json!({ "toolRef": late }),
            "False MissingTool",
            "Running",
        ),
        (
            Kind::OrchestrationRun,
            json!({ "orchestrationRef": late }),
            "False MissingOrchestration",
            "Succeeded",
        ),
    ]
}

/// An object of each kind that its schema takes and that cannot work.
pub(super) fn wrong() -> Vec<(Kind, Value)> {
    let circle = json!([{"name": "a", "kind": "Checkpoint", "dependsOn": ["a"]}]);
    let nameless = json!({"name": ""});
    let mut unsupported = run("x");
    unsupported["runtime"]["type"] = json!("temporal");
    vec![
        (Kind::AgentRun, unsupported),
        (Kind::AgentProvider, json!({"binary": " "})),
        (Kind::Agent, json!({"providerRef": {"name": " "}})),
        (Kind::ImplementationSpec, json!({"text": " "})),
        (
            Kind::VersionControlProvider,
            json!({"provider": "github", "auth": {"method": "token"}}),
        ),
        (
            Kind::Memory,
            json!({"type": "postgres", "connection": {"secretRef": {"name": "database", "key": ""}}}),
        ),
        (Kind::SecretBinding, json!({})),
        (Kind::Signal, json!({"channel": " "})),
        (Kind::SignalDelivery, json!({ "signalRef": nameless })),
        (
            Kind::ApprovalPolicy,
            json!({"subjects": [{"kind": "Agent", "name": " "}]}),
        ),
        (Kind::Budget, json!({"limits": {"tokens": "many"}})),
        (Kind::Artifact, json!({"lifecycle": {"ttlDays": -1}})),
        (Kind::Tool, json!({"image": "lint 2", "command": ["lint"]})),
        (Kind::Orchestration, json!({ "steps": circle })),
        (
            Kind::Schedule,
            json!({"cron": "every morning", "targetRef": {"kind": "AgentRun", "name": "x"}}),
        ),
        (Kind::Workspace, json!({})),
        (
            Kind::ImplementationSource,
            json!({"provider": "github", "auth": {"secretRef": {"name": "hook"}}}),
        ),
        (Kind::ToolRun, json!({ "toolRef": nameless })),
        (
            Kind::OrchestrationRun,
            json!({ "orchestrationRef": nameless }),
        ),
    ]
}
