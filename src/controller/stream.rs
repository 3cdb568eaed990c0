//! How the queue stands, for the sidecar and for people: as JSON when asked, and as a stream of server-sent events.
//!
//! Everything comes from the book that admission decides from. [`hub`] keeps the last events and knows the readers,
//! [`reader`] is one of them, [`service`] answers requests, [`publisher`] tells of changes. Nobody who reads can hold up
//! anything: there is one ring of events for all readers, and who falls out of it is let go.

mod hub;
mod message;
mod publisher;
mod reader;
mod service;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

pub(super) use hub::{Figures, Hub};
pub(crate) use settings::Settings;

use super::agent_run::AgentRuns;
use super::context::Context;
use crate::kit::http::{Limits, Server, Transport};
use crate::kit::program::{Error, Program, listen_narrow};
use hub::READERS;
use message::State;
use publisher::Publisher;
use service::Queue;

/// Bytes that the system keeps for a reader who does not take them.
const SEND_BUFFER: u32 = 16 * 1024;

/// Bytes that we keep for it; also those of the head of its request.
const OWN_BUFFER: u32 = 16 * 1024;

/// Who takes nothing for so long, although something is sent at least every [`reader::HEARTBEAT`], is gone.
const STALLED: Duration = Duration::from_secs(45);

/// Opens the port.
pub(super) fn listen(settings: &Settings) -> Result<TcpListener, Error> {
    listen_narrow(SERVER, settings.listen, SEND_BUFFER)
}

const SERVER: &str = "queue";

/// Answers on the port, and tells of changes.
pub(super) fn start(
    program: &mut Program,
    context: &Arc<Context>,
    runs: &Arc<AgentRuns>,
    (settings, listener): (Settings, TcpListener),
) -> Arc<Hub> {
    let hub = Arc::new(Hub::new());
    let state = State {
        book: Arc::clone(runs.book()),
        leadership: context.leadership.clone(),
        clock: context.clock,
        hub: Arc::clone(&hub),
    };
    let publisher = Publisher {
        state: state.clone(),
        runs: Arc::clone(runs),
        interval: settings.interval,
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
    let server = Server {
        listener,
        transport: Transport::Plain,
        limits: Limits {
            // Room for those who only ask, so that they displace no reader.
            connections: READERS + 64,
            idle: STALLED,
            head_bytes: OWN_BUFFER,
            ..Limits::default()
        },
        metrics: program.http.of(SERVER),
    };
    program.tasks.work("queue-stream", |shutdown| async move {
        let service = Queue::new(state, shutdown.clone());
        server.serve(service, shutdown).await;
        Ok(())
    });
    hub
}
