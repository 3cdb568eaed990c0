//! What is said about a run whose pods, and with them its logs, are not there. Pure.

use jiff::Timestamp;
use kube::ResourceExt;

use super::view;
use crate::api::kinds::AgentRun;
use crate::api::kinds::shared::JobMissing;
use crate::cli::shown::age;
use crate::controller::LogGone;

/// Why there is nothing to read, since when, and which setting decides about it.
pub(super) fn no_pods(run: &AgentRun, job_is_there: bool, now: Timestamp) -> String {
    let name = run.name_any();
    let Some(phase) = view::ended(run) else {
        return format!("{name} has no pod to read from: it is {}", view::line(run));
    };
    let finished = run.status.as_ref().and_then(|status| status.finished_at);
    let ended = match finished {
        Some(at) => format!(
            "{name} ended {phase} at {at} ({} ago)",
            age(view::between(at, now))
        ),
        None => format!("{name} ended {phase}"),
    };
    // The Job is asked about; how the controllers are set is not known here.
    match LogGone::of(run, missing(run), job_is_there, None) {
        why @ LogGone::NoPod => format!("{ended}, {why}: {}", view::line(run)),
        why @ (LogGone::JobLost { .. } | LogGone::PodsRemoved | LogGone::Expired { .. }) => {
            format!("{ended}, {why}")
        }
    }
}

/// What was found out about the Job that was missed last.
fn missing(run: &AgentRun) -> Option<&JobMissing> {
    view::jobs(run).find_map(|job| job.missing.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(status: Value, job_is_there: bool) -> String {
        let run: AgentRun = serde_json::from_value(json!({
            "metadata": {"name": "fix"},
            "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job"}},
            "status": status,
        }))
        .unwrap();
        no_pods(&run, job_is_there, "2026-01-01T13:00:00Z".parse().unwrap())
    }

    fn over(phase: &str) -> Value {
        json!({"phase": phase, "startedAt": "2026-01-01T11:00:00Z", "finishedAt": "2026-01-01T12:00:00Z"})
    }

    #[test]
    fn it_is_said_when_the_run_ended_and_why_there_is_nothing() {
        let mut lost = over("Failed");
        lost["jobRef"] = json!({"name": "fix-job", "missing": {"class": "JobDeletedUnknown", "noticedAt": "2026-01-01T12:00:01Z"}});
        let ended = |phase| format!("fix ended {phase} at 2026-01-01T12:00:00Z (60m ago), ");
        for (row, status, job, expected) in [
            (
                "not begun",
                json!({"phase": "Pending"}),
                false,
                "fix has no pod to read from: it is Pending".to_owned(),
            ),
            (
                "its time is over",
                over("Succeeded"),
                false,
                ended("Succeeded")
                    + "and its log went with its pods when its Job was removed; how long is set by ",
            ),
            (
                "pods removed by someone",
                over("Succeeded"),
                true,
                ended("Succeeded") + "and its Job is kept, so someone removed its pods",
            ),
            (
                "Job missing",
                lost,
                false,
                ended("Failed") + "and its Job went before its time (JobDeletedUnknown)",
            ),
            (
                "never begun",
                json!({"phase": "Cancelled", "finishedAt": "2026-01-01T12:00:00Z"}),
                false,
                ended("Cancelled") + "without a pod: Cancelled",
            ),
        ] {
            let told = said(status, job);
            assert!(told.starts_with(&expected), "{row}: {told}");
        }
    }
}
