//! What was received goes on to a collector, unchanged, if there is one: so that the sidecar never stands in the way of what
//! was there before it.
//!
//! Whoever sends is answered before that. What waits to go on is bounded in number and bytes; what finds no room, is refused, or
//! is too old is dropped and counted.

mod deliver;
mod metrics;
mod settings;
mod verdict;
mod wire;

use std::{sync::Arc, time::Instant};

use agents::kit::{
    egress::trusting,
    program::{Error, Program},
};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::{
    OwnedSemaphorePermit, Semaphore,
    mpsc::{Sender, channel},
};

pub use settings::{Protocol, Settings, To};

use crate::{
    args::variable,
    otlp::{Signal, answer::Encoding},
};
use deliver::Delivery;
use metrics::{Cause, Metrics};
use wire::Client;

/// Requests that wait at once.
const WAITING: usize = 1_024;

/// Units in which bytes are counted.
const UNIT: usize = 1_024;

/// A request on its way.
#[derive(Debug)]
struct Item {
    signal: Signal,
    encoding: Encoding,
    /// As it goes over the wire.
    body: Bytes,
    since: Instant,
    metrics: Metrics,
    is_settled: bool,
    _room: OwnedSemaphorePermit,
}

impl Item {
    fn sent(mut self) {
        self.is_settled = true;
        self.metrics.sent(self.signal);
    }

    fn dropped(mut self, cause: Cause) {
        self.is_settled = true;
        self.metrics.dropped(self.signal, cause);
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        // What nobody has said anything about was still waiting at the end.
        if !self.is_settled {
            self.metrics.dropped(self.signal, Cause::Ended);
        }
    }
}

/// Takes what is to go on.
#[derive(Clone, Debug)]
pub struct Forward {
    protocol: Protocol,
    queue: Sender<Item>,
    room: Arc<Semaphore>,
    most: usize,
    metrics: Metrics,
}

impl Forward {
    /// Forwards from now on, if there is a target.
    ///
    /// # Errors
    ///
    /// When the authorities to trust cannot be read.
    pub fn start(program: &mut Program, settings: Settings) -> Result<Option<Self>, Error> {
        let metrics = Metrics::register(program.metrics());
        let Some(to) = settings.to else {
            return Ok(None);
        };
        let file = (variable::FORWARD_CA_FILE, to.authorities.as_deref());
        let tls = to.target.is_tls().then(|| trusting(&[file]).map(Arc::new));
        let tls = tls.transpose().map_err(|source| Error::Start {
            what: "forward over TLS",
            source: source.into(),
        })?;
        let (queue, waiting) = channel(WAITING);
        let forward = Self {
            protocol: to.protocol,
            queue,
            room: Arc::new(Semaphore::new(settings.queue.div_ceil(UNIT))),
            most: settings.queue.div_ceil(UNIT),
            metrics: metrics.clone(),
        };
        tracing::info!(target = %to.target, "Forwarding what is received");
        let delivery = Delivery::new(waiting, Client::new(to, tls), metrics);
        let work = |shutdown| async move {
            delivery.run(shutdown).await;
            Ok(())
        };
        program.tasks.work("forward", work);
        Ok(Some(forward))
    }

    /// Whether requests of this encoding can go on without being understood.
    pub fn speaks(&self, encoding: Encoding) -> bool {
        match (self.protocol, encoding) {
            (Protocol::Http, _) | (Protocol::Grpc, Encoding::Protobuf) => true,
            (Protocol::Grpc, Encoding::Json) => false,
        }
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        (self.most - self.room.available_permits().min(self.most)) * UNIT
    }

    /// Takes a request over, or counts that there is no room. Never waits.
    pub fn offer(&self, signal: Signal, encoding: Encoding, message: &[u8]) {
        let units = u32::try_from(message.len().div_ceil(UNIT).max(1)).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(units) else {
            return self.metrics.dropped(signal, Cause::QueueFull);
        };
        let item = Item {
            signal,
            encoding,
            body: self.framed(message),
            since: Instant::now(),
            metrics: self.metrics.clone(),
            is_settled: false,
            _room: room,
        };
        if let Err(error) = self.queue.try_send(item) {
            error.into_inner().dropped(Cause::QueueFull);
        }
    }

    /// A copy, because a part of what was read would hold on to all of it.
    fn framed(&self, message: &[u8]) -> Bytes {
        match self.protocol {
            Protocol::Http => Bytes::copy_from_slice(message),
            Protocol::Grpc => {
                let mut framed = BytesMut::with_capacity(message.len() + 5);
                framed.put_u8(0);
                framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
                framed.put_slice(message);
                framed.freeze()
            }
        }
    }
}

#[cfg(test)]
mod tests;
