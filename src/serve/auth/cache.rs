//! Answers of the cluster that are kept for a moment. Tokens are known by a hash only.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// What an answer is found by.
pub(super) type Key = [u8; 32];

/// A bounded number of answers, each for a while.
#[derive(Debug)]
pub(super) struct Cache<V> {
    most: usize,
    /// So that nobody who sees a key can look up the token behind it.
    salt: [u8; 16],
    entries: Mutex<HashMap<Key, (Instant, V)>>,
}

impl<V: Clone> Cache<V> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            salt: std::array::from_fn(|_| fastrand::u8(..)),
            entries: Mutex::default(),
        }
    }

    /// The key of some parts, none of which can pass for the beginning of another.
    pub(super) fn key<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Key {
        let mut hash = Sha256::new_with_prefix(self.salt);
        for part in parts {
            hash.update(part.len().to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    pub(super) fn get(&self, key: &Key) -> Option<V> {
        let entries = self.lock();
        let (until, value) = entries.get(key)?;
        (Instant::now() < *until).then(|| value.clone())
    }

    pub(super) fn put(&self, key: Key, value: V, keep: Duration) {
        if keep.is_zero() {
            return;
        }
        let now = Instant::now();
        let mut entries = self.lock();
        if entries.len() >= self.most && !entries.contains_key(&key) {
            entries.retain(|_, (until, _)| now < *until);
        }
        if entries.len() >= self.most && !entries.contains_key(&key) {
            let first = entries.iter().min_by_key(|(_, (until, _))| *until);
            let first = first.map(|(key, _)| *key);
            first.map(|first| entries.remove(&first));
        }
        entries.insert(key, (now + keep, value));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, (Instant, V)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_its_time_and_no_longer() {
        let cache = Cache::new(10);
        let key = cache.key([b"a".as_slice()]);
        assert_eq!(cache.get(&key), None);
        cache.put(key, 1, LONG);
        assert_eq!(cache.get(&key), Some(1));
        tokio::time::advance(LONG).await;
        assert_eq!(cache.get(&key), None);
        cache.put(key, 2, Duration::ZERO);
        assert_eq!(cache.get(&key), None);
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_never_more_than_so_many_and_the_oldest_goes() {
        let cache = Cache::new(3);
        let key = |number: u8| cache.key([[number].as_slice()]);
        for number in 0..4 {
            cache.put(
                key(number),
                number,
                LONG + Duration::from_secs(number.into()),
            );
        }
        assert_eq!(cache.get(&key(0)), None);
        assert_eq!(cache.get(&key(3)), Some(3));
        assert_eq!(cache.lock().len(), 3);
        cache.put(key(3), 7, LONG);
        assert_eq!((cache.get(&key(3)), cache.lock().len()), (Some(7), 3));
    }

    #[test]
    fn parts_do_not_run_into_one_another() {
        let cache = Cache::<()>::new(1);
        let key = |parts: &[&str]| cache.key(parts.iter().map(|part| part.as_bytes()));
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
        let other = Cache::<()>::new(1);
        assert_ne!(key(&["a"]), other.key([b"a".as_slice()]), "salted");
    }
}
