//! What leaves no trace: good objects, dry runs, and applying the same once more. And what leaves exactly one.

use std::collections::BTreeMap;

use agents::{
    api::{
        contract::{label, reporter},
        kind::Kind,
    },
    events::Reason,
};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{batch::v1::Job, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use support::{
    Namespace,
    builders::{Builder, owned_by, smallest},
    fixtures::{examples, repository},
    lab, wait,
};

use super::{
    cases::resource,
    hook::{self, DEADLINE, job, run_labels},
};

fn api(here: &Namespace, kind: &str) -> Result<Api<DynamicObject>> {
    let client = here.client.clone();
    Ok(Api::namespaced_with(client, &here.name, &resource(kind)?))
}

/// An object that breaks one rule.
fn without_size(name: &str) -> Builder {
    smallest(Kind::Workspace, name)
}

/// Whether the webhook wrote it: the Job controller has something to say as well.
fn ours(event: &Event) -> bool {
    event.reporting_controller.as_deref() == Some(reporter::WEBHOOK)
}

/// Has an object refused that was not refused before, and returns all Events of the namespace once that one has its own.
/// The webhook writes Events in their order, so whatever was to be told before has been told.
async fn events_until(here: &Namespace, sentinel: &str) -> Result<Vec<Event>> {
    let apply = ["apply", "--filename", "-"];
    let object = without_size(sentinel).to_string();
    let said = here.kubectl.run_with_input(&apply, &object).await?;
    ensure!(said.code == Some(1), "{sentinel} was not refused");
    let about = |event: &Event| event.regarding.as_ref().and_then(|one| one.name.clone());
    let events = here.api::<Event>();
    let list = wait::until_listed(&events, "", DEADLINE, |list: &[Event]| {
        list.iter()
            .any(|event| about(event).as_deref() == Some(sentinel))
    });
    let mut list = list.await?;
    list.retain(|event| ours(event) && about(event).as_deref() != Some(sentinel));
    Ok(list)
}

#[tokio::test]
async fn every_example_is_accepted_and_nothing_is_warned_about() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("examples").await?;
    let folder = repository().join("examples");
    let folder = folder.to_str().context("a path in UTF-8")?;
    let apply = |more: &'static str| {
        let kubectl = here.kubectl.clone();
        async move {
            let flags = ["apply", "--validate=strict", "--filename", folder, more];
            kubectl.run(&flags).await
        }
    };
    let said = apply("--server-side=false").await?;
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    // What an example refers to may be warned about while the webhook has not heard of it.
    let silent = || async {
        let said = apply("--dry-run=server").await?;
        ensure!(
            (said.code, &*said.stderr) == (Some(0), ""),
            "{}",
            said.stderr
        );
        Ok(())
    };
    wait::retry("examples without a warning", DEADLINE, silent).await?;
    assert_eq!(events_until(&here, "sentinel").await?, []);
    Ok(())
}

#[tokio::test]
async fn faults_of_schema_and_rules_are_told_at_once_with_one_event() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("three-faults").await?;
    // The schema knows the types of a runtime; what a parameter or a Secret may be called, only the rules know.
    let faulty = smallest(Kind::AgentRun, "faulty").spec(
        json!({"runtime": {"type": "jbo"}, "parameters": {"a b": ""}, "secrets": ["Model Key"]}),
    );
    let apply = ["apply", "--filename", "-"];
    let faulty = faulty.to_string();
    let said = here.kubectl.run_with_input(&apply, &faulty).await?;
    let mut causes: Vec<&str> = said
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("* ")?.split(": ").next())
        .collect();
    causes.sort_unstable();
    let expected = [
        "spec.parameters[a b]",
        "spec.runtime.type",
        "spec.secrets[0]",
    ];
    assert_eq!(
        (said.code, &*causes),
        (Some(1), &expected[..]),
        "{}",
        said.stderr
    );
    let events = events_until(&here, "sentinel").await?;
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    // Where kubectl shows the message only, it names them all as well.
    let create = ["create", "--filename", "-"];
    let said = here.kubectl.run_with_input(&create, &faulty).await?;
    for field in expected {
        assert!(
            said.stderr.contains(field),
            "{field} is not in: {}",
            said.stderr
        );
    }
    let about = event.regarding.clone().unwrap_or_default();
    assert_eq!(about.name.as_deref(), Some("faulty"));
    assert_eq!((about.uid, event.series.clone()), (None, None));
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.reason.as_deref(), Some(Reason::InvalidSpec.as_str()));
    let note = event.note.clone().unwrap_or_default();
    for field in expected {
        assert!(note.contains(field), "{field} is not in: {note}");
    }
    Ok(())
}

#[tokio::test]
async fn the_audit_log_says_which_rule_decided_under_which_policy() -> Result<()> {
    support::own_lab!();
    let log = lab::shared().await?.audit_log().context("an audit log")?;
    let here = hook::namespace("audit").await?;
    let apply = ["apply", "--filename", "-"];
    let faulty = smallest(Kind::AgentRun, "faulty")
        .spec(json!({"ttlSecondsAfterFinished": -1}))
        .to_string();
    here.kubectl.run_with_input(&apply, &faulty).await?;
    let annotations = wait::retry("the entry in the audit log", DEADLINE, || async {
        let text = std::fs::read_to_string(&log)?;
        let mut entries = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let entry = entries.find(|entry| {
            let about = &entry["objectRef"];
            about["namespace"] == here.name && about["resource"] == Kind::AgentRun.plural()
        });
        entry
            .map(|entry| entry["annotations"].clone())
            .context("not there yet")
    })
    .await?;
    let said = |key: &str| {
        let mut all = annotations.as_object().into_iter().flatten();
        let value = all.find(|(name, _)| name.ends_with(&format!("/{key}")));
        value
            .and_then(|(_, value)| value.as_str())
            .unwrap_or_default()
    };
    assert_eq!(
        (said("rule"), said("mode")),
        ("Spec", "enforce"),
        "{annotations}"
    );
    assert_eq!(said("policy").len(), 12, "{annotations}");
    Ok(())
}

#[tokio::test]
async fn a_refused_update_has_its_event_with_the_uid_of_the_object() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("update").await?;
    let apply = ["apply", "--filename", "-"];
    let disk = |size: &str| smallest(Kind::Workspace, "disk").spec(json!({"size": size}));
    let input = disk("1Gi").to_string();
    here.kubectl.run_with_input(&apply, &input).await?.ok()?;
    let bad = disk("1GB");
    let said = here
        .kubectl
        .run_with_input(&apply, &bad.to_string())
        .await?;
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let uid = api(&here, "Workspace")?.get("disk").await?.uid();
    let events = events_until(&here, "sentinel").await?;
    let about: Vec<_> = events
        .iter()
        .map(|event| event.regarding.clone().and_then(|object| object.uid))
        .collect();
    assert_eq!(about, [uid]);
    Ok(())
}

#[tokio::test]
async fn a_dry_run_leaves_no_event_and_no_change() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("dry-run").await?;
    let runs = api(&here, "AgentRun")?;
    let params = PostParams::default();
    let run = smallest(Kind::AgentRun, "run").typed()?;
    let run = runs.create(&params, &run).await?;
    let mut owned = job("owned", run_labels(label::AGENT_RUN, "run", "u"));
    owned["metadata"]["ownerReferences"] = owned_by(Kind::AgentRun, &run);
    let jobs = here.api::<Job>();
    let owned = jobs
        .create(&params, &serde_json::from_value(owned)?)
        .await?;

    let frozen = smallest(Kind::AgentRun, "run").spec(json!({"parameters": {"a b": ""}}));
    let frozen = frozen.to_string();
    let wrong = without_size("wrong").to_string();
    let good = smallest(Kind::AgentRun, "good").to_string();
    let status = json!({"status": {"observedGeneration": 9}}).to_string();
    let dry = ["apply", "--dry-run=server", "--filename", "-"];
    for (input, code) in [(&wrong, 1), (&frozen, 1), (&good, 0)] {
        let said = here.kubectl.run_with_input(&dry, input).await?;
        assert_eq!(said.code, Some(code), "{input}: {}", said.stderr);
    }
    let patch = [
        "patch",
        "agentruns.agents.proompteng.ai/run",
        "--subresource=status",
        "--type=merge",
        "--dry-run=server",
        "--patch",
        &status,
    ];
    assert_eq!(here.kubectl.run(&patch).await?.code, Some(1));
    let delete = ["delete", "job", "owned", "--dry-run=server"];
    assert_eq!(here.kubectl.run(&delete).await?.code, Some(1));

    assert_eq!(events_until(&here, "sentinel").await?, []);
    assert_eq!(
        runs.get("run").await?.resource_version(),
        run.resource_version()
    );
    let job = jobs.get("owned").await?;
    assert_eq!(job.metadata.deletion_timestamp, None);
    assert_eq!(job.metadata.annotations, owned.metadata.annotations);
    assert_eq!(runs.get_opt("good").await?.map(|run| run.name_any()), None);
    Ok(())
}

/// One example of every kind, without a status.
fn one_of_each() -> Result<Vec<(Kind, String, Value)>> {
    let objects: Vec<Value> = examples()?.into_iter().flat_map(|(_, list)| list).collect();
    let found = Kind::ALL.into_iter().map(|kind| {
        let of_kind = |object: &&Value| object["kind"] == kind.as_str();
        let mut object = objects.iter().find(of_kind).context("an example")?.clone();
        object
            .as_object_mut()
            .context("an object")?
            .remove("status");
        let name = object["metadata"]["name"].as_str().context("a name")?;
        Ok((kind, name.to_owned(), object))
    });
    found.collect()
}

/// The version of each of these objects.
async fn versions(
    here: &Namespace,
    objects: &[(Kind, String, Value)],
) -> Result<BTreeMap<Kind, Option<String>>> {
    let mut found = BTreeMap::new();
    for (kind, name, _) in objects {
        let object = api(here, kind.as_str())?.get(name).await?;
        found.insert(*kind, object.resource_version());
    }
    Ok(found)
}

#[tokio::test]
async fn applying_the_same_again_keeps_the_version() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("no-op").await?;
    let objects = one_of_each()?;
    let documents = objects
        .iter()
        .map(|(_, _, object)| format!("---\n{object}\n"));
    let input: String = documents.collect();
    let server_side = [
        "--server-side",
        "--field-manager=tests",
        "--force-conflicts",
    ];
    for more in [&[][..], &server_side] {
        let apply = [&["apply", "--filename", "-"], more].concat();
        let said = here.kubectl.run_with_input(&apply, &input).await?;
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let before = versions(&here, &objects).await?;
        let said = here.kubectl.run_with_input(&apply, &input).await?;
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert_eq!(versions(&here, &objects).await?, before);
    }
    Ok(())
}

#[tokio::test]
async fn writing_the_same_status_again_keeps_the_version() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("no-op-status").await?;
    for (kind, name, object) in one_of_each()? {
        let api = api(&here, kind.as_str())?;
        let created = serde_json::from_value(object.clone())?;
        api.create(&PostParams::default(), &created).await?;
        let status = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": {"name": name},
            "status": {"observedGeneration": 1, "conditions": [{
                "type": "Ready", "status": "True", "reason": "Reconciled", "message": "",
                "lastTransitionTime": "2026-01-01T10:00:00Z",
            }]},
        });
        let params = PatchParams::apply("tests").force();
        let apply = Patch::Apply(&status);
        let first = api.patch_status(&name, &params, &apply).await?;
        let second = api.patch_status(&name, &params, &apply).await?;
        assert_eq!(
            second.resource_version(),
            first.resource_version(),
            "{kind}: {second:?}"
        );
        let params = PatchParams::default();
        let merged = api
            .patch_status(&name, &params, &Patch::Merge(&status))
            .await?;
        assert_eq!(
            merged.resource_version(),
            first.resource_version(),
            "{kind}"
        );
        let stamp = first
            .data
            .pointer("/status/updatedAt")
            .and_then(Value::as_str);
        assert!(stamp.is_some(), "{kind} has no updatedAt: {first:?}");
    }
    assert_eq!(events_until(&here, "sentinel").await?, []);
    Ok(())
}
