//! Streams that a sidecar follows, on its page: of real controllers, and of servers that do as they please.

mod control_plane;
mod controllers;
pub(crate) mod full;
mod rough;
mod server;

use std::{net::SocketAddr, time::Duration};

use agents::kit::args::variable as common;
use agents_sidecar::args::variable;
use anyhow::{Result, ensure};
use support::{metrics::Page, wait};

use crate::kit::process::{Process, product};

/// Nothing takes longer, also where everything else is busy.
const DEADLINE: Duration = Duration::from_secs(90);

/// A sidecar and its page.
struct Sidecar {
    process: Process,
    admin: SocketAddr,
}

impl Sidecar {
    /// One that follows these streams, and nothing that is not in the settings.
    async fn start(settings: &[(&str, &str)]) -> Self {
        let mut environment = vec![
            (common::ADMIN_LISTEN, "127.0.0.1:0"),
            (variable::QUEUE_STREAMS, "[]"),
        ];
        environment.extend_from_slice(settings);
        let mut process = Process::start(&product("agents-sidecar"), &[], &environment);
        let admin = process.address("admin").await;
        Self { process, admin }
    }

    async fn page(&self) -> Result<Page> {
        Page::scrape(&self.admin.to_string()).await
    }

    /// The first page that is as wanted.
    async fn until(&self, what: &str, wanted: impl Fn(&Page) -> bool) -> Result<Page> {
        wait::retry(what, DEADLINE, || async {
            let page = self.page().await?;
            ensure!(wanted(&page), "{:#?}", ours(&page));
            Ok(page)
        })
        .await
    }
}

/// The series of the sidecar itself that are not 0.
fn ours(page: &Page) -> Vec<String> {
    let ours = page
        .samples
        .iter()
        .filter(|(series, value)| series.name.starts_with("agents_sidecar_") && **value != 0.0);
    ours.map(|(series, value)| format!("{series} {value}"))
        .collect()
}

/// A number of a source, by the rest of its name.
fn of(page: &Page, source: &str, name: &str) -> Option<f64> {
    page.value(&format!("agents_sidecar_{name}"), &[("source", source)])
}

/// The same with one label more.
fn by(page: &Page, source: &str, name: &str, label: (&str, &str)) -> Option<f64> {
    let name = format!("agents_sidecar_{name}");
    page.value(&name, &[("source", source), label])
}

/// Everything that is said of the queue of a source.
fn queue(page: &Page, source: &str) -> Vec<String> {
    let of_queue = page.samples.iter().filter(|(series, _)| {
        let is_queue = series.name.starts_with("agents_sidecar_queue_");
        // How many changes were left out is a count, not a state.
        let is_state = !series.name.ends_with("_total");
        is_queue && is_state && series.labels.get("source").is_some_and(|own| own == source)
    });
    of_queue
        .map(|(series, value)| format!("{series} {value}"))
        .collect()
}
