//! The one emitter of Kubernetes Events, shared by all programs.
//!
//! [`Emitter::emit`] never waits and never fails: occurrences go through a queue to one [`Writer`], which stores the first
//! of a kind at once, counts repeats as a series, and keeps to limits per object, per reason and namespace, and for the
//! whole program. Events are told once the status is stored; they never carry what only they know.

mod emitter;
mod event;
mod limiter;
pub mod metrics;
mod occurrence;
mod reason;
mod settings;
mod store;
mod writer;

pub use emitter::Emitter;
pub use event::Reporter;
pub use metrics::Metrics;
pub use occurrence::{Effect, Note, Occurrence, Regarding};
pub use reason::{Action, Reason, Severity};
pub use settings::{Limits, Settings};
pub use writer::Writer;

use kube::Client;
use tokio::sync::{mpsc, oneshot};

use crate::kit::fence::Fence;
use crate::kit::program::Program;

/// How a program emits.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whether Events are emitted at all.
    pub enabled: bool,
    /// Who emits.
    pub reporter: Reporter,
    /// What is kept to.
    pub limits: Limits,
}

impl Config {
    /// What the operator has set, for one program.
    pub fn new(settings: Settings, reporter: Reporter) -> Self {
        let Settings {
            enabled,
            per_minute,
        } = settings;
        Self {
            enabled,
            reporter,
            limits: Limits::new(per_minute),
        }
    }
}

/// The emitter of a program, with its metrics and the task that writes.
pub fn attach(
    program: &mut Program,
    client: Client,
    settings: Settings,
    reporter: Reporter,
) -> Emitter {
    let config = Config::new(settings, reporter);
    attach_behind(program, client, config, Fence::always()).0
}

/// The same for a program that may write only while it holds a lease. Also says when the last word has been written, so
/// that the lease is not given away before.
pub fn attach_behind(
    program: &mut Program,
    client: Client,
    config: Config,
    fence: Fence,
) -> (Emitter, oneshot::Receiver<()>) {
    let metrics = Metrics::register(program.metrics());
    let (emitter, writer) = new_behind(client, config, metrics, fence);
    let (last_word, said) = oneshot::channel();
    program.tasks.support("events", |shutdown| async move {
        writer.run(shutdown.started()).await;
        // Who waits for it may be gone already.
        let _ = last_word.send(());
        Ok(())
    });
    (emitter, said)
}

/// The handle to emit with, and the task that does the writing, which the caller must run.
pub fn new(client: Client, config: Config, metrics: Metrics) -> (Emitter, Writer) {
    new_behind(client, config, metrics, Fence::always())
}

/// The same for who may write only while a fence is open.
fn new_behind(client: Client, config: Config, metrics: Metrics, fence: Fence) -> (Emitter, Writer) {
    let Config {
        enabled,
        reporter,
        limits,
    } = config;
    if !enabled {
        return (Emitter::new(None, metrics), Writer::new(None));
    }
    let (sender, receiver) = mpsc::channel(limits.queue.max(1));
    let store = store::Store::new(client, reporter, limits.deadline, metrics.clone()).behind(fence);
    let work = writer::Work::new(receiver, limits, store, metrics.clone());
    (Emitter::new(Some(sender), metrics), Writer::new(Some(work)))
}
