//! How the queue stands, for the sidecar and for people: as JSON when asked, and as a stream of server-sent events.
//!
//! Everything comes from the book that admission decides from. [`reader`] is one who reads, [`service`] answers requests,
//! [`publisher`] tells of changes, [`key`] is what callers from outside the pod must show. Nobody who reads can hold up
//! anything: there is one ring of events for all readers, and who falls out of it is let go.

mod key;
mod message;
mod publisher;
mod reader;
mod service;
mod settings;

use std::sync::Arc;

use bytes::Bytes;
use tokio::net::TcpListener;

pub(super) use key::Key;
pub(crate) use settings::Settings;

use super::agent_run::AgentRuns;
use super::context::Context;
use crate::kit::http::events::{self, Room};
use crate::kit::http::{Limits, Server, Transport};
use crate::kit::program::{Error, Program, listen_narrow};
use crate::kit::shutdown::Shutdown;
use message::State;
use publisher::Publisher;
use service::Queue;

/// The last events as they are sent, and those who read them.
pub(super) type Hub = events::Hub<Bytes>;

/// What is kept of them, and for how many. An event has a few thousand bytes.
const ROOM: Room = Room {
    readers: 256,
    events: 128,
    bytes: 4 * 1024 * 1024,
};

/// Bytes that the system keeps for a reader who does not take them.
const SEND_BUFFER: u32 = 16 * 1024;

/// Bytes that we keep for it; also those of the head of its request.
const OWN_BUFFER: u32 = 16 * 1024;

/// The ports, open.
pub(super) struct Listeners {
    /// For the sidecar, which is in the same pod.
    own: TcpListener,
    /// For the control plane.
    relay: Option<TcpListener>,
}

/// Opens the ports.
pub(super) fn listen(settings: &Settings) -> Result<Listeners, Error> {
    let open = |name, address| listen_narrow(name, address, SEND_BUFFER);
    let relay = settings.relay.map(|address| open(RELAY, address));
    Ok(Listeners {
        own: open(SERVER, settings.listen)?,
        relay: relay.transpose()?,
    })
}

const SERVER: &str = "queue";
const RELAY: &str = "queue-relay";

/// Control planes that read at a time, and room for one that comes while another goes. Few, so that strangers who come to this
/// port take no place from the sidecar.
const RELAYS: usize = 32;

/// What is shown, and where.
pub(super) struct Show {
    pub(super) settings: Settings,
    pub(super) listeners: Listeners,
    pub(super) key: Key,
}

/// Answers on the ports, and tells of changes.
pub(super) fn start(
    program: &mut Program,
    context: &Arc<Context>,
    runs: &Arc<AgentRuns>,
    show: Show,
) -> Arc<Hub> {
    let hub = Arc::new(Hub::new(ROOM));
    let state = State {
        book: Arc::clone(runs.book()),
        leadership: context.leadership.clone(),
        clock: context.clock,
        hub: Arc::clone(&hub),
    };
    let publisher = Publisher {
        state: state.clone(),
        runs: Arc::clone(runs),
        interval: show.settings.interval,
    };
    program
        .tasks
        .work("queue-publisher", |shutdown| async move {
            tokio::select! {
                _ = shutdown.started() => {}
                () = publisher.run() => {}
            }
            Ok(())
        });
    let Listeners { own, relay } = show.listeners;
    // Readers make no room, so there is some more for those who only ask.
    serve(
        program,
        SERVER,
        own,
        ROOM.readers + 64,
        Queue::open(state.clone()),
    );
    if let Some(relay) = relay {
        let locked = Queue::locked(state, show.key);
        serve(program, RELAY, relay, RELAYS, locked);
    }
    hub
}

/// Answers on one port.
fn serve(
    program: &mut Program,
    name: &'static str,
    listener: TcpListener,
    connections: usize,
    queue: impl FnOnce(Shutdown) -> Queue + Send + 'static,
) {
    let server = Server {
        listener,
        transport: Transport::PlainHttp1,
        limits: Limits {
            connections,
            head_bytes: OWN_BUFFER,
            ..Limits::default()
        },
        metrics: program.http.of(name),
    };
    program.tasks.work(name, |shutdown| async move {
        server.serve(queue(shutdown.clone()), shutdown).await;
        Ok(())
    });
}
