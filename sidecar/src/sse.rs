//! Streams of server-sent events that are followed: what controllers tell of their queue, and what control planes tell of
//! their objects.
//!
//! A source has a task of its own ([`follow`]): it connects ([`client`]), reads events ([`parse`]), and tries again when the
//! time has come ([`state`]). What events say is read by [`queue`] or [`control_plane`] and kept in [`shown`], from where a
//! scrape takes it ([`metrics`]). Nothing of a source is shown for longer than its grace after it is gone.

mod client;
mod control_plane;
mod follow;
mod load;
mod metrics;
pub mod parse;
pub mod payload;
mod queue;
mod settings;
mod shown;
mod state;

use std::{path::PathBuf, sync::Arc};

use agents::kit::{
    egress::{Target, trusting},
    program::{Error, Program},
};

pub use settings::{Settings, Sources};

use crate::args::variable;
use client::Client;
use control_plane::Runs;
use follow::Follower;
use metrics::Board;
use parse::Limits;
use shown::{Shown, Told};

/// Follows every source from now on.
///
/// # Errors
///
/// When the authorities to trust cannot be read.
pub fn start(program: &mut Program, settings: &Settings) -> Result<(), Error> {
    let queues = settings.queues.0.iter();
    let queues = queues.map(|source| (source, Told::Queue(None), None));
    let control_planes = settings.control_planes.0.iter().map(|source| {
        let told = Told::ControlPlane(Runs::new(settings.runs));
        (source, told, settings.token.clone())
    });
    let mut board = Vec::new();
    for ((name, target), told, token) in queues.chain(control_planes) {
        let shown = Arc::new(Shown::new(name.clone(), settings.grace, told));
        board.push(Arc::clone(&shown));
        let follower = Follower {
            client: client(target, token, settings)?,
            target: target.clone(),
            limits: Limits {
                line: settings.event,
                event: settings.event,
            },
            silence: settings.silence,
            shown,
        };
        program.tasks.work("stream", |shutdown| async move {
            tokio::select! {
                _ = shutdown.started() => {}
                () = follower.run() => {}
            }
            Ok(())
        });
    }
    program.metrics().register_collector(Box::new(Board(board)));
    Ok(())
}

fn client(target: &Target, token: Option<PathBuf>, settings: &Settings) -> Result<Client, Error> {
    let tls = target.is_tls().then(|| {
        let file = (variable::STREAM_CA_FILE, settings.authorities.as_deref());
        let trusting = trusting(&[file]);
        trusting.map(Arc::new)
    });
    let tls = tls.transpose().map_err(|source| Error::Start {
        what: "follow streams over TLS",
        source: source.into(),
    })?;
    Ok(Client { tls, token })
}
