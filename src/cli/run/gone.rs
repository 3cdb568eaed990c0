//! What is said about a run whose pods, and with them its logs, are not there. Pure.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use super::view;
use crate::api::contract::env;
use crate::api::kinds::AgentRun;
use crate::api::kinds::shared::JobMissing;
use crate::api::phase::Phase;
use crate::cli::shown::age;

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
    if run
        .status
        .as_ref()
        .is_none_or(|status| status.started_at.is_none())
        && phase != Phase::Succeeded
    {
        return format!("{ended} without a pod: {}", view::line(run));
    }
    if let Some(missing) = missing(run) {
        let class = missing.class.as_deref().unwrap_or("unknown");
        let noticed = missing
            .noticed_at
            .map_or_else(String::new, |at| format!(" since {at} at the latest"));
        return format!(
            "{ended}; its Job went before its time ({class}), and its logs with it{noticed}"
        );
    }
    if job_is_there {
        return format!(
            "{ended}; its Job is still kept, but someone removed its pods, and its logs with them"
        );
    }
    format!(
        "{ended}; its logs went with its pods{}",
        kept(run, phase, finished)
    )
}

/// Since when, and by which setting.
fn kept(run: &AgentRun, phase: Phase, finished: Option<Timestamp>) -> String {
    let config = run.spec.runtime.config.as_ref();
    let own = config.and_then(|config| config.get("ttlSecondsAfterFinished")?.as_u64());
    let Some(seconds) = own else {
        let setting = match phase {
            Phase::Failed => format!(
                "{}, else {}",
                env::RUNNER_FAILED_JOB_TTL,
                env::RUNNER_JOB_TTL
            ),
            Phase::Pending | Phase::Running | Phase::Succeeded | Phase::Cancelled => {
                env::RUNNER_JOB_TTL.to_owned()
            }
        };
        return format!(
            " when its Job was removed; how long after the end is set by {setting}, and {} keeps it longer for its logs",
            env::RUNNER_JOB_LOG_RETENTION
        );
    };
    let since = finished.and_then(|at| at.checked_add(Duration::from_secs(seconds)).ok());
    let since = since.map_or_else(String::new, |at| format!(" at about {at}"));
    format!(
        "{since}, {seconds} s after the end, as spec.runtime.config.ttlSecondsAfterFinished of the run says; {} keeps all of them longer",
        env::RUNNER_JOB_LOG_RETENTION
    )
}

/// What was found out about the Job that was missed last.
fn missing(run: &AgentRun) -> Option<&JobMissing> {
    view::jobs(run).find_map(|job| job.missing.as_ref())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(config: Value, status: Value, job_is_there: bool) -> String {
        let run: AgentRun = serde_json::from_value(json!({
            "metadata": {"name": "fix"},
            "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job", "config": config}},
            "status": status,
        }))
        .unwrap();
        no_pods(&run, job_is_there, "2026-01-01T13:00:00Z".parse().unwrap())
    }

    fn over(phase: &str) -> Value {
        json!({"phase": phase, "startedAt": "2026-01-01T11:00:00Z", "finishedAt": "2026-01-01T12:00:00Z"})
    }

    #[test]
    fn it_is_said_since_when_and_by_which_setting() {
        let mut lost = over("Failed");
        lost["jobRef"] = json!({"name": "fix-job", "missing": {"class": "JobDeletedUnknown", "noticedAt": "2026-01-01T12:00:01Z"}});
        let ended = |phase| format!("fix ended {phase} at 2026-01-01T12:00:00Z (60m ago)");
        for (row, config, status, job, expected) in [
            (
                "not begun",
                json!({}),
                json!({"phase": "Pending"}),
                false,
                "fix has no pod to read from: it is Pending".to_owned(),
            ),
            (
                "the operator's setting",
                json!({}),
                over("Succeeded"),
                false,
                format!(
                    "{}; its logs went with its pods when its Job was removed; how long after the end is set by \
                    JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS, and AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS keeps it longer for its logs",
                    ended("Succeeded")
                ),
            ),
            (
                "the operator's setting for failures",
                json!({}),
                over("Failed"),
                false,
                format!(
                    "{}; its logs went with its pods when its Job was removed; how long after the end is set by \
                    AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS, else JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS, and \
                    AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS keeps it longer for its logs",
                    ended("Failed")
                ),
            ),
            (
                "the run's own",
                json!({"ttlSecondsAfterFinished": 60}),
                over("Succeeded"),
                false,
                format!(
                    "{}; its logs went with its pods at about 2026-01-01T12:01:00Z, 60 s after the end, as \
                    spec.runtime.config.ttlSecondsAfterFinished of the run says; AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS \
                    keeps all of them longer",
                    ended("Succeeded")
                ),
            ),
            (
                "pods removed by someone",
                json!({}),
                over("Succeeded"),
                true,
                format!(
                    "{}; its Job is still kept, but someone removed its pods, and its logs with them",
                    ended("Succeeded")
                ),
            ),
            (
                "Job missing",
                json!({}),
                lost,
                false,
                format!(
                    "{}; its Job went before its time (JobDeletedUnknown), and its logs with it since 2026-01-01T12:00:01Z \
                    at the latest",
                    ended("Failed")
                ),
            ),
            (
                "never begun",
                json!({}),
                json!({"phase": "Cancelled", "finishedAt": "2026-01-01T12:00:00Z"}),
                false,
                format!("{} without a pod: Cancelled", ended("Cancelled")),
            ),
        ] {
            assert_eq!(said(config, status, job), expected, "{row}");
        }
    }
}
