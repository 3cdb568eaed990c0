//! Who sends: one target, as beside a single program, or several that must be told apart. Pure.
//!
//! Beside one program no series needs the labels `job` and `instance`: Prometheus adds its own. A program that was started
//! again is the same target with a new name; two are there only when one that was replaced speaks again.

use std::collections::{BTreeMap, BTreeSet};

/// What tells one target from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// `service.namespace/service.name`, or the name alone.
    pub job: String,
    /// `service.instance.id`.
    pub instance: String,
}

/// Whether series carry their target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Targets {
    /// As it turns out.
    #[default]
    Auto,
    /// Never: there is one.
    Single,
    /// Always.
    Federated,
}

/// What follows from hearing of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// It stands in the place of the one before, whose series are over.
    Successor,
    /// From now on series carry their target: all of them are other series.
    Relabelled,
}

/// The targets that were heard of, and when.
#[derive(Debug)]
pub(super) struct Census {
    targets: Targets,
    is_federated: bool,
    current: Option<Identity>,
    replaced: BTreeSet<Identity>,
    heard: BTreeMap<Identity, u64>,
    /// Since when those were heard of that are shown.
    lately: u64,
}

impl Census {
    pub(super) fn new(targets: Targets) -> Self {
        Self {
            targets,
            is_federated: targets == Targets::Federated,
            current: None,
            replaced: BTreeSet::new(),
            heard: BTreeMap::new(),
            lately: 0,
        }
    }

    pub(super) fn is_federated(&self) -> bool {
        self.is_federated
    }

    /// How many were heard of lately.
    pub(super) fn len(&self) -> usize {
        let heard = self.heard.values();
        heard.filter(|last| **last >= self.lately).count()
    }

    /// A target sends something.
    pub(super) fn hear(&mut self, who: &Identity, now: u64) -> Change {
        match self.heard.get_mut(who) {
            Some(last) => *last = now,
            None => drop(self.heard.insert(who.clone(), now)),
        }
        if self.is_federated || self.current.as_ref() == Some(who) {
            return Change::None;
        }
        if self.targets == Targets::Auto && self.replaced.contains(who) {
            self.is_federated = true;
            self.replaced.clear();
            return Change::Relabelled;
        }
        let before = self.current.replace(who.clone());
        match before {
            Some(before) => {
                self.replaced.insert(before);
                Change::Successor
            }
            None => Change::None,
        }
    }

    /// When a target was last heard of.
    pub(super) fn heard(&self, who: &Identity) -> u64 {
        self.heard.get(who).copied().unwrap_or_default()
    }

    /// Forgets who has not been heard of since `known`; who has not since `shown`, which is later, is no longer shown.
    ///
    /// Series that carry their target go on doing so while any is known: those of one must not change because another is silent.
    pub(super) fn forget(&mut self, shown: u64, known: u64) {
        self.lately = shown;
        self.heard.retain(|_, last| *last >= known);
        let heard = &self.heard;
        let is_shown = |who: &Identity| heard.get(who).is_some_and(|last| *last >= shown);
        self.replaced.retain(is_shown);
        if self.heard.is_empty() {
            *self = Self::new(self.targets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(instance: &str) -> Identity {
        Identity {
            job: "cart".to_owned(),
            instance: instance.to_owned(),
        }
    }

    #[test]
    fn a_program_that_was_started_again_is_no_second_one() {
        let mut census = Census::new(Targets::Auto);
        assert_eq!(census.hear(&who("a"), 1), Change::None);
        assert_eq!(census.hear(&who("a"), 2), Change::None);
        assert_eq!(census.hear(&who("b"), 3), Change::Successor);
        assert_eq!(census.hear(&who("b"), 4), Change::None);
        assert!(!census.is_federated());
    }

    #[test]
    fn two_that_speak_by_turns_are_told_apart_until_both_are_forgotten() {
        let mut census = Census::new(Targets::Auto);
        census.hear(&who("a"), 1);
        census.hear(&who("b"), 2);
        assert_eq!(census.hear(&who("a"), 3), Change::Relabelled);
        assert!(census.is_federated());
        assert_eq!(census.hear(&who("b"), 4), Change::None);
        for (shown, known, federated, lately) in [
            (3, 1, true, 2),
            (4, 1, true, 1),
            (4, 4, true, 1),
            (5, 4, true, 0),
            (5, 5, false, 0),
        ] {
            census.forget(shown, known);
            let stands = (census.is_federated(), census.len());
            assert_eq!(stands, (federated, lately), "{shown} {known}");
        }
        assert_eq!(census.hear(&who("b"), 6), Change::None);
        assert!(!census.is_federated());
    }

    #[test]
    fn what_the_operator_says_stays() {
        let mut single = Census::new(Targets::Single);
        for (instance, expected) in [
            ("a", Change::None),
            ("b", Change::Successor),
            ("a", Change::Successor),
        ] {
            assert_eq!(single.hear(&who(instance), 1), expected);
        }
        let mut federated = Census::new(Targets::Federated);
        federated.hear(&who("a"), 1);
        federated.forget(9, 9);
        assert!(federated.is_federated());
    }
}
