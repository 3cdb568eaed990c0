//! Why an object is refused: where, which rule, and a sentence that says what would be right.
//!
//! Collects causes and holds their closed list of reasons; no rule lives here.

mod path;
mod reason;
mod suggest;

use std::collections::HashSet;

pub use path::{FieldPath, Path, Segment};
pub use reason::Reason;
pub use suggest::{did_you_mean, listed, not_one_of, quoted};

/// One fault of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The place of the fault.
    pub field: FieldPath,
    /// The rule that was broken, for programs.
    pub reason: Reason,
    /// What is wrong and what would be right, for people.
    pub message: String,
}

impl Cause {
    /// A fault at this place.
    pub fn new(at: &Path<'_>, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            field: at.into(),
            reason,
            message: message.into(),
        }
    }
}

/// Faults found so far. Bounded, so that a hostile object of many tiny faults costs little.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    found: Vec<Cause>,
    beyond: usize,
}

/// How many faults were found up to some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    found: usize,
    beyond: usize,
}

impl Causes {
    /// Faults that are kept; further ones are only counted.
    const KEPT: usize = 1000;
    /// Faults that are told to people at once.
    const TOLD: usize = 100;

    /// Notes a fault.
    pub fn add(&mut self, at: &Path<'_>, reason: Reason, message: impl Into<String>) {
        self.keep(|| Cause::new(at, reason, message));
    }

    /// Notes a fault whose sentence takes some thought, which is saved once enough faults are kept.
    pub fn add_thought(&mut self, at: &Path<'_>, reason: Reason, message: impl FnOnce() -> String) {
        self.keep(|| Cause::new(at, reason, message()));
    }

    /// Notes a fault that is already put into words.
    pub fn push(&mut self, cause: Cause) {
        self.keep(|| cause);
    }

    fn keep(&mut self, cause: impl FnOnce() -> Cause) {
        if self.found.len() < Self::KEPT {
            self.found.push(cause());
        } else {
            self.beyond += 1;
        }
    }

    /// The moment now, to come back to.
    pub fn mark(&self) -> Mark {
        Mark {
            found: self.found.len(),
            beyond: self.beyond,
        }
    }

    /// Takes out what was noted after that moment.
    pub fn forget_since(&mut self, mark: Mark) {
        self.found.truncate(mark.found);
        self.beyond = mark.beyond;
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The faults that are kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Cause> {
        self.found.iter()
    }

    /// Keeps only the faults for which `keep` holds.
    pub fn retain(&mut self, keep: impl FnMut(&Cause) -> bool) {
        self.found.retain(keep);
    }

    /// Notes all faults of another list after those of this one.
    pub fn append(&mut self, more: Self) {
        self.beyond += more.beyond;
        for cause in more.found {
            self.push(cause);
        }
    }

    /// Takes out what the object broke before: same rule, same place, and `unchanged` there.
    pub fn forgive(&mut self, before: &Self, unchanged: impl Fn(&FieldPath) -> bool) {
        let known: HashSet<(&FieldPath, Reason)> = before
            .found
            .iter()
            .map(|cause| (&cause.field, cause.reason))
            .collect();
        self.found.retain(|cause| {
            !(known.contains(&(&cause.field, cause.reason)) && unchanged(&cause.field))
        });
        self.beyond = self.beyond.saturating_sub(before.beyond);
    }

    /// The faults as they are told: all of them, or the first hundred and how many more there are.
    pub fn told(mut self) -> Vec<Cause> {
        let more = self.found.len().saturating_sub(Self::TOLD) + self.beyond;
        self.found.truncate(Self::TOLD);
        if more > 0 {
            let field = self.found.first().map(|cause| cause.field.root());
            self.found.push(Cause {
                field: field.unwrap_or_default(),
                reason: Reason::TooManyFaults,
                message: format!("{more} more faults are not listed; mend these first"),
            });
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_faults_are_told_as_a_hundred_and_a_count() {
        let mut causes = Causes::default();
        let spec = Path::root("spec");
        for index in 0..2500 {
            causes.add(&spec.index(index), Reason::OutOfRange, "x");
        }
        let told = causes.told();
        assert_eq!(told.len(), 101);
        assert_eq!(
            told.last().map(|cause| cause.message.as_str()),
            Some("2400 more faults are not listed; mend these first")
        );
    }

    #[test]
    fn only_what_was_broken_before_and_is_unchanged_is_forgiven() {
        let spec = Path::root("spec");
        let (a, b, c) = (spec.field("a"), spec.field("b"), spec.field("c"));
        let mut before = Causes::default();
        before.add(&a, Reason::OutOfRange, "old");
        before.add(&b, Reason::OutOfRange, "old");
        let mut now = Causes::default();
        now.add(&a, Reason::OutOfRange, "same");
        now.add(&a, Reason::Required, "another rule");
        now.add(&b, Reason::OutOfRange, "another value");
        now.add(&c, Reason::OutOfRange, "another place");
        now.forgive(&before, |field| *field != FieldPath::from(&b));
        assert_eq!(
            now.told(),
            [
                Cause::new(&a, Reason::Required, "another rule"),
                Cause::new(&b, Reason::OutOfRange, "another value"),
                Cause::new(&c, Reason::OutOfRange, "another place"),
            ]
        );
    }

    #[test]
    fn what_was_noted_since_a_moment_can_be_forgotten() {
        let spec = Path::root("spec");
        let mut causes = Causes::default();
        causes.add(&spec.field("a"), Reason::Required, "kept");
        let moment = causes.mark();
        for index in 0..1200 {
            causes.add(&spec.index(index), Reason::Required, "forgotten");
        }
        causes.forget_since(moment);
        assert_eq!(causes.mark(), moment);
        assert_eq!(causes.told().len(), 1);
    }

    #[test]
    fn few_faults_are_told_as_they_are() {
        let mut causes = Causes::default();
        causes.add(&Path::root("spec"), Reason::OutOfRange, "x");
        assert_eq!(
            causes.told(),
            [Cause::new(&Path::root("spec"), Reason::OutOfRange, "x")]
        );
    }
}
