//! `agents release`: takes the finalizers of custody from Jobs, pods and runs by hand, where no controller is left to do it.
//!
//! Needs get, list and patch on Jobs and pods; without the same on runs it leaves those alone and says so. Says first what
//! would be lost.

mod plan;

use std::io::{self, IsTerminal, Write as _};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PartialObjectMeta, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::failure::Failure;
use super::session::{Access, Session, ask, list_all};
use super::shown::{Paint, print};
use crate::api::contract::{COMMAND_LINE_MANAGER, finalizer, label};
use crate::api::kinds::{AgentRun, ToolRun};
use crate::kit::exit::Exit;
use plan::{Plan, Thing, without};

/// How often a write is tried while others write the same object.
const TRIES: usize = 5;

/// What is to be released.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    access: Access,
    /// Only this Job and its pods.
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Release also where outcomes are lost by it, without asking.
    #[arg(short, long)]
    yes: bool,
    /// Only show what would be released and lost.
    #[arg(long)]
    dry_run: bool,
}

/// Shows what is held, asks where something would be lost, and releases.
///
/// # Errors
///
/// What a person is told.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    if args.access.named_namespace().is_none() {
        return Err(Failure::misused("no namespace is given")
            .next("say where with --namespace; what is released cannot be taken back"));
    }
    let session = args.access.connect().await?;
    let plan = gather(&session, args.job.as_deref()).await?;
    let place = match &args.job {
        Some(job) => format!("Job {job} of namespace {}", session.namespace),
        None => format!("namespace {}", session.namespace),
    };
    print(&plan.text(&place, Paint::of_output()))?;
    if args.dry_run || plan.held.is_empty() {
        return Ok(Exit::Done);
    }
    if plan.loses() && !args.yes && !agreed()? {
        return Err(Failure::new("nothing was released")
            .next("let the controllers record the outcomes, or release all the same with --yes"));
    }
    for held in &plan.held {
        match held.thing {
            Thing::Job => let_go::<Job>(&session.api(), &held.name, finalizer::OUTCOME).await?,
            Thing::Pod => let_go::<Pod>(&session.api(), &held.name, finalizer::EVIDENCE).await?,
            Thing::AgentRun => let_run_go::<AgentRun>(&session, &held.name).await?,
            Thing::ToolRun => let_run_go::<ToolRun>(&session, &held.name).await?,
        }
    }
    print(&format!("{} released.\n", plan.count()))?;
    Ok(Exit::Done)
}

async fn gather(session: &Session, job: Option<&str>) -> Result<Plan, Failure> {
    let (jobs, pods) = (session.api::<Job>(), session.api::<Pod>());
    let Some(name) = job else {
        let all = ListParams::default();
        let jobs = list_all("list the Jobs", &jobs, &all).await?;
        let pods = list_all("list the pods", &pods, &all).await?;
        let (agent_runs, tool_runs) = (
            runs::<AgentRun>(session, "list the AgentRuns").await,
            runs::<ToolRun>(session, "list the ToolRuns").await,
        );
        return Ok(Plan::of(&jobs, &pods)
            .and_runs(Thing::AgentRun, &agent_runs)
            .and_runs(Thing::ToolRun, &tool_runs));
    };
    let found = ask("read the Job", jobs.get_opt(name)).await?;
    let its = ListParams::default().labels(&format!("{}={name}", label::JOB_NAME));
    let pods = list_all("list the pods of the Job", &pods, &its).await?;
    Ok(Plan::of(&found.into_iter().collect::<Vec<_>>(), &pods))
}

/// Runs by their metadata, which can always be read. Jobs and pods can be released without them, by someone with few rights.
async fn runs<K>(session: &Session, what: &str) -> Vec<PartialObjectMeta<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let api = session.api::<PartialObjectMeta<K>>();
    let listed = list_all(what, &api, &ListParams::default()).await;
    listed.unwrap_or_else(|failure| {
        eprint!("{}", failure.warning());
        Vec::new()
    })
}

async fn let_run_go<K>(session: &Session, name: &str) -> Result<(), Failure>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let api = session.api::<PartialObjectMeta<K>>();
    let_go(&api, name, finalizer::RUNTIME_CLEANUP).await
}

/// Asks the person, if there is one.
fn agreed() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("Release all the same? [y/N] ");
    let mut answer = String::new();
    let read = io::stderr()
        .flush()
        .and_then(|()| io::stdin().read_line(&mut answer));
    read.map_err(|error| Failure::new("could not read the answer").because(&error))?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Takes one finalizer away and leaves the others; what is gone meanwhile is released as well.
async fn let_go<K>(api: &Api<K>, name: &str, finalizer: &str) -> Result<(), Failure>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let params = PatchParams {
        field_manager: Some(COMMAND_LINE_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    for _ in 0..TRIES {
        let Some(object) = ask(&format!("read {name}"), api.get_opt(name)).await? else {
            return Ok(());
        };
        let Some(rest) = without(object.finalizers(), finalizer) else {
            return Ok(());
        };
        let version = object.resource_version();
        let patch = json!({"metadata": {"finalizers": rest, "resourceVersion": version}});
        match api
            .patch_metadata(name, &params, &Patch::Merge(patch))
            .await
        {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
            Err(error) => return Err(Failure::call(&format!("release {name}"), &error)),
        }
    }
    Err(
        Failure::new(format!("{name} changes faster than it can be released"))
            .next("stop the controllers first, then try again"),
    )
}
