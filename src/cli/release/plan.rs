//! What is held in a namespace, and what would be lost if it were let go.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};

use crate::api::contract::{annotation, finalizer, label};
use crate::api::custody::{LastStatus, Outcome, PodState, last_status_of, pod_state_of};
use crate::cli::shown::{Cell, Paint, Tone, plain, table};

/// Runs that are named in the last sentence; the others are counted.
const NAMED: usize = 10;

/// What is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    Job,
    Pod,
    AgentRun,
    ToolRun,
}

impl Thing {
    fn kind(self) -> &'static str {
        match self {
            Self::Job => "Job",
            Self::Pod => "Pod",
            Self::AgentRun => "AgentRun",
            Self::ToolRun => "ToolRun",
        }
    }
}

/// What the object tells that is told nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing: the outcome is stored.
    Recorded,
    /// How the Job ended.
    Ended(Outcome),
    /// Nothing yet; how the Job will end.
    AtWork,
    /// What its Job tells as well.
    WithJob,
    /// How a Job ended that is gone, or that nothing holds any more.
    LastWitness(PodState),
    /// Nothing: a run waits until what it started has been stopped.
    Cleanup,
}

impl Fate {
    fn is_lost(self) -> bool {
        match self {
            Self::Recorded | Self::WithJob | Self::Cleanup => false,
            Self::Ended(_) | Self::AtWork | Self::LastWitness(_) => true,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Recorded => "outcome recorded",
            Self::Ended(Outcome::Succeeded) => "ended well, not recorded",
            Self::Ended(Outcome::Failed) => "ended badly, not recorded",
            Self::AtWork => "at work, nothing to record yet",
            Self::WithJob => "goes with its Job",
            Self::LastWitness(PodState::Succeeded) => "last witness: ended well",
            Self::LastWitness(PodState::Failed) => "last witness: ended badly",
            Self::LastWitness(PodState::Active) => "last witness: at work",
            Self::Cleanup => "held until its Jobs are stopped",
        }
    }
}

/// One object that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) thing: Thing,
    pub(super) name: String,
    pub(super) run: String,
    pub(super) fate: Fate,
}

/// All that is held: Jobs first, since a Job whose pods go before it might start new ones, and runs last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) held: Vec<Held>,
}

impl Plan {
    /// What is held among these.
    pub(super) fn of(jobs: &[Job], pods: &[Pod]) -> Self {
        let held_jobs = jobs.iter().filter(|job| has(*job, finalizer::OUTCOME));
        let held_jobs = held_jobs.map(|job| Held {
            thing: Thing::Job,
            name: job.name_any(),
            run: run_of(job),
            fate: fate_of_job(job),
        });
        let held_pods = pods.iter().filter(|pod| has(*pod, finalizer::EVIDENCE));
        let held_pods = held_pods.map(|pod| Held {
            thing: Thing::Pod,
            name: pod.name_any(),
            run: run_of(pod),
            fate: fate_of_pod(pod, jobs),
        });
        Self {
            held: held_jobs.chain(held_pods).collect(),
        }
    }

    /// The same, with those of these runs that are held.
    pub(super) fn and_runs<K: Resource>(mut self, thing: Thing, runs: &[K]) -> Self {
        let held = runs
            .iter()
            .filter(|run| has(*run, finalizer::RUNTIME_CLEANUP));
        self.held.extend(held.map(|run| Held {
            thing,
            name: run.name_any(),
            run: format!("{}/{}", thing.kind(), run.name_any()),
            fate: Fate::Cleanup,
        }));
        self
    }

    /// Whether an outcome would be lost.
    pub(super) fn loses(&self) -> bool {
        self.held.iter().any(|held| held.fate.is_lost())
    }

    /// How many objects are held, in words.
    pub(super) fn count(&self) -> String {
        match self.held.len() {
            1 => "1 object".to_owned(),
            count => format!("{count} objects"),
        }
    }

    /// What a person is shown before anything is done.
    pub(super) fn text(&self, place: &str, paint: Paint) -> String {
        if self.held.is_empty() {
            return format!("Nothing of ours is held in {place}.\n");
        }
        let rows: Vec<Vec<Cell>> = self.held.iter().map(row).collect();
        let mut text = table(&["KIND", "NAME", "RUN", "STATE"], &rows, paint);
        let are = if self.held.len() == 1 { "is" } else { "are" };
        text += &format!("\n{} {are} held in {place}.\n", self.count());
        let lost: BTreeSet<&str> = self
            .held
            .iter()
            .filter(|held| held.fate.is_lost())
            .map(|held| held.run.as_str())
            .collect();
        text += &match lost.len() {
            0 => "Every outcome is recorded: nothing would be lost.\n".to_owned(),
            count => {
                let named: Vec<_> = lost.iter().take(NAMED).map(|run| plain(run)).collect();
                let more = match count.saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "Outcomes that are not recorded and would be lost: {}{more}.\n",
                    named.join(", ")
                )
            }
        };
        text
    }
}

fn row(held: &Held) -> Vec<Cell> {
    let tone = if held.fate.is_lost() {
        Tone::Bad
    } else {
        Tone::Good
    };
    vec![
        held.thing.kind().into(),
        (&held.name).into(),
        (&held.run).into(),
        Cell::toned(held.fate.words(), Some(tone)),
    ]
}

fn has<K: Resource>(object: &K, name: &str) -> bool {
    object
        .finalizers()
        .iter()
        .any(|finalizer| finalizer == name)
}

/// The finalizers without one of them; none if it is not among them.
pub(super) fn without<'a>(finalizers: &'a [String], name: &str) -> Option<Vec<&'a str>> {
    let rest: Vec<&str> = finalizers
        .iter()
        .map(String::as_str)
        .filter(|finalizer| *finalizer != name)
        .collect();
    (rest.len() < finalizers.len()).then_some(rest)
}

fn is_recorded(job: &Job) -> bool {
    job.annotations().contains_key(annotation::OUTCOME_RECORDED)
}

fn fate_of_job(job: &Job) -> Fate {
    if is_recorded(job) {
        return Fate::Recorded;
    }
    match last_status_of(job) {
        LastStatus::Finished { outcome, .. } => Fate::Ended(outcome),
        LastStatus::Active | LastStatus::Unknown => Fate::AtWork,
    }
}

fn fate_of_pod(pod: &Pod, jobs: &[Job]) -> Fate {
    let owners = pod.owner_references();
    let own = jobs.iter().find(|job| {
        let uid = job.uid();
        owners.iter().any(|owner| Some(&owner.uid) == uid.as_ref())
    });
    match own {
        Some(job) if is_recorded(job) => Fate::Recorded,
        Some(job) if has(job, finalizer::OUTCOME) => Fate::WithJob,
        Some(_) | None => Fate::LastWitness(pod_state_of(pod)),
    }
}

/// The run that an object belongs to, by its labels: a pod has the Job for its owner.
fn run_of<K: Resource>(object: &K) -> String {
    let kinds = [("AgentRun", label::AGENT_RUN), ("ToolRun", label::TOOL_RUN)];
    let run = kinds.iter().find_map(|(kind, name)| {
        let run = object.labels().get(*name)?;
        Some(format!("{kind}/{run}"))
    });
    run.unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::kinds::AgentRun;

    fn job(name: &str, recorded: bool, ended: Option<&str>) -> Job {
        let annotations = match recorded {
            true => json!({annotation::OUTCOME_RECORDED: "2026-01-01T12:00:00Z"}),
            false => json!({}),
        };
        let conditions: Vec<Value> = ended
            .into_iter()
            .map(|type_| {
                json!({
                    "type": type_, "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z",
                })
            })
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": format!("{name}-uid"), "finalizers": [finalizer::OUTCOME],
                "labels": {label::AGENT_RUN: name}, "annotations": annotations},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn pod(job: &str, phase: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": format!("{job}-pod"), "finalizers": [finalizer::EVIDENCE, "other"],
                "labels": {label::TOOL_RUN: job},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": format!("{job}-uid")}]},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn what_is_not_recorded_is_lost_and_a_pod_is_the_last_witness_of_a_job_that_is_gone() {
        let mut free = job("free", false, Some("Complete"));
        free.metadata.finalizers = None;
        let jobs = [
            job("stored", true, Some("Complete")),
            job("ended", false, Some("Failed")),
            job("busy", false, None),
            free,
        ];
        let pods = [
            pod("stored", "Succeeded"),
            pod("ended", "Failed"),
            pod("free", "Succeeded"),
            pod("gone", "Running"),
        ];
        let plan = Plan::of(&jobs, &pods);
        let found: Vec<_> = plan
            .held
            .iter()
            .map(|held| (held.name.as_str(), held.fate))
            .collect();
        let expected = [
            ("stored", Fate::Recorded),
            ("ended", Fate::Ended(Outcome::Failed)),
            ("busy", Fate::AtWork),
            ("stored-pod", Fate::Recorded),
            ("ended-pod", Fate::WithJob),
            ("free-pod", Fate::LastWitness(PodState::Succeeded)),
            ("gone-pod", Fate::LastWitness(PodState::Active)),
        ];
        assert_eq!(found, expected);
        assert!(plan.loses());
        assert!(!Plan::of(&jobs[..1], &pods[..1]).loses());
    }

    #[test]
    fn a_person_sees_what_would_be_lost() {
        let plan = Plan::of(&[job("fix", false, Some("Complete"))], &[]);
        let expected = "KIND   NAME   RUN            STATE\n\
            Job    fix    AgentRun/fix   ended well, not recorded\n\n\
            1 object is held in namespace team.\n\
            Outcomes that are not recorded and would be lost: AgentRun/fix.\n";
        assert_eq!(plan.text("namespace team", Paint::PLAIN), expected);
        let plan = Plan::of(&[job("fix", true, None)], &[pod("fix", "Failed")]);
        let text = plan.text("namespace team", Paint::PLAIN);
        assert!(
            text.ends_with("Every outcome is recorded: nothing would be lost.\n"),
            "{text}"
        );
        let nothing = Plan::default().text("namespace team", Paint::PLAIN);
        assert_eq!(nothing, "Nothing of ours is held in namespace team.\n");
    }

    #[test]
    fn a_run_is_held_for_its_cleanup_and_loses_nothing() {
        let run = |finalizers: Value| -> AgentRun {
            serde_json::from_value(json!({
                "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
                "metadata": {"name": "fix", "finalizers": finalizers},
                "spec": {"agentRef": {"name": "coder"}, "runtime": {"type": "job"}},
            }))
            .unwrap()
        };
        let runs = [
            run(json!([finalizer::RUNTIME_CLEANUP])),
            run(json!(["other"])),
        ];
        let plan = Plan::default().and_runs(Thing::AgentRun, &runs);
        let expected = "KIND       NAME   RUN            STATE\n\
            AgentRun   fix    AgentRun/fix   held until its Jobs are stopped\n\n\
            1 object is held in namespace team.\n\
            Every outcome is recorded: nothing would be lost.\n";
        assert_eq!(plan.text("namespace team", Paint::PLAIN), expected);
        assert!(!plan.loses());
    }

    #[test]
    fn only_our_finalizer_goes() {
        let all = ["a".to_owned(), "b".to_owned()];
        assert_eq!(without(&all, "a"), Some(vec!["b"]));
        assert_eq!(without(&all, "c"), None);
    }
}
