//! What a check is, and which there are.

use super::facts::{Facts, Seen};
use super::judge::{cluster, jobs, metrics, programs, rights, webhook};

/// When a check has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Before anything is installed.
    Before,
    /// Once it is installed.
    After,
    /// At any time.
    Always,
}

/// How a check went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As it should be; with what was seen.
    Good(String),
    /// Someone should look.
    Warning(String),
    /// Wrong.
    Bad(String),
    /// It could not be looked at, and why.
    Unseen(String),
    /// It has no meaning here, and why.
    Beside(String),
}

impl Verdict {
    /// The word for programs.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Good(_) => "ok",
            Self::Warning(_) => "warning",
            Self::Bad(_) => "failed",
            Self::Unseen(_) => "unknown",
            Self::Beside(_) => "skipped",
        }
    }

    /// What is said with it.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Good(text)
            | Self::Warning(text)
            | Self::Bad(text)
            | Self::Unseen(text)
            | Self::Beside(text) => text,
        }
    }

    /// Whether someone has to do something.
    pub(crate) const fn is_finding(&self) -> bool {
        match self {
            Self::Warning(_) | Self::Bad(_) => true,
            Self::Good(_) | Self::Unseen(_) | Self::Beside(_) => false,
        }
    }
}

/// One check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// Its name, for `--alert`, programs and documents.
    pub(crate) id: &'static str,
    /// What holds if it is good.
    pub(crate) title: &'static str,
    /// What to do if it is not.
    pub(crate) hint: &'static str,
    /// Where that is explained, as a path in the repository.
    pub(crate) link: &'static str,
    /// When it has a meaning.
    pub(crate) when: When,
    /// Looks at the facts.
    pub(crate) judge: fn(&Facts) -> Verdict,
}

/// Checks that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Category {
    /// Their heading.
    pub(crate) name: &'static str,
    /// The checks.
    pub(crate) checks: &'static [Check],
}

/// All checks, in the order in which they are shown: what others rest on comes first.
pub(crate) const CATEGORIES: &[Category] = &[
    Category {
        name: "kubernetes",
        checks: cluster::CLUSTER,
    },
    Category {
        name: "kinds",
        checks: cluster::KINDS,
    },
    Category {
        name: "rights",
        checks: rights::CHECKS,
    },
    Category {
        name: "programs",
        checks: programs::CHECKS,
    },
    Category {
        name: "webhook",
        checks: webhook::CHECKS,
    },
    Category {
        name: "metrics",
        checks: metrics::CHECKS,
    },
    Category {
        name: "jobs and runs",
        checks: jobs::CHECKS,
    },
];

/// All checks.
pub(crate) fn all() -> impl Iterator<Item = &'static Check> {
    CATEGORIES.iter().flat_map(|category| category.checks)
}

/// Judges what was seen; what was not is said to be unknown.
pub(crate) fn seen<T>(fact: &Seen<T>, judge: impl FnOnce(&T) -> Verdict) -> Verdict {
    match fact {
        Ok(fact) => judge(fact),
        Err(unseen) => Verdict::Unseen(unseen.to_string()),
    }
}

/// Most examples in one sentence.
const EXAMPLES: usize = 3;

/// The first few of a list, and how many more there are.
pub(crate) fn some(all: &[String]) -> String {
    let shown = all[..all.len().min(EXAMPLES)].join("; ");
    match all.len().saturating_sub(EXAMPLES) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

/// Bad with all that was found, or good.
pub(crate) fn none_of(found: &[String], good: impl Into<String>) -> Verdict {
    match found {
        [] => Verdict::Good(good.into()),
        found => Verdict::Bad(some(found)),
    }
}
