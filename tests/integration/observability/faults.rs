//! Each alert is provoked by its fault; where that cannot be done for certain, a test of the program shows what is counted.

mod alone;
mod hindered;
mod senders;
mod watch;

use std::{collections::BTreeSet, fs};

use support::fixtures::repository;

use super::rules;

/// The test that provokes an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Story {
    /// Programs that end, Jobs that someone meddles with, a webhook that is gone: [`alone`].
    Alone,
    /// A webhook and controllers that are kept from their work: [`hindered`].
    Hindered,
    /// A sidecar that is sent too much: [`senders`].
    Senders,
}

/// How an alert is shown to fire in its fault. promtool shows each besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// For real, by this fault.
    By(Story, &'static str),
    /// By promtool, for this reason, while a test of the program shows what it counts.
    Elsewhere(&'static str, Counted),
}

/// A test that shows what is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    file: &'static str,
    test: &'static str,
    /// What it calls the metric.
    metric: &'static str,
}

const NEEDS_A_DEFECT: &str = "only a defect of the program brings it about";

use Shown::{By, Elsewhere};
use Story::{Alone, Hindered, Senders};

/// Every alert.
const ALERTS: [(&str, Shown); 40] = [
    (
        "AgentsApiCallsFailing",
        By(Hindered, "the API server is away"),
    ),
    (
        "AgentsControllersNoLeader",
        By(Alone, "the controller ends"),
    ),
    (
        "AgentsControllersSeveralLeaders",
        By(Hindered, "a second controller takes no notice of the lease"),
    ),
    (
        "AgentsEventsDropped",
        By(Hindered, "the namespace of an Event is gone"),
    ),
    (
        "AgentsJobHazard",
        By(Alone, "someone puts a time to live on a Job"),
    ),
    (
        "AgentsJobMissing",
        By(Alone, "someone lets a Job go and deletes it"),
    ),
    (
        "AgentsJobOutcomeLost",
        By(Alone, "someone lets a Job and its pod go and deletes both"),
    ),
    (
        "AgentsJobTtlShort",
        By(Alone, "someone puts a time to live on a Job"),
    ),
    (
        "AgentsJobUnrecorded",
        By(Alone, "a Job ends while the controller is gone"),
    ),
    ("AgentsJobWatchDown", By(Hindered, "the API server is away")),
    (
        "AgentsJobsHeld",
        By(Alone, "a Job is deleted while nobody looks after it"),
    ),
    (
        "AgentsOrphanedPods",
        By(Hindered, "someone deletes a Job and leaves its pod"),
    ),
    (
        "AgentsQueueStuck",
        By(
            Hindered,
            "the limit of the rate lets none of the runs begin",
        ),
    ),
    (
        "AgentsReconcileErrors",
        By(Hindered, "the API server does not answer"),
    ),
    (
        "AgentsReconcileForbidden",
        By(Alone, "a quota allows no Job"),
    ),
    (
        "AgentsReconcilePanics",
        Elsewhere(
            NEEDS_A_DEFECT,
            Counted {
                file: "src/controller/driver/work/tests.rs",
                test: "a_reconcile_that_panics_is_counted_and_the_others_go_on",
                metric: "metric::RECONCILE_PANICS",
            },
        ),
    ),
    (
        "AgentsReconcileStuck",
        By(Hindered, "the API server does not answer"),
    ),
    (
        "AgentsRunsBlocked",
        By(Alone, "a run names an Agent that is not there"),
    ),
    ("AgentsRunsFailing", By(Alone, "six runs fail")),
    (
        "AgentsRunsWaitLong",
        By(
            Hindered,
            "the limit of the rate lets none of the runs begin",
        ),
    ),
    (
        "AgentsSidecarCardinalityCap",
        By(Senders, "a sender invents series"),
    ),
    ("AgentsSidecarDown", By(Alone, "the sidecar ends")),
    (
        "AgentsSidecarForwardDropping",
        By(Senders, "the target of what goes on is not there"),
    ),
    (
        "AgentsSidecarMemoryPressure",
        By(Senders, "a sender fills the memory"),
    ),
    (
        "AgentsSidecarNothingReceived",
        By(Alone, "the controller ends"),
    ),
    (
        "AgentsSidecarRefusingPoints",
        By(Senders, "a sender says no time"),
    ),
    (
        "AgentsSidecarScrapesCut",
        Elsewhere(
            "how much of a page the kernel takes for readers who stand still is for it to choose",
            Counted {
                file: "sidecar/src/expose/page/tests.rs",
                test: "a_scrape_does_not_wait_for_ever",
                metric: "agents_sidecar_page_cut_total{cause=",
            },
        ),
    ),
    (
        "AgentsSidecarSourceDown",
        By(Alone, "the controller is killed"),
    ),
    (
        "AgentsWebhookBlocksUsers",
        By(Alone, "the webhook ends where nothing may pass unasked"),
    ),
    (
        "AgentsWebhookCertificateExpiring",
        By(
            Alone,
            "the certificate is changed for one that ends in days",
        ),
    ),
    (
        "AgentsWebhookCertificateReloadFailing",
        By(Alone, "the certificate is changed for something else"),
    ),
    ("AgentsWebhookDown", By(Alone, "the webhook ends")),
    (
        "AgentsWebhookErroring",
        By(Hindered, "more reviews come at once than there is room for"),
    ),
    (
        "AgentsWebhookLookupStale",
        By(Hindered, "the API server is away"),
    ),
    (
        "AgentsWebhookPanics",
        Elsewhere(
            NEEDS_A_DEFECT,
            Counted {
                file: "tests/integration/webhook/panics.rs",
                test: "a_panic_is_answered_with_500_and_the_uid_and_the_next_review_is_judged",
                metric: "panics_total 4",
            },
        ),
    ),
    (
        "AgentsWebhookPassedBy",
        By(Alone, "the webhook ends where requests may pass"),
    ),
    (
        "AgentsWebhookPolicyRejected",
        By(Alone, "the policy is changed for something else"),
    ),
    (
        "AgentsWebhookRegistrationAtFault",
        By(Hindered, "someone deletes the webhook configurations"),
    ),
    (
        "AgentsWebhookShedding",
        By(Hindered, "more reviews come at once than there is room for"),
    ),
    (
        "AgentsWebhookSlow",
        By(Hindered, "the body of a review drips in"),
    ),
];

/// Alerts that a test provokes.
fn provoked(story: Story) -> BTreeSet<&'static str> {
    let is_told = |shown: &Shown| matches!(shown, By(by, _) if *by == story);
    let told = ALERTS.iter().filter(|(_, shown)| is_told(shown));
    told.map(|(alert, _)| *alert).collect()
}

#[test]
fn every_alert_is_provoked_or_counted_in_another_test() {
    let known: BTreeSet<_> = ALERTS
        .iter()
        .map(|(alert, _)| (*alert).to_owned())
        .collect();
    assert_eq!(known.len(), ALERTS.len(), "one is there twice");
    assert_eq!(known, rules::alerts());
    let stories = [Alone, Hindered, Senders].map(|story| provoked(story).len());
    assert_eq!(stories, [19, 14, 4]);
}

#[test]
fn what_is_counted_elsewhere_is_counted_in_a_test_that_there_is() {
    for (alert, shown) in ALERTS {
        let Elsewhere(_, Counted { file, test, metric }) = shown else {
            continue;
        };
        let text = fs::read_to_string(repository().join(file)).unwrap();
        let (before, from) = text
            .split_once(&format!("\nasync fn {test}("))
            .unwrap_or_else(|| panic!("{alert}: no {test} in {file}"));
        let mark = before.lines().last().unwrap_or_default();
        assert!(mark.starts_with("#[tokio::test"), "{alert}: {mark}");
        let body = from.split("\n}\n").next().unwrap_or_default();
        assert!(body.contains(metric), "{alert}: {test} counts no {metric}");
    }
}
