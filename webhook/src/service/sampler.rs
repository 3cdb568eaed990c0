//! Log lines about what may happen with every review: one per second, however many there are.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

/// Lets one line per second through.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// The second of the last line.
    last: AtomicI64,
}

impl Sampler {
    /// Whether a line may be written now.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        let (now, last) = (now.as_second(), self.last.load(Ordering::Relaxed));
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        // Of all who come at once, one wins.
        now > last
            && self
                .last
                .compare_exchange(last, now, success, failure)
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_is_let_through() {
        let sampler = Sampler::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let due: Vec<bool> = [100, 100, 101, 99, 101, 102]
            .map(|second| sampler.is_due(at(second)))
            .to_vec();
        assert_eq!(due, [true, false, true, false, false, true]);
    }
}
