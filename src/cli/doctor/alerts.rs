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

impl Alert {
    /// All alerts, as the rules of the chart name them.
    pub(crate) const ALL: &'static [Self] = &[
        Self {
            name: "AgentsControllersNoLeader",
            checks: &[
                "controllers",
                "lease",
                "rights-controllers",
                "kinds-served",
                "monitor-selected",
                "sidecar-scraped",
            ],
        },
        Self {
            name: "AgentsControllersSeveralLeaders",
            checks: &["lease", "lease-clock", "clock"],
        },
        Self {
            name: "AgentsReconcileErrors",
            checks: &[
                "rights-controllers",
                "kinds-current",
                "webhook-answers",
                "other-webhooks",
            ],
        },
        Self {
            name: "AgentsReconcileForbidden",
            checks: &["rights-controllers"],
        },
        Self {
            name: "AgentsReconcilePanics",
            checks: &["versions", "kinds-current"],
        },
        Self {
            name: "AgentsReconcileStuck",
            checks: &["controllers", "lease", "webhook-answers", "other-webhooks"],
        },
        Self {
            name: "AgentsApiCallsFailing",
            checks: &["rights-controllers", "webhook-answers", "other-webhooks"],
        },
        Self {
            name: "AgentsEventsDropped",
            checks: &["rights-controllers", "lease"],
        },
        Self {
            name: "AgentsJobUnrecorded",
            checks: &[
                "jobs-recorded",
                "lease",
                "rights-controllers",
                "webhook-answers",
                "other-webhooks",
            ],
        },
        Self {
            name: "AgentsJobMissing",
            checks: &["job-ttl", "jobs-recorded", "other-webhooks"],
        },
        Self {
            name: "AgentsJobOutcomeLost",
            checks: &["job-ttl", "jobs-recorded", "lease"],
        },
        Self {
            name: "AgentsJobsHeld",
            checks: &["jobs-held", "lease", "rights-controllers"],
        },
        Self {
            name: "AgentsJobHazard",
            checks: &["job-ttl", "jobs-held", "other-webhooks"],
        },
        Self {
            name: "AgentsJobTtlShort",
            checks: &["job-ttl", "jobs-recorded", "lease"],
        },
        Self {
            name: "AgentsOrphanedPods",
            checks: &["jobs-held", "lease"],
        },
        Self {
            name: "AgentsJobWatchDown",
            checks: &["rights-controllers", "kinds-served"],
        },
        Self {
            name: "AgentsRunsFailing",
            checks: &["jobs-recorded", "job-ttl", "other-webhooks"],
        },
        Self {
            name: "AgentsQueueStuck",
            checks: &[
                "lease",
                "controllers",
                "runs-waiting",
                "runs-blocked",
                "other-webhooks",
            ],
        },
        Self {
            name: "AgentsRunsWaitLong",
            checks: &["runs-waiting", "runs-blocked", "lease"],
        },
        Self {
            name: "AgentsRunsBlocked",
            checks: &["runs-blocked", "kinds-current"],
        },
        Self {
            name: "AgentsSidecarDown",
            checks: &["controllers", "sidecar-scraped", "monitor-selected"],
        },
        Self {
            name: "AgentsSidecarNothingReceived",
            checks: &["controllers", "lease", "sidecar-scraped"],
        },
        Self {
            name: "AgentsSidecarRefusingPoints",
            checks: &["versions", "clock", "lease-clock"],
        },
        Self {
            name: "AgentsSidecarCardinalityCap",
            checks: &["sidecar-scraped"],
        },
        Self {
            name: "AgentsSidecarSourceDown",
            checks: &["controllers", "lease", "control-plane"],
        },
        Self {
            name: "AgentsSidecarMemoryPressure",
            checks: &["controllers", "sidecar-scraped"],
        },
        Self {
            name: "AgentsSidecarScrapesCut",
            checks: &["sidecar-scraped", "monitor-selected"],
        },
        Self {
            name: "AgentsSidecarForwardDropping",
            checks: &["controllers", "sidecar-scraped"],
        },
        Self {
            name: "AgentsWebhookDown",
            checks: &[
                "webhook",
                "webhook-endpoints",
                "webhook-certificate",
                "webhook-answers",
                "rights-webhook",
                "monitor-selected",
            ],
        },
        Self {
            name: "AgentsWebhookErroring",
            checks: &[
                "webhook-answers",
                "webhook-registration",
                "kinds-current",
                "rights-webhook",
            ],
        },
        Self {
            name: "AgentsWebhookPanics",
            checks: &["webhook", "versions", "kinds-current"],
        },
        Self {
            name: "AgentsWebhookSlow",
            checks: &["webhook", "webhook-endpoints", "webhook-answers"],
        },
        Self {
            name: "AgentsWebhookShedding",
            checks: &["webhook", "webhook-endpoints"],
        },
        Self {
            name: "AgentsWebhookCertificateExpiring",
            checks: &[
                "webhook-certificate-term",
                "webhook-certificate",
                "cert-manager",
                "clock",
            ],
        },
        Self {
            name: "AgentsWebhookCertificateReloadFailing",
            checks: &["webhook-certificate", "webhook-ca-bundle", "cert-manager"],
        },
        Self {
            name: "AgentsWebhookRegistrationAtFault",
            checks: &[
                "webhook-registered",
                "webhook-failure-policy",
                "webhook-registration",
                "webhook-ca-bundle",
            ],
        },
        Self {
            name: "AgentsWebhookPolicyRejected",
            checks: &["webhook", "versions"],
        },
        Self {
            name: "AgentsWebhookLookupStale",
            checks: &["rights-webhook", "kinds-served"],
        },
        Self {
            name: "AgentsWebhookPassedBy",
            checks: &[
                "webhook-answers",
                "webhook-endpoints",
                "webhook-certificate",
                "webhook-ca-bundle",
                "webhook-failure-policy",
            ],
        },
        Self {
            name: "AgentsWebhookBlocksUsers",
            checks: &[
                "webhook-answers",
                "webhook-endpoints",
                "webhook-certificate",
                "webhook-ca-bundle",
                "webhook-failure-policy",
                "other-webhooks",
            ],
        },
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
