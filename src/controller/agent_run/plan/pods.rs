//! What pods tell about the Job that they belong to.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

use crate::api::custody::{Evidence, Outcome, PodState, pod_state_of, report_of};
pub(in crate::controller) use crate::api::custody::{never_ran, witness};

/// Condition of a pod that something outside has ended.
pub(in crate::controller) const DISRUPTION: &str = "DisruptionTarget";

/// Whether a pod still works, or is about to.
pub(in crate::controller) fn works(pod: &Pod) -> bool {
    pod_state_of(pod) == PodState::Active && !never_ran(pod)
}

/// Whether a pod may still tell how it ends.
pub(in crate::controller) fn is_at_work(evidence: &Evidence) -> bool {
    evidence
        .pods
        .iter()
        .any(|pod| pod.state == PodState::Active)
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten()
}

fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

/// How the runner in these pods says that it ended; nothing if it says both.
pub(in crate::controller) fn report(pods: &[Arc<Pod>], container: &str) -> Option<Outcome> {
    let mut reports = pods.iter().filter_map(|pod| report_of(pod, container));
    let first = reports.next()?;
    reports.all(|next| next == first).then_some(first)
}

/// How the container of the last pod ended, for people: what ended the pod from outside counts more than what its
/// program then said. Others may have put containers of their own beside it.
pub(in crate::controller) fn detail(pods: &[Arc<Pod>], container: &str) -> Option<String> {
    let when = |pod: &&Arc<Pod>| {
        let ends = statuses(pod).filter_map(|status| ended(status)?.finished_at.as_ref());
        ends.map(|time| time.0).max()
    };
    let over = pods.iter();
    let over = over.filter(|pod| pod_state_of(pod) != PodState::Active);
    let last = over.max_by_key(when)?;
    let exit = exit(last, container);
    match (fate(last), exit) {
        (Some(fate), Some(exit)) => Some(format!("{fate}; {exit}")),
        (fate, exit) => fate.or(exit),
    }
}

fn exit(pod: &Pod, container: &str) -> Option<String> {
    let mut all = statuses(pod);
    let own = all.find(|status| status.name == container);
    let last = ended(own.or_else(|| statuses(pod).next())?)?;
    let code = last.exit_code;
    match last.reason.as_deref() {
        None | Some("Error" | "Completed" | "") => {
            Some(format!("the container ended with exit code {code}"))
        }
        Some(reason) => Some(format!(
            "the container ended with exit code {code} ({reason})"
        )),
    }
}

/// What ended the pod from outside, if anything did.
fn fate(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let mut conditions = status.conditions.iter().flatten();
    let target = conditions
        .find(|condition| condition.type_ == DISRUPTION && condition.status == "True")
        .and_then(|condition| condition.reason.as_deref());
    let words = match (target, status.reason.as_deref()) {
        (Some("PreemptionByScheduler"), _) => "the pod had to make room for a more important one",
        (Some("DeletionByTaintManager"), _) => "the node of the pod was lost or may not be used",
        (Some("DeletionByPodGC"), _) => "the node of the pod is gone",
        (Some("EvictionByEvictionAPI"), _) | (_, Some("Evicted")) => "the pod was evicted",
        (Some("TerminationByKubelet"), _) => "the node ended the pod",
        (_, Some("DeadlineExceeded")) => "the pod took longer than allowed",
        (_, Some("NodeLost")) => "the node of the pod was lost",
        (Some(other), _) => return Some(format!("the pod was ended from outside ({other})")),
        (None, _) => return None,
    };
    let word = target.or(status.reason.as_deref()).unwrap_or_default();
    Some(format!("{words} ({word})"))
}
