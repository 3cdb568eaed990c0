//! Looks at what objects name outside: whether it is there, and lets us in. What was found is kept until the next look.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use super::{LOOK, Plain, Plains};
use crate::api::condition::Lifecycle;
use crate::controller::driver::fault::Fault;
use crate::controller::egress::Reach;
use crate::events;
use crate::kit::egress::{Answer, Call, Failure, Refusal, Store, Target, Trouble};

/// Longest time until what failed is looked at again.
const SOON: Duration = Duration::from_secs(30);
/// Most bytes that are read of an answer; that there is one says enough.
const ENOUGH: usize = 64 * 1024;
/// Entries of a Secret that hold a connection string, if none is named.
const ENTRIES: [&str; 2] = ["url", "uri"];

/// Something outside that an object names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Outside {
    /// A PostgreSQL, by the Secret that says where it is.
    Store {
        secret: String,
        entry: Option<String>,
        /// What its database must have.
        extension: Option<&'static str>,
    },
    /// An API.
    Api { url: String },
}

impl Outside {
    /// Whether the operator wants to know about it.
    pub(super) fn is_wanted(&self, reach: &Reach) -> bool {
        match self {
            Self::Store { .. } => reach.any_store(),
            Self::Api { .. } => reach.all().is_some(),
        }
    }
}

/// A look that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) struct Look {
    /// The spec that it was about.
    pub(super) generation: Option<i64>,
    /// When to look again.
    pub(super) due: Timestamp,
    pub(super) found: Found,
}

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Found {
    /// It is there, and lets us in.
    Reached,
    /// It is not one that is looked at.
    Untried,
    /// It is of no use as it is.
    Wrong(Wrong, String),
}

/// In which way something outside is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Wrong {
    /// It may not be called.
    Denied,
    /// It does not answer.
    Unreachable,
    /// It does not let the user in.
    SignIn,
    /// Nobody can tell where it is.
    Unreadable,
    /// It has not what it is said to have.
    Lacks,
}

impl Wrong {
    /// The words for it, in the condition and in the Event.
    pub(super) const fn words(self) -> (Lifecycle, events::Reason) {
        match self {
            Self::Denied => (Lifecycle::EgressDenied, events::Reason::EgressDenied),
            Self::Unreachable => (Lifecycle::ConnectionFailed, events::Reason::Unreachable),
            Self::SignIn => (Lifecycle::AuthFailed, events::Reason::AuthFailed),
            Self::Unreadable => (
                Lifecycle::InvalidConnection,
                events::Reason::InvalidConnection,
            ),
            Self::Lacks => (
                Lifecycle::CapabilityMissing,
                events::Reason::CapabilityMissing,
            ),
        }
    }
}

/// What was found, and the time until the next look.
type Taken = (Found, Duration);

impl<K: Plain> Plains<K> {
    /// Takes a look; says whether there is anything to tell.
    pub(super) async fn look(&self, object: &K) -> Result<bool, Fault> {
        let namespace = object.namespace().unwrap_or_default();
        let taken = match object.outside() {
            None => None,
            Some(Outside::Api { url }) => self.call(&url).await?,
            Some(Outside::Store {
                secret,
                entry,
                extension,
            }) => {
                let found = self.context.look_up(LOOK, &namespace, &secret).await?;
                match found.and_then(|secret: Secret| secret.data) {
                    // It went a moment ago, which the next pass will see.
                    None => None,
                    Some(data) => match read(&data, &secret, entry.as_deref()) {
                        Err(why) => Some((Found::Wrong(Wrong::Unreadable, why), SOON)),
                        Ok(store) => self.visit(&store, extension).await?,
                    },
                }
            }
        };
        let Some((found, every)) = taken else {
            return Ok(false);
        };
        let pause = match found {
            Found::Reached | Found::Untried => every,
            Found::Wrong(..) => every.min(SOON),
        };
        let now = self.context.clock.now();
        let look = Look {
            generation: object.meta().generation,
            due: now.checked_add(pause).unwrap_or(now),
            found,
        };
        self.looks.keep(object, &self.shelf, look);
        Ok(true)
    }

    /// None if there is no room for a call now.
    async fn visit(
        &self,
        store: &Store,
        extension: Option<&'static str>,
    ) -> Result<Option<Taken>, Fault> {
        let Some(every) = self.context.egress.reach.store(store) else {
            return Ok(Some((Found::Untried, Reach::USUAL)));
        };
        let visited = self.context.visit(LOOK, store, extension).await?;
        Ok(visited.map(|visited| (of_visit(visited), every)))
    }

    /// None if there is no room for a call now.
    async fn call(&self, url: &str) -> Result<Option<Taken>, Fault> {
        let every = self.context.egress.reach.all().unwrap_or(Reach::USUAL);
        let target = match Target::parse(url) {
            Ok(target) => target,
            Err(refusal) => {
                let found = of_call("the address", Err(Failure::Refused(refusal)));
                return Ok(Some((found, every)));
            }
        };
        let shown = target.to_string();
        let call = Call {
            method: Method::GET,
            target,
            headers: Vec::new(),
            credential: None,
            body: Bytes::new(),
            limit: ENOUGH,
        };
        let answer = self.context.call_out(LOOK, call).await?;
        Ok(answer.map(|answer| (of_call(&shown, answer), every)))
    }
}

/// The store that a Secret leads to. Nothing of what it holds is repeated.
fn read(
    data: &BTreeMap<String, ByteString>,
    name: &str,
    entry: Option<&str>,
) -> Result<Store, String> {
    let value = match entry {
        Some(entry) => data.get(entry),
        None => ENTRIES.iter().find_map(|entry| data.get(*entry)),
    };
    let Some(value) = value else {
        let [first, second] = ENTRIES;
        return Err(format!(
            "Secret {name} has no entry {first} or {second}; name one in spec.connection.secretRef.key"
        ));
    };
    let text = str::from_utf8(&value.0).map_err(|_| "it is not UTF-8");
    let store = text.and_then(Store::parse);
    store.map_err(|why| format!("the connection string in Secret {name} cannot be used: {why}"))
}

fn of_visit(visited: Result<(), Trouble>) -> Found {
    let Err(trouble) = visited else {
        return Found::Reached;
    };
    let (wrong, start) = match &trouble {
        Trouble::Failed(Failure::Refused(_)) => (Wrong::Denied, "the store may not be called"),
        Trouble::Failed(_) => (Wrong::Unreachable, "the store cannot be reached"),
        Trouble::SignIn(_) => (Wrong::SignIn, "the store does not let the user in"),
        Trouble::Lacks(_) => (Wrong::Lacks, "the store is not as it should be"),
    };
    Found::Wrong(wrong, format!("{start}: {trouble}"))
}

/// Any answer will do, unless the server says that it is at fault: without a credential it is often a refusal.
fn of_call(shown: &str, answer: Result<Answer, Failure>) -> Found {
    let unreachable = |why: String| Found::Wrong(Wrong::Unreachable, why);
    match answer {
        Ok(answer) if answer.status.is_server_error() => {
            unreachable(format!("{shown} answered {}", answer.status.as_u16()))
        }
        Ok(_) | Err(Failure::TooLarge(_) | Failure::Refused(Refusal::Redirect)) => Found::Reached,
        Err(failure @ Failure::Refused(_)) => {
            let why = format!("{shown} may not be called: {failure}");
            Found::Wrong(Wrong::Denied, why)
        }
        Err(failure) => unreachable(format!("{shown} cannot be reached: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn words(found: &Found) -> String {
        match found {
            Found::Reached => "reached".to_owned(),
            Found::Untried => "untried".to_owned(),
            Found::Wrong(wrong, why) => {
                let (condition, event) = wrong.words();
                format!("{} {}: {why}", condition.as_str(), event.as_str())
            }
        }
    }

    #[test]
    fn each_end_of_a_visit_has_its_words() {
        let broken = || Failure::Unreachable("broken".to_owned());
        for (visited, expected) in [
            (Ok(()), "reached"),
            (
                Err(Trouble::Failed(broken())),
                "ConnectionFailed Unreachable: the store cannot be reached: broken",
            ),
            (
                Err(Trouble::Failed(Failure::Refused(Refusal::Loopback))),
                "EgressDenied EgressDenied: the store may not be called: it leads to the controller itself",
            ),
            (
                Err(Trouble::SignIn("no".to_owned())),
                "AuthFailed AuthFailed: the store does not let the user in: no",
            ),
            (
                Err(Trouble::Lacks("no".to_owned())),
                "CapabilityMissing CapabilityMissing: the store is not as it should be: no",
            ),
        ] {
            assert_eq!(words(&of_visit(visited)), expected);
        }
    }

    #[test]
    fn each_end_of_a_call_has_its_words() {
        let answer = |status: u16| {
            Ok(Answer {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::new(),
                body: Bytes::new(),
            })
        };
        let broken = Failure::Unreachable("broken".to_owned());
        for (row, given, expected) in [
            ("well", answer(200), "reached"),
            ("nobody knows us", answer(401), "reached"),
            ("no page", answer(404), "reached"),
            ("a long page", Err(Failure::TooLarge(1)), "reached"),
            (
                "a page elsewhere",
                Err(Failure::Refused(Refusal::Redirect)),
                "reached",
            ),
            (
                "at fault",
                answer(503),
                "ConnectionFailed Unreachable: it answered 503",
            ),
            (
                "broken",
                Err(broken),
                "ConnectionFailed Unreachable: it cannot be reached: broken",
            ),
            (
                "not allowed",
                Err(Failure::Refused(Refusal::Multicast)),
                "EgressDenied EgressDenied: it may not be called: it leads to a multicast address",
            ),
        ] {
            assert_eq!(words(&of_call("it", given)), expected, "{row}");
        }
    }

    #[test]
    fn a_secret_leads_to_a_store_or_it_is_said_why_not() {
        let wrong = "the connection string in Secret s cannot be used: ";
        let neither = "Secret s has no entry url or uri; name one in spec.connection.secretRef.key";
        for (entries, entry, expected) in [
            (&[("url", "postgres://u:hidden@h")][..], None, Ok(())),
            (&[("uri", "postgres://u:hidden@h")], None, Ok(())),
            (&[("x", "postgres://u:hidden@h")], Some("x"), Ok(())),
            (
                &[("x", "postgres://u:hidden@h")],
                None,
                Err(neither.to_owned()),
            ),
            (
                &[("url", "postgres://:hidden@h")],
                None,
                Err(format!("{wrong}it names no user")),
            ),
            (
                &[("url", "hidden")],
                Some("url"),
                Err(format!(
                    "{wrong}write an address that begins with postgres:// and names user, host and database"
                )),
            ),
        ] {
            let own = |(key, value): &(&str, &str)| {
                ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))
            };
            let data = entries.iter().map(own).collect();
            let found = read(&data, "s", entry).map(drop);
            assert_eq!(found, expected, "{entries:?}");
        }
    }
}
