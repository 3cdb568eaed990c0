//! What a caller from outside the pod must show before it is told how the queue stands. The holder of the lease writes it there,
//! so whoever may read the lease may read the queue, and nobody needs another right or a Secret.

use std::fmt;
use std::sync::Arc;

use http::HeaderMap;
use rustls::crypto::ring::default_provider;
use sha2::{Digest, Sha256};

use crate::api::contract::queue;

const BYTES: usize = 32;

/// The key of this process; another has another. Cheap to clone.
#[derive(Clone)]
pub(in crate::controller) struct Key(Arc<str>);

/// The system has no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers, so there is no key for those who read the queue")]
pub(in crate::controller) struct NoRandomness;

impl Key {
    pub(in crate::controller) fn new() -> Result<Self, NoRandomness> {
        let mut bytes = [0; BYTES];
        let filled = default_provider().secure_random.fill(&mut bytes);
        filled.map_err(|_| NoRandomness)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(text.into()))
    }

    /// As it is on the lease.
    pub(in crate::controller) fn text(&self) -> &str {
        &self.0
    }

    /// Whether a caller shows it. Digests are compared, so that the time it takes tells nothing of the key.
    pub(super) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(queue::KEY);
        shown.is_some_and(|shown| {
            Sha256::digest(shown.as_bytes()) == Sha256::digest(self.0.as_bytes())
        })
    }
}

/// Never the key itself: it would end up in a log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_the_key_itself_opens() {
        let (key, other) = (Key::new().unwrap(), Key::new().unwrap());
        assert_eq!(key.text().len(), 2 * BYTES);
        let shown = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(queue::KEY, HeaderValue::from_str(text).unwrap());
            headers
        };
        assert!(key.is_shown(&shown(key.text())));
        for wrong in [other.text(), "", &key.text()[1..]] {
            assert!(!key.is_shown(&shown(wrong)), "{wrong}");
        }
        assert!(!key.is_shown(&HeaderMap::new()));
        assert_eq!(format!("{key:?}"), "Key");
    }
}
