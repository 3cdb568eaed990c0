//! Verdicts in order, for whoever shows them.

use super::alerts::Alert;
use super::check::{CATEGORIES, Category, Check, Verdict, When};
use super::facts::Facts;
use crate::kit::exit::Exit;

/// Which checks are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// Those before an installation.
    Before,
    /// Those after it.
    After,
    /// Those behind an alert.
    Alert(&'static Alert),
}

impl Wanted {
    fn has(self, check: &Check) -> bool {
        match (self, check.when) {
            (Self::Before, When::Before | When::Always)
            | (Self::After, When::After | When::Always) => true,
            (Self::Before, When::After) | (Self::After, When::Before) => false,
            (Self::Alert(alert), _) => alert.asks_for(check.id),
        }
    }
}

/// A check and how it went.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// The check.
    pub(crate) check: &'static Check,
    /// How it went.
    pub(crate) verdict: Verdict,
}

/// All that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Which checks were wanted.
    pub(crate) wanted: Wanted,
    /// By category, in order; none is empty.
    pub(crate) parts: Vec<(&'static str, Vec<Done>)>,
}

/// How many checks went how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// As they should be.
    pub(crate) good: usize,
    /// Someone should look.
    pub(crate) warnings: usize,
    /// Wrong.
    pub(crate) failed: usize,
    /// Not known.
    pub(crate) unknown: usize,
    /// Without a meaning here.
    pub(crate) skipped: usize,
}

impl Report {
    /// Judges the facts.
    pub(crate) fn new(wanted: Wanted, facts: &Facts) -> Self {
        let part = |category: &Category| {
            let checks = category.checks.iter().filter(|check| wanted.has(check));
            let done = checks.map(|check| Done {
                check,
                verdict: (check.judge)(facts),
            });
            (category.name, done.collect::<Vec<_>>())
        };
        let parts = CATEGORIES.iter().map(part);
        Self {
            wanted,
            parts: parts.filter(|(_, done)| !done.is_empty()).collect(),
        }
    }

    /// Everything in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Done> {
        self.parts.iter().flat_map(|(_, done)| done)
    }

    /// How many went how.
    pub(crate) fn count(&self) -> Count {
        let mut count = Count::default();
        for done in self.all() {
            let one = match done.verdict {
                Verdict::Good(_) => &mut count.good,
                Verdict::Warning(_) => &mut count.warnings,
                Verdict::Bad(_) => &mut count.failed,
                Verdict::Unseen(_) => &mut count.unknown,
                Verdict::Beside(_) => &mut count.skipped,
            };
            *one += 1;
        }
        count
    }

    /// What the shell is told.
    pub(crate) fn exit(&self, is_strict: bool) -> Exit {
        let Count {
            warnings,
            failed,
            unknown,
            ..
        } = self.count();
        match failed > 0 || (is_strict && warnings + unknown > 0) {
            true => Exit::Found,
            false => Exit::Done,
        }
    }
}
