//! Each alert is provoked by its fault, or it is said why only promtool shows it. [`alone`] provokes them.

mod alone;

use std::collections::BTreeSet;

use super::rules;

/// How an alert is shown to fire in its fault. promtool shows each besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// For real, by this fault.
    By(&'static str),
    /// By promtool only, for this reason.
    PromtoolOnly(&'static str),
}

use Shown::{By, PromtoolOnly};

const TAKES_MINUTES: Shown = PromtoolOnly("its bar is minutes that pass, whatever the windows are");
const NEEDS_A_DEFECT: Shown = PromtoolOnly("only a defect of the program brings it about");
const NEEDS_LOAD: Shown = PromtoolOnly("only load on a whole machine brings it about for certain");
const SHOWN_ELSEWHERE: Shown =
    PromtoolOnly("what it counts is shown by the tests of the program that counts it");

/// Every alert.
const ALERTS: [(&str, Shown); 40] = [
    ("AgentsApiCallsFailing", SHOWN_ELSEWHERE),
    ("AgentsControllersNoLeader", By("the controller ends")),
    ("AgentsControllersSeveralLeaders", SHOWN_ELSEWHERE),
    ("AgentsEventsDropped", SHOWN_ELSEWHERE),
    (
        "AgentsJobHazard",
        By("someone puts a time to live on a Job"),
    ),
    (
        "AgentsJobMissing",
        By("someone lets a Job go and deletes it"),
    ),
    (
        "AgentsJobOutcomeLost",
        By("someone lets a Job and its pod go and deletes both"),
    ),
    (
        "AgentsJobTtlShort",
        By("someone puts a time to live on a Job"),
    ),
    ("AgentsJobUnrecorded", TAKES_MINUTES),
    ("AgentsJobWatchDown", SHOWN_ELSEWHERE),
    (
        "AgentsJobsHeld",
        By("a Job is deleted while nobody looks after it"),
    ),
    ("AgentsOrphanedPods", SHOWN_ELSEWHERE),
    ("AgentsQueueStuck", NEEDS_A_DEFECT),
    ("AgentsReconcileErrors", SHOWN_ELSEWHERE),
    ("AgentsReconcileForbidden", By("a quota allows no Job")),
    ("AgentsReconcilePanics", NEEDS_A_DEFECT),
    ("AgentsReconcileStuck", TAKES_MINUTES),
    (
        "AgentsRunsBlocked",
        By("a run names an Agent that is not there"),
    ),
    ("AgentsRunsFailing", By("six runs fail")),
    ("AgentsRunsWaitLong", TAKES_MINUTES),
    ("AgentsSidecarCardinalityCap", SHOWN_ELSEWHERE),
    ("AgentsSidecarDown", By("the sidecar ends")),
    ("AgentsSidecarForwardDropping", SHOWN_ELSEWHERE),
    ("AgentsSidecarMemoryPressure", NEEDS_LOAD),
    ("AgentsSidecarNothingReceived", By("the controller ends")),
    ("AgentsSidecarRefusingPoints", SHOWN_ELSEWHERE),
    ("AgentsSidecarScrapesCut", NEEDS_LOAD),
    ("AgentsSidecarSourceDown", By("the controller is killed")),
    (
        "AgentsWebhookBlocksUsers",
        By("the webhook ends where nothing may pass unasked"),
    ),
    (
        "AgentsWebhookCertificateExpiring",
        By("the certificate is changed for one that ends in days"),
    ),
    (
        "AgentsWebhookCertificateReloadFailing",
        By("the certificate is changed for something else"),
    ),
    ("AgentsWebhookDown", By("the webhook ends")),
    ("AgentsWebhookErroring", NEEDS_A_DEFECT),
    ("AgentsWebhookLookupStale", TAKES_MINUTES),
    ("AgentsWebhookPanics", NEEDS_A_DEFECT),
    (
        "AgentsWebhookPassedBy",
        By("the webhook ends where requests may pass"),
    ),
    (
        "AgentsWebhookPolicyRejected",
        By("the policy is changed for something else"),
    ),
    ("AgentsWebhookRegistrationAtFault", SHOWN_ELSEWHERE),
    ("AgentsWebhookShedding", NEEDS_LOAD),
    ("AgentsWebhookSlow", NEEDS_LOAD),
];

/// Alerts that are provoked.
fn provoked() -> BTreeSet<&'static str> {
    let real = ALERTS.iter().filter(|(_, shown)| matches!(shown, By(_)));
    real.map(|(alert, _)| *alert).collect()
}

#[test]
fn every_alert_is_provoked_or_has_a_reason_why_not() {
    let known: BTreeSet<_> = ALERTS
        .iter()
        .map(|(alert, _)| (*alert).to_owned())
        .collect();
    assert_eq!(known.len(), ALERTS.len(), "one is there twice");
    assert_eq!(known, rules::alerts());
    assert_eq!(provoked().len(), 18);
}
