//! When to look again for something that cannot be watched.

use std::time::Duration;

use jiff::Timestamp;

/// The pause at first, and the longest one, before they are spread.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(50);

/// So many times the pause must have been waited already. What comes late mostly comes in the first minutes.
const PATIENCE: u32 = 20;

/// The next look of a run that has waited since then.
pub(in crate::controller) fn next_look(
    uid: &str,
    since: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    now.checked_add(pause(uid, waited)).ok()
}

/// Grows with the time that was waited, up to a minute. Runs that came together often lack the same, so each of them adds
/// a share of its own, up to a fifth, and they do not all look at the same moment.
fn pause(uid: &str, waited: Duration) -> Duration {
    let pause = (waited / PATIENCE).clamp(SHORTEST, LONGEST);
    let share = uid
        .bytes()
        .fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    pause + pause / 5 * u32::from(share) / u32::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn pauses_grow_with_the_time_that_was_waited() {
        for (waited, expected) in [
            (0, 5.0),
            (60, 5.0),
            (100, 5.0),
            (120, 6.0),
            (600, 30.0),
            (1_000, 50.0),
            (86_400, 50.0),
        ] {
            // Without a uid there is nothing to spread them by.
            let pause = pause("", Duration::from_secs(waited));
            assert_eq!(pause.as_secs_f64(), expected, "{waited}");
        }
    }

    #[test]
    fn runs_do_not_all_look_at_the_same_moment() {
        for (waited, shortest) in [(0, SHORTEST), (3_600, LONGEST)] {
            let uids = (0..100).map(|number| format!("1c0e0f0a-0000-4000-8000-{number:012}"));
            let pauses = uids.map(|uid| pause(&uid, Duration::from_secs(waited)));
            let pauses: BTreeSet<_> = pauses.collect();
            assert!(pauses.len() > 30, "only {} of 100", pauses.len());
            let all = pauses.iter();
            for pause in all {
                assert!(*pause >= shortest, "{pause:?}");
                assert!(*pause <= shortest.mul_f64(1.2), "{pause:?}");
            }
        }
    }

    #[test]
    fn a_run_looks_again_at_the_same_time_whenever_it_is_asked() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let first = next_look("u-1", now, now);
        assert_eq!(first, next_look("u-1", now, now));
        let first = first.unwrap().duration_since(now).as_secs_f64();
        assert!((5.0..=6.0).contains(&first), "{first}");
        let ahead = now + Duration::from_secs(60);
        assert_eq!(next_look("u-1", ahead, now), next_look("u-1", now, now));
    }
}
