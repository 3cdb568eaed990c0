//! The words for every class of a missing Job, every reason to be held back, and the usual ends, held against
//! `golden.txt`. `GENERATE=1` writes it anew; read it then.

use std::path::Path;
use std::{env, fs};

use serde_json::{Value, json};

use super::*;

fn facts(status: Value) -> Facts {
    let run = serde_json::from_value(json!({
        "metadata": {"name": "fix", "generation": 1, "creationTimestamp": "2026-01-01T11:00:00Z"},
        "spec": {"agentRef": {"name": "coder"}, "runtime": {"type": "job"}},
        "status": status,
    }));
    Facts {
        run: run.unwrap(),
        events: Some(Vec::new()),
        jobs: Some(Vec::new()),
        pods: Some(Vec::new()),
        verdict: Some(Verdict::Accepted),
        now: "2026-01-01T12:00:00Z".parse().unwrap(),
    }
}

fn failed(reason: &str, message: &str) -> Value {
    json!({
        "phase": "Failed", "startedAt": "2026-01-01T11:30:00Z", "finishedAt": "2026-01-01T11:50:00Z",
        "conditions": [{"type": "Failed", "status": "True", "reason": reason, "message": message}],
    })
}

fn missing(class: Class) -> Facts {
    let (recovered, actor, deletion) = match class {
        Class::JobDeletedByActor => (
            "fromDeletedObject",
            Some("jane"),
            Some(json!({"deletedAt": "2026-01-01T11:49:00Z"})),
        ),
        Class::JobDeletedOrphaned => ("fromPod", None, None),
        Class::JobTtlExpired => ("fromRunnerReport", None, None),
        Class::JobReplaced
        | Class::NamespaceTerminating
        | Class::OwnerDeleted
        | Class::JobNeverCreated
        | Class::JobDeletedWhileRunning
        | Class::JobDeletedUnknown => ("none", None, None),
    };
    let mut status = failed(class.as_str(), "what the controller says");
    status["jobRef"] = json!({"name": "fix-job", "uid": "1", "deletion": deletion, "missing": {
        "class": class.as_str(), "certainty": "certain", "recovered": recovered, "actor": actor,
    }});
    let conditions = status["conditions"].as_array_mut().unwrap();
    conditions.push(json!({"type": "JobMissing", "status": "True", "reason": class.as_str()}));
    facts(status)
}

fn blocked(reason: Hindrance) -> Facts {
    facts(json!({"phase": "Pending", "conditions": [
        {"type": "Blocked", "status": "True", "reason": reason.as_str(), "message": "what the controller says"},
        {"type": "Ready", "status": "False", "reason": reason.as_str()},
    ]}))
}

/// Ends and states beside those of missing Jobs and of held back runs.
fn others() -> Vec<(&'static str, Facts)> {
    let mut succeeded = failed("Completed", "the Job completed");
    succeeded["phase"] = json!("Succeeded");
    succeeded["conditions"][0]["type"] = json!("Succeeded");
    let running = json!({"phase": "Running", "startedAt": "2026-01-01T11:59:00Z", "observedGeneration": 1, "conditions": [
        {"type": "Ready", "status": "False", "reason": "Running", "message": "the Job is at work"},
    ]});
    let mut pulling = facts(running.clone());
    pulling.pods = Some(vec![serde_json::from_value(json!({"metadata": {"name": "fix-job-x"}, "status": {"phase": "Pending",
        "containerStatuses": [{"name": "agent-runner", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]}})).unwrap()]);
    let mut unplaced = facts(running.clone());
    unplaced.pods = Some(vec![serde_json::from_value(json!({"metadata": {"name": "fix-job-x"}, "status": {"phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available."}]}})).unwrap()]);
    let mut killed = facts(failed("JobFailed", "the Job failed: BackoffLimitExceeded"));
    killed.pods = Some(vec![serde_json::from_value(json!({"metadata": {"name": "fix-job-x"}, "status": {"phase": "Failed",
        "containerStatuses": [{"name": "agent-runner", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}})).unwrap()]);
    let mut unrecorded = facts(running.clone());
    unrecorded.jobs = Some(vec![
        serde_json::from_value(
            json!({"metadata": {"name": "fix-job"}, "status": {"conditions": [
        {"type": "Complete", "status": "True", "lastTransitionTime": "2026-01-01T11:58:00Z"}]}}),
        )
        .unwrap(),
    ]);
    let mut changed = facts(running.clone());
    changed.run.metadata.generation = Some(2);
    changed.run.spec.cancel = Some(true);
    let mut going = facts(running);
    going.run.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T11:59:30Z")).unwrap();
    going.jobs = Some(vec![serde_json::from_value(json!({"metadata": {"name": "fix-job",
        "finalizers": ["agents.proompteng.ai/outcome"], "deletionTimestamp": "2026-01-01T11:59:30Z"}})).unwrap()]);
    going.events = Some(vec![
        Said {
            is_warning: true,
            reason: "Old".to_owned(),
            note: "long ago".to_owned(),
            at: None,
        },
        Said {
            is_warning: true,
            reason: "JobTtlInjected".to_owned(),
            note: "someone set a time to live".to_owned(),
            at: Some("2026-01-01T11:59:50Z".parse().unwrap()),
        },
        Said {
            is_warning: false,
            reason: "Submitted".to_owned(),
            note: "fine".to_owned(),
            at: None,
        },
    ]);
    let mut blind = facts(json!(null));
    (blind.events, blind.jobs, blind.pods) = (None, None, None);
    blind.verdict = None;
    let denied = Verdict::Refused(vec!["metadata.labels: team is required".to_owned()]);
    let mut against = blocked(Hindrance::MissingAgent);
    against.verdict = Some(denied.clone());
    let mut past = facts(succeeded.clone());
    past.verdict = Some(denied);
    let mut no_webhook = facts(failed("ImageBlocked", "image x:latest is blocked"));
    no_webhook.verdict = Some(Verdict::NoPolicy);
    vec![
        ("succeeded", facts(succeeded)),
        ("no controller, and nothing may be looked at", blind),
        ("image cannot be pulled", pulling),
        ("no node", unplaced),
        ("out of memory", killed),
        ("ended and not recorded", unrecorded),
        ("spec changed and cancelled", changed),
        ("being deleted", going),
        (
            "refused by policy",
            facts(failed("ImageBlocked", "image x:latest is blocked")),
        ),
        ("held back, and against the policy in force", against),
        ("succeeded, and against the policy in force", past),
        ("refused by policy where no webhook runs", no_webhook),
        (
            "refused by a rule",
            facts(failed("NothingToDo", "the run has nothing to do")),
        ),
        (
            "changed after it had begun",
            facts(failed("SpecImmutableViolation", "the spec was changed")),
        ),
        (
            "same key",
            facts(failed(
                "IdempotencyKeyInUse",
                "run other with this key is under way",
            )),
        ),
        (
            "gave up on an Agent",
            facts(failed("MissingAgent", "Agent coder does not exist")),
        ),
    ]
}

#[test]
fn every_state_has_its_words() {
    let mut all: Vec<(String, Facts)> = Vec::new();
    all.extend(
        Class::ALL
            .iter()
            .map(|class| (format!("Job missing: {class}"), missing(*class))),
    );
    all.extend(
        Hindrance::ALL
            .iter()
            .map(|reason| (format!("held back: {}", reason.as_str()), blocked(*reason))),
    );
    all.extend(
        others()
            .into_iter()
            .map(|(title, facts)| (title.to_owned(), facts)),
    );
    let told: Vec<String> = all
        .iter()
        .map(|(title, facts)| format!("{title}\n    {}\n", text(facts)))
        .collect();
    let told = told.join("\n");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/explain/golden.txt");
    if env::var_os("GENERATE").is_some() {
        fs::write(&file, &told).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert!(told == golden, "the words have changed; now:\n{told}");
}

#[test]
fn a_sentence_within_another_begins_small_unless_with_a_name() {
    assert_eq!(lower("The Job"), "the Job");
    assert_eq!(lower("AgentRun of"), "AgentRun of");
    assert_eq!(lower(""), "");
}
