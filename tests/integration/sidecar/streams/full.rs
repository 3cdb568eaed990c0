//! Streams that tell all there is to tell, so that everything is on the page.

use agents_sidecar::args::variable;
use anyhow::Result;
use support::metrics::Page;

use super::server::{Does, Server, stream};
use super::{by, control_plane, of, rough};

/// A controller and a control plane that tell everything.
pub(crate) struct Full(Server);

impl Full {
    pub(crate) async fn start() -> Result<Self> {
        let server = Server::start(|path, _| {
            Does::Holds(stream(&match path {
                "/controller" => rough::EVENT.to_owned(),
                _ => control_plane::story(),
            }))
        });
        Ok(Self(server.await?))
    }

    /// What a sidecar must be told to follow them.
    pub(crate) fn settings(&self) -> [(&'static str, String); 2] {
        let address = self.0.address;
        [
            (
                variable::QUEUE_STREAMS,
                format!("controller=http://{address}/controller"),
            ),
            (
                variable::CONTROL_PLANE_STREAMS,
                format!("upstream=http://{address}/upstream"),
            ),
        ]
    }
}

/// Whether a page shows all of it.
pub(crate) fn is_shown(page: &Page) -> bool {
    let all = by(page, "upstream", "source_events_total", ("event", "other"));
    of(page, "controller", "queue_depth").is_some() && all == Some(1.0)
}
