//! `agents queue`: who is in line, who runs and what is held back, once or for as long as someone looks.
//!
//! The controller that holds the lease knows best and is asked by way of the API server. Where it cannot be asked, the runs
//! themselves are counted, and that is said.

pub(super) mod count;
mod figures;
mod view;

use std::io::{self, IsTerminal};
use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use tokio::time::sleep;

use super::failure::Failure;
use super::session::{Access, Session, ask, list_all};
use super::shown::{Format, Paint, document, print};
use crate::api::contract::{annotation, port, queue};
use crate::api::kinds::AgentRun;
use crate::api::text::duration::parse_duration;
use crate::kit::exit::Exit;
use figures::{Snapshot, Source, Told};

/// What a terminal obeys to begin with an empty screen.
const EMPTY: &str = "\u{1b}[2J\u{1b}[H";

/// What is shown, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// Stay, and show every change.
    #[arg(short, long)]
    watch: bool,
    /// Time between two looks, such as 2s.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// Name of the lease of the controllers, which is sought in the namespace.
    #[arg(long, value_name = "NAME", default_value = "jangar-controller-leader")]
    lease: String,
    /// How the queue is shown; wide shows repositories as well.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

fn interval(text: &str) -> Result<Duration, String> {
    let given = parse_duration(text).filter(|time| *time >= Duration::from_millis(100));
    given.ok_or_else(|| format!("`{text}` is no time such as 2s, or shorter than 100ms"))
}

/// Shows the queue.
///
/// # Errors
///
/// When neither the leader nor the runs can be read.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let session = args.access.connect().await?;
    let is_screen = args.watch && io::stdout().is_terminal();
    let (mut before, mut complaint) = (None, None);
    loop {
        let (snapshot, why) = look(&session, &args.lease).await?;
        if why != complaint {
            if let Some(why) = &why {
                eprint!("{}", why.warning());
            }
            complaint = why;
        }
        if before.as_ref() != Some(&snapshot.figures) {
            let text = shown(&snapshot, args.output)?;
            let start = if is_screen { EMPTY } else { "" };
            print(&format!("{start}{text}"))?;
            before = Some(snapshot.figures);
        }
        if !args.watch {
            return Ok(Exit::Done);
        }
        sleep(args.interval).await;
    }
}

fn shown(snapshot: &Snapshot, format: Format) -> Result<String, Failure> {
    match format {
        Format::Table => Ok(view::table_of(snapshot, false, Paint::of_output())),
        Format::Wide => Ok(view::table_of(snapshot, true, Paint::of_output())),
        Format::Json => document(snapshot, false),
        Format::Yaml => Ok(format!("---\n{}", document(snapshot, true)?)),
    }
}

/// How the queue stands, and why the leader did not say so itself.
async fn look(session: &Session, lease: &str) -> Result<(Snapshot, Option<Failure>), Failure> {
    let why = match of_leader(session, lease).await {
        Ok(snapshot) => return Ok((snapshot, None)),
        Err(why) => why,
    };
    let all = Api::<AgentRun>::all(session.client.clone());
    let params = ListParams::default();
    let runs = match list_all("list the runs of all namespaces", &all, &params).await {
        Ok(runs) => runs,
        // Who may not read all namespaces may read one.
        Err(_) => list_all("list the runs", &session.api(), &params).await?,
    };
    let now = Timestamp::now();
    let snapshot = Snapshot {
        at: now,
        source: Source::Runs,
        leader: None,
        figures: count::count(&runs),
    };
    Ok((snapshot, Some(why)))
}

/// What the controller says that holds the lease.
async fn of_leader(session: &Session, name: &str) -> Result<Snapshot, Failure> {
    let counted = "the runs themselves are counted instead";
    let lease = session.api::<Lease>();
    let lease = ask("find out who leads", lease.get(name)).await;
    let lease = lease.map_err(|why| why.next(counted))?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    let holder = holder.filter(|holder| !holder.is_empty());
    let Some(holder) = holder else {
        let what = format!("nobody holds the lease {name}");
        return Err(Failure::new(what).next(counted));
    };
    let pod = holder.rsplit_once('_').map_or(&*holder, |(pod, _)| pod);
    let (namespace, port, path) = (&session.namespace, port::QUEUE_RELAY, queue::SNAPSHOT);
    let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}");
    let annotations = lease.metadata.annotations.unwrap_or_default();
    let mut request = Request::get(uri);
    if let Some(key) = annotations.get(annotation::QUEUE_KEY) {
        request = request.header(queue::KEY, key);
    }
    let request = request.body(Vec::new());
    let request = request.map_err(|error| Failure::new("no such address").because(&error))?;
    let what = format!("ask {pod}, which leads");
    let told: Result<Told, Failure> = ask(&what, session.client.request(request)).await;
    let told = told.map_err(|why| why.next(counted))?;
    let Some(figures) = told.queue else {
        let what = format!("{pod} does not lead any more");
        return Err(Failure::new(what).next(counted));
    };
    Ok(Snapshot {
        at: told.at,
        source: Source::Leader,
        leader: Some(pod.to_owned()),
        figures,
    })
}
