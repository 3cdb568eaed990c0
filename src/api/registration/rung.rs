//! The ladder by which the webhook is rolled out: `audit -> warn -> deny -> fail-labelled -> fail`.
//!
//! Each rung asks more of the cluster than the one before. Here is what a rung means, and by which numbers the next one
//! is known to be safe; `registration` turns a rung into webhook configurations. Nothing here looks at an object.

use std::fmt;
use std::str::FromStr;

/// How far the webhook has been rolled out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Faults are recorded: metrics, audit annotations, logs. Users notice nothing.
    #[default]
    Audit,
    /// Users are warned about faults as well.
    Warn,
    /// Faults are refused; while the webhook does not answer, everything is let through.
    Deny,
    /// The same, and in labelled namespaces nothing is stored while the webhook does not answer.
    FailLabelled,
    /// Nothing is stored anywhere while the webhook does not answer.
    Fail,
}

/// What the API server does while the webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailurePolicy {
    /// It lets the request through.
    Ignore,
    /// It refuses the request.
    Fail,
}

/// Which sort of namespace an object lives in, as far as the ladder cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Territory {
    /// One without the label of the rung `fail-labelled`.
    Plain,
    /// One with it.
    Labelled,
}

/// A number that says whether the next rung is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The metric to look at.
    pub metric: &'static str,
    /// What it must show before the next rung, in a sentence.
    pub wanted: &'static str,
}

impl Rung {
    /// All rungs, from the lowest.
    pub const ALL: [Self; 5] = [
        Self::Audit,
        Self::Warn,
        Self::Deny,
        Self::FailLabelled,
        Self::Fail,
    ];

    /// What the chart calls [`Self::Deny`].
    pub const DENY_IN_CHART: &'static str = "deny-ignore";

    /// The word as an operator writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Deny => "deny",
            Self::FailLabelled => "fail-labelled",
            Self::Fail => "fail",
        }
    }

    /// Whether faults are refused.
    pub const fn refuses(self) -> bool {
        match self {
            Self::Audit | Self::Warn => false,
            Self::Deny | Self::FailLabelled | Self::Fail => true,
        }
    }

    /// Whether users are warned about what is let through although it is at fault.
    pub const fn warns(self) -> bool {
        match self {
            Self::Audit => false,
            Self::Warn | Self::Deny | Self::FailLabelled | Self::Fail => true,
        }
    }

    /// What the API server does about a spec while the webhook does not answer. Status writes and the deletion of Jobs
    /// do not ask: they are let through on every rung, since CEL rules and a finalizer hold what matters there.
    pub const fn failure_policy(self, territory: Territory) -> FailurePolicy {
        match (self, territory) {
            (Self::Audit | Self::Warn | Self::Deny, _) | (Self::FailLabelled, Territory::Plain) => {
                FailurePolicy::Ignore
            }
            (Self::FailLabelled, Territory::Labelled) | (Self::Fail, _) => FailurePolicy::Fail,
        }
    }

    /// The rung above, if there is one.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Audit => Some(Self::Warn),
            Self::Warn => Some(Self::Deny),
            Self::Deny => Some(Self::FailLabelled),
            Self::FailLabelled => Some(Self::Fail),
            Self::Fail => None,
        }
    }

    /// What the rung does, in a sentence for the documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Audit => {
                "Faults are recorded in metrics, audit annotations and logs; nobody is refused or warned. Defaults, the trace annotation and repaired statuses are stored on every rung."
            }
            Self::Warn => "Users see a warning for each fault; nothing is refused.",
            Self::Deny => {
                "Faults are refused; while the webhook does not answer, everything is let through."
            }
            Self::FailLabelled => {
                "As `deny`, and in labelled namespaces nothing is stored while the webhook does not answer."
            }
            Self::Fail => "Nothing is stored in any namespace while the webhook does not answer.",
        }
    }

    /// The numbers that must be good, on this rung, before the next one is tried.
    pub const fn gates(self) -> &'static [Gate] {
        match self {
            Self::Audit => &[FINDINGS, UNKNOWN, SHADOW, WOULD_REFUSE],
            Self::Warn => &[FINDINGS, WOULD_REFUSE, REFUSALS, CALL_TIME],
            Self::Deny => &[FINDINGS, OPEN_FAILURES, SHED, CALL_TIME, CERTIFICATE],
            Self::FailLabelled => &[
                FINDINGS,
                CLOSED_FAILURES,
                OPEN_FAILURES,
                SHED,
                CALL_TIME,
                CERTIFICATE,
            ],
            Self::Fail => &[FINDINGS, CLOSED_FAILURES, CALL_TIME, CERTIFICATE],
        }
    }
}

const FINDINGS: Gate = Gate {
    metric: "agents_webhook_registration_findings",
    wanted: "0 for every check: what is registered in the cluster is what this rung means, and cannot lock the cluster.",
};

const UNKNOWN: Gate = Gate {
    metric: "agents_webhook_unknown_reviews_total",
    wanted: "No increase: every review that comes is about a kind that is known.",
};

const SHADOW: Gate = Gate {
    metric: "agents_webhook_shadow_differences_total",
    wanted: "No increase, or only differences that are wanted, if a candidate policy is on trial.",
};

const WOULD_REFUSE: Gate = Gate {
    metric: "agents_webhook_rule_outcomes_total",
    wanted: "No increase of broken rules for a week of normal traffic: nobody would be refused who is not meant to be.",
};

const REFUSALS: Gate = Gate {
    metric: "agents_webhook_refusals_total",
    wanted: "No increase: every review was understood and answered in time, and none failed.",
};

const SHED: Gate = Gate {
    metric: "agents_webhook_shed_total",
    wanted: "No increase at the busiest hour: there is room for every review.",
};

const CERTIFICATE: Gate = Gate {
    metric: "agents_webhook_certificate_not_after_timestamp_seconds",
    wanted: "Has moved forward at least once: a renewal has been seen to work.",
};

const CALL_TIME: Gate = Gate {
    metric: "apiserver_admission_webhook_admission_duration_seconds",
    wanted: "99 of 100 calls of our entries in the bucket of 25 ms, as the API server itself measures them.",
};

const OPEN_FAILURES: Gate = Gate {
    metric: "apiserver_admission_webhook_fail_open_count",
    wanted: "No increase for our entries for a week, restarts and upgrades included: with `Fail` each of these would have been a refusal.",
};

const CLOSED_FAILURES: Gate = Gate {
    metric: "apiserver_admission_webhook_rejection_count",
    wanted: "No increase with an `error_type` other than `no_error` for our entries: nobody was refused because the webhook did not answer.",
};

impl FailurePolicy {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Fail => "Fail",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no rung.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not {}", Rung::EXPECTED)]
pub struct UnknownRung {
    /// What was written.
    pub given: String,
}

impl Rung {
    /// What may be written; completes the sentence "`x` is not ...".
    pub const EXPECTED: &'static str = "audit, warn, deny, fail-labelled or fail";
}

impl FromStr for Rung {
    type Err = UnknownRung;

    fn from_str(given: &str) -> Result<Self, UnknownRung> {
        // The chart calls it by what it does while the webhook does not answer.
        let given_here = match given.eq_ignore_ascii_case(Self::DENY_IN_CHART) {
            true => Self::Deny.as_str(),
            false => given,
        };
        let known = Self::ALL
            .into_iter()
            .find(|rung| rung.as_str().eq_ignore_ascii_case(given_here));
        known.ok_or_else(|| UnknownRung {
            given: given.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailurePolicy::{Fail, Ignore};

    #[test]
    fn the_ladder_is_what_the_design_says() {
        let table: Vec<_> = Rung::ALL
            .into_iter()
            .map(|rung| {
                let policies = [Territory::Plain, Territory::Labelled];
                let policies = policies.map(|territory| rung.failure_policy(territory));
                (rung.as_str(), rung.warns(), rung.refuses(), policies)
            })
            .collect();
        assert_eq!(
            table,
            [
                ("audit", false, false, [Ignore, Ignore]),
                ("warn", true, false, [Ignore, Ignore]),
                ("deny", true, true, [Ignore, Ignore]),
                ("fail-labelled", true, true, [Ignore, Fail]),
                ("fail", true, true, [Fail, Fail]),
            ]
        );
    }

    #[test]
    fn each_rung_leads_to_the_next_and_the_last_to_none() {
        let mut climbed = vec![Rung::default()];
        while let Some(next) = climbed.last().and_then(|rung| rung.next()) {
            climbed.push(next);
        }
        assert_eq!(climbed, Rung::ALL);
    }

    #[test]
    fn a_rung_is_read_as_it_is_written() {
        for rung in Rung::ALL {
            assert_eq!(rung.as_str().parse(), Ok(rung));
            assert!(Rung::EXPECTED.contains(rung.as_str()));
        }
        assert_eq!(Rung::DENY_IN_CHART.parse(), Ok(Rung::Deny));
        let error = "enforce".parse::<Rung>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`enforce` is not audit, warn, deny, fail-labelled or fail"
        );
    }

    #[test]
    fn every_gate_is_a_metric_and_a_sentence() {
        for gate in Rung::ALL.into_iter().flat_map(|rung| rung.gates()) {
            let Gate { metric, wanted } = gate;
            let known = ["agents_webhook_", "apiserver_admission_webhook_"];
            assert!(known.iter().any(|known| metric.starts_with(known)));
            assert!(wanted.ends_with('.'), "{wanted}");
        }
    }
}
