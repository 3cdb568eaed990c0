//! Which checks tell what is behind an alert. A test holds the list against the alerts of the chart.

/// An alert of the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alert {
    /// Its name.
    pub(crate) name: &'static str,
    checks: &'static [&'static str],
}

/// Without this one the others say nothing.
const FIRST: &str = "api-server";

const fn alert(name: &'static str, checks: &'static [&'static str]) -> Alert {
    Alert { name, checks }
}

impl Alert {
    /// All alerts, as the rules of the chart name them.
    pub(crate) const ALL: &'static [Self] = &[
        alert(
            "AgentsControllersNoLeader",
            &[
                "controllers",
                "lease",
                "rights-controllers",
                "kinds-served",
                "monitor-selected",
                "sidecar-scraped",
            ],
        ),
        alert(
            "AgentsControllersSeveralLeaders",
            &["lease", "lease-clock", "clock"],
        ),
        alert(
            "AgentsReconcileErrors",
            &[
                "rights-controllers",
                "kinds-current",
                "webhook-answers",
                "other-webhooks",
            ],
        ),
        alert("AgentsReconcileForbidden", &["rights-controllers"]),
        alert("AgentsReconcilePanics", &["versions", "kinds-current"]),
        alert(
            "AgentsReconcileStuck",
            &["controllers", "lease", "webhook-answers", "other-webhooks"],
        ),
        alert(
            "AgentsApiCallsFailing",
            &["rights-controllers", "webhook-answers", "other-webhooks"],
        ),
        alert("AgentsEventsDropped", &["rights-controllers", "lease"]),
        alert(
            "AgentsJobUnrecorded",
            &[
                "jobs-recorded",
                "lease",
                "rights-controllers",
                "webhook-answers",
                "other-webhooks",
            ],
        ),
        alert(
            "AgentsJobMissing",
            &["job-ttl", "jobs-recorded", "other-webhooks"],
        ),
        alert(
            "AgentsJobOutcomeLost",
            &["job-ttl", "jobs-recorded", "lease"],
        ),
        alert(
            "AgentsJobsHeld",
            &["jobs-held", "lease", "rights-controllers"],
        ),
        alert(
            "AgentsJobHazard",
            &["job-ttl", "jobs-held", "other-webhooks"],
        ),
        alert("AgentsJobTtlShort", &["job-ttl", "jobs-recorded", "lease"]),
        alert("AgentsOrphanedPods", &["jobs-held", "lease"]),
        alert(
            "AgentsJobWatchDown",
            &["rights-controllers", "kinds-served"],
        ),
        alert(
            "AgentsRunsFailing",
            &["jobs-recorded", "job-ttl", "other-webhooks"],
        ),
        alert(
            "AgentsQueueStuck",
            &[
                "lease",
                "controllers",
                "runs-waiting",
                "runs-blocked",
                "other-webhooks",
            ],
        ),
        alert(
            "AgentsRunsWaitLong",
            &["runs-waiting", "runs-blocked", "lease"],
        ),
        alert("AgentsRunsBlocked", &["runs-blocked", "kinds-current"]),
        alert(
            "AgentsSidecarDown",
            &["controllers", "sidecar-scraped", "monitor-selected"],
        ),
        alert(
            "AgentsSidecarNothingReceived",
            &["controllers", "lease", "sidecar-scraped"],
        ),
        alert(
            "AgentsSidecarRefusingPoints",
            &["versions", "clock", "lease-clock"],
        ),
        alert("AgentsSidecarCardinalityCap", &["sidecar-scraped"]),
        alert(
            "AgentsSidecarSourceDown",
            &["controllers", "lease", "control-plane"],
        ),
        alert(
            "AgentsSidecarMemoryPressure",
            &["controllers", "sidecar-scraped"],
        ),
        alert(
            "AgentsSidecarScrapesCut",
            &["sidecar-scraped", "monitor-selected"],
        ),
        alert(
            "AgentsSidecarForwardDropping",
            &["controllers", "sidecar-scraped"],
        ),
        alert(
            "AgentsWebhookDown",
            &[
                "webhook",
                "webhook-endpoints",
                "webhook-certificate",
                "webhook-answers",
                "rights-webhook",
                "monitor-selected",
            ],
        ),
        alert(
            "AgentsWebhookErroring",
            &[
                "webhook-answers",
                "webhook-registration",
                "kinds-current",
                "rights-webhook",
            ],
        ),
        alert(
            "AgentsWebhookPanics",
            &["webhook", "versions", "kinds-current"],
        ),
        alert(
            "AgentsWebhookSlow",
            &["webhook", "webhook-endpoints", "webhook-answers"],
        ),
        alert("AgentsWebhookShedding", &["webhook", "webhook-endpoints"]),
        alert(
            "AgentsWebhookCertificateExpiring",
            &[
                "webhook-certificate-term",
                "webhook-certificate",
                "cert-manager",
                "clock",
            ],
        ),
        alert(
            "AgentsWebhookCertificateReloadFailing",
            &["webhook-certificate", "webhook-ca-bundle", "cert-manager"],
        ),
        alert(
            "AgentsWebhookRegistrationAtFault",
            &[
                "webhook-registered",
                "webhook-failure-policy",
                "webhook-registration",
                "webhook-ca-bundle",
            ],
        ),
        alert("AgentsWebhookPolicyRejected", &["webhook", "versions"]),
        alert(
            "AgentsWebhookLookupStale",
            &["rights-webhook", "kinds-served"],
        ),
        alert(
            "AgentsWebhookPassedBy",
            &[
                "webhook-answers",
                "webhook-endpoints",
                "webhook-certificate",
                "webhook-ca-bundle",
                "webhook-failure-policy",
            ],
        ),
        alert(
            "AgentsWebhookBlocksUsers",
            &[
                "webhook-answers",
                "webhook-endpoints",
                "webhook-certificate",
                "webhook-ca-bundle",
                "webhook-failure-policy",
                "other-webhooks",
            ],
        ),
    ];

    /// The alert of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        let mut all = Self::ALL.iter();
        all.find(|alert| alert.name.eq_ignore_ascii_case(name))
    }

    /// Whether a check says something about it.
    pub(crate) fn asks_for(&self, check: &str) -> bool {
        check == FIRST || self.checks.contains(&check)
    }

    /// Where it is explained, as a path in the repository.
    pub(crate) fn runbook(&self) -> String {
        format!("docs/runbooks/{}.md", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::all;
    use super::*;

    #[test]
    fn every_alert_asks_for_checks_that_there_are() {
        for alert in Alert::ALL {
            assert!(!alert.checks.is_empty(), "{}", alert.name);
            for wanted in alert.checks {
                let known = all().any(|check| check.id == *wanted);
                assert!(known, "{}: {wanted}", alert.name);
            }
        }
        let named = Alert::named("agentswebhookdown").map(|alert| alert.name);
        assert_eq!(named, Some("AgentsWebhookDown"));
    }
}
