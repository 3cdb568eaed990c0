//! `lab tour`: everything there is, running in a lab, and a short text that says what is where and what to try.
//!
//! Stays until Ctrl-C, then leaves nothing behind.

mod admission;
mod custody;
mod pods;
mod processes;
mod runs;
mod scraper;

use agents::api::contract::path;
use anyhow::{Context, Result};
use custody::Story;
use scraper::{QUERY, Scraper};
use std::{env, net::SocketAddr, path::PathBuf};
use support::{
    crds, fixtures, image,
    lab::{
        Lab, node,
        relay::Relay,
        report::{Report, spoken},
        state::{LabName, Tier},
        tools::{self, build},
    },
};
use tokio::signal::unix::{SignalKind, signal};

/// Namespace of the examples; the one that operators' settings name by default.
const EXAMPLES: &str = "agents";
/// The run among the examples that people are told to look at.
const EXPLAINED: &str = "add-health-endpoint";

/// Who looks at the console: a ServiceAccount of that namespace.
const VISITOR: &str = "visitor";

/// A program that is up, and where its admin endpoint answers on this machine.
struct Up {
    name: &'static str,
    admin: SocketAddr,
    /// Keeps the way to a program in a pod open, or the process alive.
    _held: Held,
}

impl Up {
    /// The controllers have no page of metrics: theirs go out over OTLP, and are on the page of the sidecar.
    fn has_page(&self) -> bool {
        self.name != "agents"
    }
}

#[expect(dead_code, reason = "held for what happens when it is dropped")]
enum Held {
    Pod(Relay),
    Process(tokio::process::Child),
}

/// The programs, and how the API server reaches one of them.
struct Programs {
    up: Vec<Up>,
    webhook: admission::Webhook,
    console: Console,
}

/// Where the console answers on this machine.
struct Console {
    address: SocketAddr,
    /// Keeps the way to it open, if it is in a pod.
    _held: Option<Relay>,
}

/// Shows everything until someone presses Ctrl-C.
pub(crate) async fn tour(name: &LabName, wanted: Tier) -> Result<()> {
    let report = Report::start();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let shown = async {
        let stage = set_up(name, wanted, report).await?;
        println!("{}", guide(name, &stage)?);
        std::future::pending::<Result<()>>().await
    };
    tokio::select! {
        ended = shown => ended,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

/// The lab with everything in it.
struct Stage {
    lab: Lab,
    /// The folder of our programs.
    own: PathBuf,
    programs: Vec<Up>,
    /// What kubectl printed for an object that the webhook refused.
    refusal: String,
    /// What kubectl printed about runs that had ended; none where no pod can run.
    runs: Option<String>,
    /// What became of a Job that was deleted; none there as well.
    story: Option<Story>,
    console: Console,
    scraper: Scraper,
}

async fn set_up(name: &LabName, wanted: Tier, report: Report) -> Result<Stage> {
    report.line("building Kubernetes and our programs where needed; the first time takes a while");
    let tier = possible(wanted, report).await?;
    let parts = [&tools::of_tier(tier)[..], &["prometheus"]].concat();
    let own = async {
        match tier {
            Tier::Node => image::build_static(report).await,
            Tier::ControlPlane => image::build_local(report).await,
        }
    };
    let (_, own) = tokio::try_join!(build::programs(&parts, report), own)?;
    let lab = Lab::start(name, tier).await?;
    let has_node = lab.record().is_some_and(|record| record.node.is_some());
    let kinds = async {
        crds::install(&lab).await?;
        report.line("the 19 kinds are installed");
        Ok(())
    };
    let Programs {
        up: programs,
        webhook,
        console,
    } = if has_node {
        tokio::try_join!(kinds, pods::import(&lab, &own))?;
        report.line("our programs start as pods");
        pods::start(&lab).await?
    } else {
        kinds.await?;
        report.line("our programs start as processes of this machine");
        processes::start(&lab, &own).await?
    };
    report.line(format!("{} programs are ready", programs.len()));
    create_namespace(&lab).await?;
    let refusal = admission::register(&lab, webhook, EXAMPLES).await?;
    report.line("the API server asks the webhook about every object");
    apply_examples(&lab).await?;
    report.line(format!(
        "the examples are applied; lab and programs were ready after {}",
        spoken(report.elapsed())
    ));
    let (runs, story) = match has_node {
        true => {
            report.line("waiting for the runs among them");
            let runs = runs::finish(&lab).await?;
            (Some(runs), Some(custody::lose(&lab, &own, report).await?))
        }
        false => {
            report.line("no pod can run here, so no run ends and no Job is deleted");
            (None, None)
        }
    };
    let scraper = scraper::start(&lab, &programs).await?;
    report.line("Prometheus has scraped what they count");
    let agents = own.path("agents")?;
    let own = agents.parent().context("agents is in no folder")?;
    Ok(Stage {
        lab,
        own: own.to_owned(),
        programs,
        refusal,
        runs,
        story,
        console,
        scraper,
    })
}

/// The wanted tier or the one below: pods need a node, and images to run from.
async fn possible(wanted: Tier, report: Report) -> Result<Tier> {
    if wanted == Tier::ControlPlane {
        return Ok(wanted);
    }
    if let Some(reason) = image::static_obstacle() {
        report.line(format!(
            "{reason}; tier 1 is started, with our programs as processes"
        ));
        return Ok(Tier::ControlPlane);
    }
    node::usable_tier(report).await
}

async fn create_namespace(lab: &Lab) -> Result<()> {
    let create = ["create", "namespace", EXAMPLES];
    lab.kubectl().run(&create).await?.ok()?;
    let kubectl = lab.kubectl().in_namespace(EXAMPLES);
    let account = ["create", "serviceaccount", VISITOR];
    kubectl.run(&account).await?.ok()?;
    let subject = format!("--serviceaccount={EXAMPLES}:{VISITOR}");
    let bind = [
        "create",
        "rolebinding",
        VISITOR,
        "--clusterrole=cluster-admin",
        &subject,
    ];
    kubectl.run(&bind).await?.ok()?;
    Ok(())
}

async fn apply_examples(lab: &Lab) -> Result<()> {
    let folder = fixtures::repository().join("examples");
    let folder = folder
        .to_str()
        .context("the path of examples/ is not UTF-8")?;
    lab.kubectl()
        .in_namespace(EXAMPLES)
        .run(&["apply", "--filename", folder])
        .await?
        .ok()?;
    Ok(())
}

fn guide(name: &LabName, stage: &Stage) -> Result<String> {
    let refused = fixtures::repository().join(admission::REFUSED);
    let kubectl = stage.lab.kubectl_program();
    let folder = kubectl.parent().context("kubectl is in no folder")?;
    let mut text = story(stage.story.as_ref());
    text += &format!(
        "
Everything is up. In another terminal:

  export KUBECONFIG={}
  export PATH={}:{}:$PATH

Try
  kubectl --namespace {EXAMPLES} get agents-all      all kinds, with what each is doing and since when
  kubectl explain agentrun.spec                  every field, with its meaning
  kubectl --namespace {EXAMPLES} apply --filename {}
                                                 a run with three faults is refused; kubectl prints
{}
  kubectl --namespace {EXAMPLES} get events          the same refusal as an Event, for those who look later
  kubectl --namespace {EXAMPLES} get agentruns       {}
{}
  agents explain --namespace {EXAMPLES} {EXPLAINED}
                                                 why a run is as it is, in one paragraph
  agents queue --namespace {EXAMPLES}                who runs, who waits, and what holds runs back
  agents doctor --namespace {EXAMPLES}               what a person on call looks at; it also says what a release by the chart has
                                                 and this tour does not
  agents check --filename {}
                                                 the refusal from above with line and column, without a cluster

The console is at http://{}/ and asks for a token, which this prints:
  kubectl --namespace {EXAMPLES} create token {VISITOR}

The programs answer at
",
        stage.lab.kubeconfig().display(),
        folder.display(),
        stage.own.display(),
        refused.display(),
        indented(&stage.refusal),
        match &stage.runs {
            Some(_) => "the runs of the examples were carried out by pods; kubectl prints",
            None => "the runs of the examples wait for a node, which is not there",
        },
        indented(stage.runs.as_deref().unwrap_or_default()),
        refused.display(),
        stage.console.address,
    );
    for up in &stage.programs {
        let page = match up.has_page() {
            true => path::METRICS,
            false => path::LIVEZ,
        };
        let Up { name, admin, .. } = up;
        let ready = path::READYZ;
        text.push_str(&format!(
            "  http://{admin}{page}  {name}; also {ready}?verbose\n"
        ));
    }
    let program = env::current_exe()?;
    let program = program.display();
    text.push_str(&format!(
        "
A real Prometheus scrapes them and answers at http://{prometheus}. Ask it anything; for example
  curl --data-urlencode 'query={QUERY}' http://{prometheus}/api/v1/query
{answer}
`{program} status` shows the parts, `{program} logs --name {name} PART` what they say.
Ctrl-C ends it and leaves nothing behind.",
        prometheus = stage.scraper.prometheus.authority(),
        answer = indented(&stage.scraper.answer),
    ));
    Ok(text)
}

/// What became of the Job that was deleted, or why there was none.
fn story(story: Option<&Story>) -> String {
    let run = custody::RUN;
    match story {
        None => "
Not shown here: runs that end, and a Job that is deleted by hand while its outcome is still recorded. Both need pods, which run as root on Linux.
"
        .to_owned(),
        Some(Story {
            deleted,
            run: line,
            explained,
        }) => format!(
            "
The Job of the run {run} was deleted by hand while it worked. kubectl printed
{}
A finalizer held it and its pod until the outcome was stored. The run shows
{}
and `agents explain {run}` says
{}",
            indented(deleted),
            indented(line),
            indented(explained)
        ),
    }
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| format!("      {line}\n"));
    lines.collect()
}
