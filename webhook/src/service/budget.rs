//! How long an answer may take: what the API server says that it waits, minus what the answer needs to get there.

use std::time::Duration;

use agents::api::text::duration::parse_duration;
use tokio::time::Instant;

/// What the API server waits if it does not say.
const DEFAULT: Duration = Duration::from_secs(10);
/// The longest that a webhook configuration can ask for.
const LONGEST: Duration = Duration::from_secs(30);
/// Time for the answer to travel; at most, since of a short time no more than a tenth is kept back.
const RESERVE: Duration = Duration::from_millis(200);
/// Time for a body to come. The API server sends it in one go; who takes longer keeps a place from others. Well below the
/// 5 s that our configuration lets the API server wait, so that who waits for that place still makes it.
const BODY: Duration = Duration::from_secs(3);

/// The time that there is for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// By when the answer must leave.
    pub(super) deadline: Instant,
}

impl Budget {
    /// From the query of a request that came in just now.
    pub(super) fn of(query: Option<&str>, now: Instant) -> Self {
        let given = query.and_then(timeout).unwrap_or(DEFAULT).min(LONGEST);
        let reserve = (given / 10).min(RESERVE);
        Self {
            deadline: now + (given - reserve),
        }
    }

    /// By when the body must be there, if so much time has been spent waiting for it before now.
    pub(super) fn reading(self, now: Instant, spent: Duration) -> Instant {
        self.deadline.min(now + BODY.saturating_sub(spent))
    }

    /// Whether it is too late to begin.
    pub(super) fn is_spent(self) -> bool {
        Instant::now() >= self.deadline
    }
}

/// The `timeout` of a query, if it has one that can be read.
fn timeout(query: &str) -> Option<Duration> {
    let given = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("timeout="))?;
    parse_duration(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_answer_leaves_before_the_api_server_gives_up() {
        let now = Instant::now();
        for (query, millis) in [
            (None, 9800),
            (Some("timeout=10s"), 9800),
            (Some("a=b&timeout=1s"), 900),
            (Some("timeout=100ms"), 90),
            (Some("timeout=0s"), 0),
            (Some("timeout=10m"), 29_800),
            (Some("timeout=soon"), 9800),
        ] {
            let budget = Budget::of(query, now);
            assert_eq!(
                budget.deadline - now,
                Duration::from_millis(millis),
                "{query:?}"
            );
        }
        for (query, spent, millis) in [
            ("timeout=10s", 0, 3000),
            ("timeout=10s", 1000, 2000),
            ("timeout=10s", 4000, 0),
            ("timeout=2s", 0, 1800),
        ] {
            let spent = Duration::from_millis(spent);
            let reading = Budget::of(Some(query), now).reading(now, spent);
            assert_eq!(reading - now, Duration::from_millis(millis), "{query}");
        }
        assert!(Budget::of(Some("timeout=0s"), now).is_spent());
        assert!(!Budget::of(None, now).is_spent());
    }
}
