//! What the sidecar sees that runs beside the controller that leads: the streams that it follows, and how Jobs stand. It is
//! read from its page of metrics by way of the API server, once in a few seconds however many ask.

mod page;

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use jiff::Timestamp;
use kube::Client;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::leader::Lease;
use super::queue::line;
use crate::api::contract::path;
use crate::api::text::sanitise::for_log;
use crate::serve::answer::{self, Answer};
use crate::serve::fault::{Fault, Reason};
use crate::serve::state::State;
use page::{Jobs, Page, Source};

/// Time for which an answer is kept, or that there was none.
const KEPT: Duration = Duration::from_secs(5);

/// Time to read the page.
const DEADLINE: Duration = Duration::from_secs(10);

/// Lines of a page that are looked at; what other programs push stands on it as well.
const LINES: usize = 500_000;

/// What the sidecar beside the leader sees.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Sidecar")]
pub(in crate::serve) struct Seen {
    /// The pod in which it runs.
    pod: String,
    /// When its page was read.
    at: String,
    /// Streams that it follows.
    sources: Vec<Source>,
    /// How Jobs stand.
    jobs: Jobs,
}

/// Asks the sidecar beside the leader.
pub(in crate::serve) struct Sidecar {
    client: Client,
    lease: Lease,
    port: u16,
    latest: Mutex<Option<(Instant, Result<Bytes, Fault>)>>,
}

impl Sidecar {
    pub(in crate::serve) fn new(client: Client, lease: Lease, port: u16) -> Self {
        Self {
            client,
            lease,
            port,
            latest: Mutex::default(),
        }
    }

    /// What it says, or said a moment ago. Who asks meanwhile waits for the same answer.
    async fn latest(&self) -> Result<Bytes, Fault> {
        let mut latest = self.latest.lock().await;
        if let Some((at, told)) = &*latest
            && at.elapsed() < KEPT
        {
            return told.clone();
        }
        let told = self.ask().await;
        *latest = Some((Instant::now(), told.clone()));
        told
    }

    async fn ask(&self) -> Result<Bytes, Fault> {
        let Some(leader) = self.lease.leader().filter(|leader| leader.is_held) else {
            let (namespace, name) = self.lease.place();
            let why = format!("nobody holds the lease {name} in namespace {namespace}");
            return Err(silent(Reason::NoLeader, why));
        };
        let pod = leader.pod();
        let read = timeout(DEADLINE, self.read(pod)).await;
        let read = read.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        let page = read.map_err(|why| {
            let why = format!("the sidecar of {pod} cannot be asked: {why}");
            silent(Reason::LeaderUnreachable, why)
        })?;
        let (sources, jobs) = page.told();
        let seen = Seen {
            pod: pod.to_owned(),
            at: Timestamp::now().to_string(),
            sources,
            jobs,
        };
        // Numbers and texts can always be written as JSON.
        Ok(serde_json::to_vec(&seen).unwrap_or_default().into())
    }

    async fn read(&self, pod: &str) -> Result<Page, String> {
        let (namespace, port, path) = (self.lease.pods(), self.port, path::METRICS);
        let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}");
        let request = Request::get(uri).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let opened = self.client.request_stream(request).await;
        let stream = opened.map_err(|error| for_log(&error.to_string()))?;
        let mut stream = Box::pin(stream);
        let mut page = Page::default();
        for _ in 0..LINES {
            match line(&mut stream).await.map_err(|error| error.to_string())? {
                Some(line) => page.take(&String::from_utf8_lossy(&line)),
                None => return Ok(page),
            }
        }
        Err(format!("its page has more than {LINES} lines"))
    }
}

fn silent(reason: Reason, why: String) -> Fault {
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, reason, why)
        .next("look at the pods of agents-controllers; AGENTS_SERVE_SIDECAR_TARGET must be the port of the page of their sidecar")
        .again_after(5)
}

/// What the sidecar beside the leader sees.
pub(in crate::serve) async fn seen(state: &State) -> Result<Answer, Fault> {
    let told = state.sidecar.latest().await?;
    Ok(answer::whole(StatusCode::OK, "application/json", told))
}
