//! How the queue stands, relayed from the controller that holds the lease. One stream is read from it, by way of the API
//! server, however many read here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use futures::stream::{self, BoxStream, StreamExt};
use http::{Request, StatusCode};
use kube::Client;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::leader::{Key, Leader, Lease};
use super::stream::{About, Event, Filter, Hub, Wish, open, tell};
use crate::api::contract::{queue, queue_event};
use crate::api::text::sanitise::for_log;
use crate::cluster::following;
use crate::kit::http::events::lines;
use crate::serve::answer::{self, Answer};
use crate::serve::fault::{Fault, Reason};
use crate::serve::service::Call;
use crate::serve::state::State;

/// Longest line of the stream, in bytes.
const LINE: u64 = 1024 * 1024;

/// The controllers send something at least every 15 s.
const SILENCE: Duration = Duration::from_secs(45);

/// What is known of the queue, and from whom.
pub(in crate::serve) struct Relay {
    pub(in crate::serve) hub: Arc<Hub>,
    lease: Lease,
    port: u16,
    latest: Mutex<Latest>,
}

#[derive(Clone, Debug)]
enum Latest {
    /// As the leader said.
    Told(Bytes),
    /// Why there is nothing.
    Nothing(Reason, String),
}

impl Relay {
    pub(in crate::serve) fn new(hub: Arc<Hub>, lease: Lease, port: u16) -> Self {
        let nothing = "no controller has been asked yet".to_owned();
        Self {
            hub,
            lease,
            port,
            latest: Mutex::new(Latest::Nothing(Reason::NoLeader, nothing)),
        }
    }

    fn latest(&self) -> Latest {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.clone()
    }

    /// Keeps what was told, or why nothing was, and tells it on.
    fn set(&self, now: Latest) {
        let data = now.data();
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = now;
        tell(&self.hub, queue_event::QUEUE, About::default(), &data);
    }

    fn nothing(&self, reason: Reason, why: String) {
        let is_news =
            !matches!(self.latest(), Latest::Nothing(was, told) if was == reason && told == why);
        if is_news {
            tracing::info!(
                reason = reason.as_str(),
                why,
                "Nobody says how the queue stands"
            );
            self.set(Latest::Nothing(reason, why));
        }
    }

    /// Reads from whoever leads, until it is dropped.
    pub(in crate::serve) async fn run(&self, client: &Client) {
        let mut changes = self.lease.changes();
        let mut wait = following::FIRST_WAIT;
        loop {
            changes.mark_unchanged();
            let leader = self.lease.leader().filter(|leader| leader.is_held);
            let Some(leader) = leader else {
                let (namespace, name) = self.lease.place();
                let why = format!("nobody holds the lease {name} in namespace {namespace}");
                self.nothing(Reason::NoLeader, why);
                if changes.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let read = tokio::select! {
                read = self.read(client, &leader) => read,
                Ok(()) = changes.changed() => {
                    wait = following::FIRST_WAIT;
                    continue;
                }
            };
            if let Err(why) = read {
                let why = format!(
                    "{} holds the lease and cannot be asked: {why}",
                    leader.pod()
                );
                self.nothing(Reason::LeaderUnreachable, why);
            }
            tokio::select! {
                () = sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)) => {}
                Ok(()) = changes.changed() => {}
            }
            wait = following::longer(wait);
        }
    }

    /// Reads the stream of the leader to its end.
    async fn read(&self, client: &Client, leader: &Leader) -> Result<(), String> {
        let namespace = self.lease.pods();
        let (pod, port) = (leader.pod(), self.port);
        let path = queue::STREAM;
        let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}");
        let mut request = Request::get(uri);
        if let Some(Key(key)) = &leader.key {
            request = request.header(queue::KEY, key);
        }
        let request = request.body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let opened = timeout(SILENCE, client.request_stream(request)).await;
        let opened = opened.map_err(|_| "no answer in time".to_owned())?;
        let stream = opened.map_err(|error| for_log(&error.to_string()))?;
        let mut stream = Box::pin(stream);
        loop {
            let line = timeout(SILENCE, line(&mut stream)).await;
            let line = line.map_err(|_| format!("silent for {} s", SILENCE.as_secs()))?;
            let Some(line) = line.map_err(|error| error.to_string())? else {
                return Err("the stream ended".to_owned());
            };
            if let Some(data) = line.strip_prefix(b"data: ")
                && is_state(data)
            {
                self.set(Latest::Told(Bytes::copy_from_slice(data)));
            }
        }
    }
}

/// Whether it says how the queue stands, and not that the stream is over.
fn is_state(data: &[u8]) -> bool {
    let read: Result<serde_json::Value, _> = serde_json::from_slice(data);
    read.is_ok_and(|value| value.get("leader").is_some())
}

/// The next line; none at the end.
pub(in crate::serve) async fn line(
    stream: &mut (impl AsyncBufRead + Unpin),
) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = stream.take(LINE).read_until(b'\n', &mut line).await?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if read > 0 {
        return Err(std::io::Error::other("a line is too long or broke off"));
    }
    Ok((read > 0).then_some(line))
}

impl Latest {
    /// As it is told in a stream.
    fn data(&self) -> Bytes {
        match self {
            Self::Told(data) => data.clone(),
            Self::Nothing(reason, why) => {
                let told = json!({"leader": false, "queue": null, "reason": reason.as_str(), "message": why});
                told.to_string().into()
            }
        }
    }
}

/// How the queue stands.
pub(in crate::serve) fn snapshot(state: &State) -> Result<Answer, Fault> {
    match state.queue.latest() {
        Latest::Told(data) => Ok(answer::whole(StatusCode::OK, "application/json", data)),
        Latest::Nothing(reason, why) => {
            Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, reason, why)
                .next("look at the pods of agents-controllers; AGENTS_QUEUE_RELAY_LISTEN must be an address that the API server reaches")
                .again_after(5))
        }
    }
}

/// How it changes.
pub(in crate::serve) fn stream(state: &Arc<State>, call: &Call) -> Result<Answer, Fault> {
    let relay = &state.queue;
    let first = |_| first(relay);
    let wish = Wish {
        filter: Filter::default(),
        named: true,
        brief: false,
    };
    open(state, call, &relay.hub, wish, first)
}

fn first(relay: &Relay) -> BoxStream<'static, Event> {
    let id = relay.hub.last_id();
    let event = Event {
        name: queue_event::SNAPSHOT,
        lines: lines(Some(&id), &relay.latest().data()),
        brief: None,
    };
    stream::iter([event]).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_one_by_one_and_none_is_endless() {
        let mut text = futures::io::Cursor::new(b"data: {}\n\nrest".to_vec());
        assert_eq!(
            line(&mut text).await.unwrap().as_deref(),
            Some(b"data: {}".as_slice())
        );
        assert_eq!(
            line(&mut text).await.unwrap().as_deref(),
            Some(b"".as_slice())
        );
        assert!(line(&mut text).await.is_err(), "broke off");
        let mut long = futures::io::Cursor::new(vec![b'x'; usize::try_from(LINE).unwrap() + 1]);
        assert!(line(&mut long).await.is_err());
        let mut none = futures::io::Cursor::new(Vec::new());
        assert_eq!(line(&mut none).await.unwrap(), None);
    }

    #[test]
    fn the_end_of_a_stream_is_no_state() {
        assert!(is_state(br#"{"leader": true, "queue": {}}"#));
        assert!(!is_state(br#"{"reason": "shutdown"}"#) && !is_state(b"x"));
    }
}
