//! What everyone does who follows the cluster with a watch that is listed anew after a failure.

use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::runtime::watcher::{self, Event};
use tokio::time::timeout;

/// Time for one page of a list. A watch may be silent for minutes, a list may not.
const LIST: Duration = Duration::from_secs(30);

/// Wait before the first and, after doubling, before each further try.
pub const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The wait after this one.
pub fn longer(wait: Duration) -> Duration {
    (2 * wait).min(LONGEST_WAIT)
}

/// The next event, or why there is none.
///
/// # Errors
///
/// When the watch failed or ended, or there is no list in time.
pub async fn next<K>(
    mut events: impl Stream<Item = watcher::Result<Event<K>>> + Unpin,
    has_list: bool,
) -> Result<Event<K>, String> {
    let next = match has_list {
        true => events.next().await,
        false => timeout(LIST, events.next())
            .await
            .map_err(|_| format!("no list within {LIST:?}"))?,
    };
    match next {
        Some(event) => event.map_err(|error| error.to_string()),
        None => Err("the watch ended".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut wait = FIRST_WAIT;
        for expected in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            wait = longer(wait);
            assert_eq!(wait, Duration::from_millis(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_has_a_deadline_and_a_watch_may_be_silent() {
        let silent = || stream::pending::<watcher::Result<Event<()>>>();
        let listed = next(silent(), false).await;
        assert_eq!(listed.unwrap_err(), "no list within 30s");
        let watched = timeout(10 * LIST, next(silent(), true)).await;
        assert!(watched.is_err());
        let ended = next(stream::empty::<watcher::Result<Event<()>>>(), true).await;
        assert_eq!(ended.unwrap_err(), "the watch ended");
        let one = next(stream::iter([Ok(Event::<()>::InitDone)]), false).await;
        assert!(matches!(one, Ok(Event::InitDone)));
    }
}
