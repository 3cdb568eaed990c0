//! What became of the points of one request.

use std::fmt::Write as _;

use agents::closed_labels;

use super::Refusal;

closed_labels! {
    /// What was taken, but is worth a look.
    pub enum Oddity {
        /// Two attributes became one label.
        JoinedLabels = "joined_labels",
        /// Two metrics of one name are described in different words.
        Help = "help",
        /// Something before a point never came.
        Gap = "gap",
        /// A point came again.
        Again = "again",
        /// A point was added to the series of all that are too many.
        Overflow = "overflow",
    }
}

/// Reasons that a sender is told, at most; each names the first metric that it met.
const MOST_WORDS: usize = 8;
/// Letters of a metric's name that a sender is told.
const MOST_LETTERS: usize = 80;

/// What became of the points of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Points taken.
    pub taken: u64,
    /// Points refused, by reason, with the first metric that it met.
    pub refused: Vec<(Refusal, u64, Box<str>)>,
    /// What was odd, by kind.
    pub odd: Vec<(Oddity, u64)>,
}

impl Tally {
    /// Counts refused points of a metric.
    pub fn refuse(&mut self, refusal: Refusal, points: u64, metric: &str) {
        if points == 0 {
            return;
        }
        match self.refused.iter_mut().find(|entry| entry.0 == refusal) {
            Some(entry) => entry.1 += points,
            None => {
                let short: String = metric.chars().take(MOST_LETTERS).collect();
                self.refused.push((refusal, points, short.into()));
            }
        }
    }

    pub(super) fn note(&mut self, oddity: Oddity) {
        match self.odd.iter_mut().find(|entry| entry.0 == oddity) {
            Some(entry) => entry.1 += 1,
            None => self.odd.push((oddity, 1)),
        }
    }

    /// Points refused.
    pub fn rejected(&self) -> u64 {
        self.refused.iter().map(|(_, points, _)| points).sum()
    }

    /// For whoever sent them.
    pub fn message(&self) -> String {
        let mut message = String::new();
        for (refusal, points, metric) in self.refused.iter().take(MOST_WORDS) {
            let separator = if message.is_empty() { "" } else { "; " };
            let _ = write!(
                message,
                "{separator}{points} refused ({}, first {metric:?}): {refusal}",
                refusal.as_str()
            );
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_is_told_what_was_refused_and_why() {
        let mut tally = Tally::default();
        tally.refuse(Refusal::Time, 2, "first");
        tally.refuse(Refusal::Time, 1, "second");
        tally.refuse(Refusal::Value, 1, "third");
        assert_eq!(tally.rejected(), 4);
        assert_eq!(
            tally.message(),
            "3 refused (time, first \"first\"): the time is missing; 1 refused (value, first \"third\"): there is no value, or \
             one that its type cannot have"
        );
    }
}
