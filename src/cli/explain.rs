//! `agents explain`: why a run is in the state that it is in, in one paragraph.
//!
//! Reads the run, its Events, its Jobs and their pods, and the policy in force; what follows from them is said in `text`.

mod advice;
mod evidence;
mod policy;
mod text;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::failure::Failure;
use super::run::view;
use super::session::{Access, ask, list_all};
use super::shown::{Output, document, plain, print};
use crate::api::contract::label;
use crate::api::kinds::AgentRun;
use crate::kit::exit::Exit;
use text::{Facts, Said, text};

/// The run that is asked about.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// Namespace of the webhook whose policy is in force for the run. If left out, that of the run, else the only one of
    /// the cluster that has a webhook.
    #[arg(long, value_name = "NAMESPACE")]
    policy_of: Option<String>,
    /// How it is shown.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Name of the run.
    run: String,
}

/// Says why.
///
/// # Errors
///
/// What a person is told; only the run itself must be readable.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let session = args.access.connect().await?;
    let name = &args.run;
    let what = format!("read the run {name} in namespace {}", session.namespace);
    let run = ask(&what, session.api::<AgentRun>().get(name)).await?;
    let uid = run.uid().unwrap_or_default();
    let about = ListParams::default().fields(&format!("regarding.uid={uid}"));
    let its = ListParams::default().labels(&format!("{}={uid}", label::RUN_UID));
    let (events, jobs, pods) = (
        session.api::<Event>(),
        session.api::<Job>(),
        session.api::<Pod>(),
    );
    let (events, jobs, pods, verdict) = tokio::join!(
        list_all("list the Events", &events, &about),
        list_all("list the Jobs", &jobs, &its),
        list_all("list the pods", &pods, &its),
        policy::verdict(&session, args.policy_of.as_deref(), &run),
    );
    let facts = Facts {
        run,
        events: events.ok().map(|events| events.iter().map(said).collect()),
        jobs: jobs.ok(),
        pods: pods.ok(),
        verdict: verdict.ok(),
        now: Timestamp::now(),
    };
    let text = plain(&text(&facts));
    match args.output {
        Output::Text => print(&format!("{text}\n"))?,
        Output::Json => print(&document(&told(&facts.run, &text), false)?)?,
    }
    Ok(Exit::Done)
}

/// The same for programs: how the run stands, by the words of its status, and the text.
fn told(run: &AgentRun, text: &str) -> Value {
    let reason = view::told(run).and_then(|told| told.reason.as_deref());
    json!({
        "namespace": run.namespace(), "name": run.name_any(), "phase": view::phase(run), "reason": reason, "text": text,
    })
}

fn said(event: &Event) -> Said {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let series = event
        .series
        .as_ref()
        .map(|series| series.last_observed_time.0);
    let old = event.deprecated_last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    Said {
        is_warning: event.type_.as_deref() == Some("Warning"),
        reason: text(&event.reason),
        note: text(&event.note),
        at: series.or(old).or(first),
    }
}
