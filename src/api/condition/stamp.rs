//! The grain of the times that we stamp, and how one follows another.
//!
//! Times that are written once or mark a flip have whole seconds, since most clients of Kubernetes keep no more and
//! would change a finer time when they write it back. `updatedAt` has milliseconds, since it moves on every write.

use jiff::{SignedDuration, Timestamp};

/// How far clocks may differ before a time counts as wrong.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The smallest difference between two stamped times.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Grain {
    Second,
    Millisecond,
}

impl Grain {
    /// The time without what is finer than the grain.
    pub(crate) fn floor(self, time: Timestamp) -> Timestamp {
        let floored = match self {
            Self::Second => Timestamp::from_second(time.as_second()),
            Self::Millisecond => Timestamp::from_millisecond(time.as_millisecond()),
        };
        floored.unwrap_or(time)
    }

    /// A time other than `earlier`: now, or the next grain after `earlier` while that is not over yet.
    /// A time so far ahead that no clock skew explains it is not followed.
    pub(crate) fn moved(self, earlier: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let stamp = self.floor(now);
        match earlier {
            Some(earlier) if earlier >= stamp && earlier <= latest_plausible(now) => self
                .floor(earlier)
                .checked_add(self.step())
                .unwrap_or(stamp),
            Some(_) | None => stamp,
        }
    }

    const fn step(self) -> SignedDuration {
        match self {
            Self::Second => SignedDuration::from_secs(1),
            Self::Millisecond => SignedDuration::from_millis(1),
        }
    }
}

/// The latest time that a clock can show which is right within the skew.
pub(crate) fn latest_plausible(now: Timestamp) -> Timestamp {
    now.checked_add(CLOCK_SKEW).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_follows_the_earlier_one_unless_that_is_absurd() {
        let time = |text: &str| -> Timestamp { text.parse().unwrap() };
        let now = time("2026-01-01T00:00:10.750Z");
        for (row, earlier, expected) in [
            ("none", None, "2026-01-01T00:00:10Z"),
            (
                "long ago",
                Some("2026-01-01T00:00:00Z"),
                "2026-01-01T00:00:10Z",
            ),
            (
                "in this second",
                Some("2026-01-01T00:00:10Z"),
                "2026-01-01T00:00:11Z",
            ),
            (
                "ahead by skew",
                Some("2026-01-01T00:01:00Z"),
                "2026-01-01T00:01:01Z",
            ),
            (
                "far ahead",
                Some("2099-01-01T00:00:00Z"),
                "2026-01-01T00:00:10Z",
            ),
        ] {
            let moved = Grain::Second.moved(earlier.map(time), now);
            assert_eq!(moved, time(expected), "{row}");
        }
        assert_eq!(
            Grain::Millisecond.moved(Some(now), now),
            time("2026-01-01T00:00:10.751Z")
        );
    }
}
