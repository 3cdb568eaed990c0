//! How a queue stands, in numbers, whoever told it.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Deref};

use agents::api::{condition::Lifecycle, object::cause};
use serde::{Deserialize, Deserializer, de};

/// The word for every reason that is not known here, so that nobody can make up labels.
const OTHER: &str = "other";

/// How a queue stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Load {
    /// Runs in line.
    pub(super) depth: u64,
    /// Runs that have begun and not ended.
    pub(super) running: u64,
    /// Runs that are held back, by reason.
    pub(super) blocked: Blocked,
    /// Seconds since the first in line was made; 0 if there is none.
    pub(super) oldest: f64,
}

/// Runs that are held back, by reasons from a closed list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocked(pub(super) BTreeMap<&'static str, u64>);

impl Blocked {
    pub(super) fn add(&mut self, reason: &str, count: u64) {
        let total = self.0.entry(known(reason)).or_default();
        *total = total.saturating_add(count);
    }
}

/// The reason itself, if it is one that a condition may have.
pub(super) fn known(reason: &str) -> &'static str {
    let lifecycle = Lifecycle::parse(reason).map(Lifecycle::as_str);
    let refused = || cause::Reason::parse(reason).map(cause::Reason::as_str);
    lifecycle.or_else(refused).unwrap_or(OTHER)
}

/// Counted while it is read, so that a long object needs no more memory than a short one.
impl<'de> Deserialize<'de> for Blocked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reasons;

        impl<'de> de::Visitor<'de> for Reasons {
            type Value = Blocked;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("numbers by reason")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Blocked, A::Error> {
                let mut blocked = Blocked::default();
                while let Some((reason, count)) = map.next_entry::<Word<'de>, u64>()? {
                    blocked.add(&reason, count);
                }
                Ok(blocked)
            }
        }

        deserializer.deserialize_map(Reasons)
    }
}

/// A word that is not copied unless it has to be.
#[derive(Debug, Deserialize)]
pub(super) struct Word<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Word<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_nobody_knows_are_counted_together() {
        let blocked: Blocked = serde_json::from_str(
            r#"{"ConcurrencyLimit": 2, "MissingAgent": 1, "made-up": 3, "another": 4}"#,
        )
        .expect("reasons");
        let expected = [("ConcurrencyLimit", 2), ("MissingAgent", 1), ("other", 7)];
        assert_eq!(blocked.0, expected.into());
        assert!(serde_json::from_str::<Blocked>(r#"{"a": "b"}"#).is_err());
    }
}
