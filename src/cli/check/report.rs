//! What was found, before anyone puts it into words.

use std::fmt;

use super::document::Place;
use super::source::Source;
use crate::api::policy::Mode;

/// Who an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whose {
    /// Its kind as it is written.
    pub(crate) kind: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name, or the beginning of the one that it will get, if it says so.
    pub(crate) name: Option<String>,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("(no name)");
        write!(f, "{} {}/{name}", self.kind, self.namespace)
    }
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The webhook would record it and say nothing.
    Note,
    /// The webhook would let the object through and say this.
    Warning,
    /// The webhook would refuse the object.
    Error,
}

impl Level {
    /// The word in every output.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl From<Mode> for Level {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Audit => Self::Note,
            Mode::Warn => Self::Warning,
            Mode::Enforce => Self::Error,
        }
    }
}

/// Something that an object breaks or lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// How grave it is.
    pub(crate) level: Level,
    /// The rule, by the word of metrics and audit annotations.
    pub(crate) rule: &'static str,
    /// The reason, by the word of the API.
    pub(crate) reason: &'static str,
    /// The field, as the webhook names it.
    pub(crate) field: String,
    /// What is wrong and what would be right.
    pub(crate) message: String,
    /// Where that is in the text.
    pub(crate) place: Place,
}

/// An object that was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Which of the texts it is in.
    pub(crate) source: usize,
    /// Who it is.
    pub(crate) whose: Whose,
    /// Where it begins.
    pub(crate) place: Place,
    /// What was found, in the order of the text.
    pub(crate) findings: Vec<Finding>,
}

impl Judged {
    /// Whether the webhook would refuse it.
    pub(crate) fn is_refused(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.level == Level::Error)
    }
}

/// Something that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Which of the texts it is in.
    pub(crate) source: usize,
    /// Who it is, as far as that can be read.
    pub(crate) whose: Option<Whose>,
    /// Where it is.
    pub(crate) place: Place,
    /// The word for it.
    pub(crate) reason: &'static str,
    /// Why.
    pub(crate) message: String,
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The texts.
    pub(crate) sources: Vec<Source>,
    /// What was judged.
    pub(crate) judged: Vec<Judged>,
    /// What could not be judged.
    pub(crate) faults: Vec<Fault>,
    /// Documents of kinds that are not ours.
    pub(crate) others: usize,
    /// The name of the policy.
    pub(crate) policy: String,
}

/// How much was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// What refuses.
    pub(crate) errors: usize,
    /// What is warned of.
    pub(crate) warnings: usize,
    /// What is recorded.
    pub(crate) notes: usize,
}

impl Report {
    /// How much was found.
    pub(crate) fn count(&self) -> Count {
        let mut count = Count::default();
        for finding in self.judged.iter().flat_map(|judged| &judged.findings) {
            match finding.level {
                Level::Error => count.errors += 1,
                Level::Warning => count.warnings += 1,
                Level::Note => count.notes += 1,
            }
        }
        count
    }

    /// Whether anything is as grave as this.
    pub(crate) fn has(&self, least: Level) -> bool {
        let mut found = self.judged.iter().flat_map(|judged| &judged.findings);
        found.any(|finding| finding.level >= least)
    }

    /// The name of a text.
    pub(crate) fn source_name(&self, index: usize) -> &str {
        self.sources.get(index).map_or("", |source| &source.name)
    }
}
