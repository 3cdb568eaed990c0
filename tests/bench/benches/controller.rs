//! `make bench-controller`: runs carried out by the release build of the controllers on a lab, beside Jobs that nobody
//! looks after, and whether the bars are met; then the calls that a run takes. Takes about five minutes once it is built.
//!
//! Pods end as soon as they are there, so what is measured is the work around them. The lab shares the machine.

use agents::api::{contract::env, kinds::AgentRun};
use agents_bench::{
    colony::{
        self,
        calls::{Calls, Counted},
        hooked::Hooked,
    },
    cpu::median,
    program::Program,
    table::{Table, verdict},
};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use std::{ffi::OsStr, time::Duration};
use support::{Namespace, crds, lab, otlp::Receiver};
use tokio::{
    task::JoinSet,
    time::{Instant, interval, sleep},
};

/// Jobs and runs as fast as they go.
const BATCH: usize = 400;
/// Runs at a fixed rate.
const PER_SECOND: u32 = 20;
const AT_RATE: usize = 400;
/// Runs of which each call is counted.
const COUNTED: usize = 40;
/// Runs that are there when memory and restart are measured.
const MANY: usize = 10_000;
/// Time in which a controller that had something to write would write it.
const SETTLE: Duration = Duration::from_secs(5);

/// What was measured.
struct Measured {
    bare: Duration,
    runs: Duration,
    cost: Duration,
    hooked: Duration,
    calls: Calls,
    p50: Duration,
    p99: Duration,
    resident: f64,
    ready: Duration,
    written: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    crds::install_once().await?;
    let here = support::namespace("bench").await?;
    colony::settle(&here).await?;
    let mut nodes = JoinSet::new();
    nodes.spawn(colony::node(here.api()));
    let bare = bare(&here).await?;
    let controller = controller(&here).await?;
    let (runs, cost) = flat_out(&here, &controller, "run", 0).await?;
    let (p50, p99) = at_rate(&here).await?;
    let hook = Hooked::start(&here).await?;
    let (hooked, _) = flat_out(&here, &controller, "hooked", BATCH + AT_RATE).await?;
    hook.end().await?;
    drop(controller);
    let calls = calls(&here).await?;
    let (resident, ready, written) = many(&here).await?;
    ensure!(nodes.try_join_next().is_none(), "the node has ended");
    let measured = Measured {
        bare,
        runs,
        cost,
        hooked,
        calls,
        p50,
        p99,
        resident,
        ready,
        written,
    };
    println!("{}", bars(&measured).text());
    println!("{}", measured.calls.table().text());
    Ok(())
}

async fn controller(here: &Namespace) -> Result<Program> {
    controller_with(here, &[]).await
}

async fn controller_with(here: &Namespace, more: &[(&str, &str)]) -> Result<Program> {
    let kubeconfig = lab::shared().await?.kubeconfig().as_os_str().to_owned();
    let mut variables = vec![
        ("KUBECONFIG", kubeconfig.as_os_str()),
        (env::NAMESPACES, OsStr::new(&here.name)),
        (env::LEADER_ELECTION_ENABLED, OsStr::new("false")),
    ];
    // No run shall wait for another one.
    let at_a_time = [
        env::CONCURRENCY_AGENT,
        env::CONCURRENCY_NAMESPACE,
        env::CONCURRENCY_CLUSTER,
    ];
    let within_a_time = [env::RATE_NAMESPACE, env::RATE_REPO, env::RATE_CLUSTER];
    let in_line = [env::QUEUE_NAMESPACE, env::QUEUE_REPO, env::QUEUE_CLUSTER];
    variables.extend(at_a_time.map(|name| (name, OsStr::new("1000000"))));
    variables.extend(
        within_a_time
            .into_iter()
            .chain(in_line)
            .map(|name| (name, OsStr::new("0"))),
    );
    variables.extend(more.iter().map(|(name, value)| (*name, OsStr::new(*value))));
    tokio::task::block_in_place(|| Program::start("agents", &["controller"], &variables))
}

/// Time for a batch of Jobs that nobody looks after.
async fn bare(here: &Namespace) -> Result<Duration> {
    let jobs: Result<Vec<Job>> = (0..BATCH)
        .map(|n| colony::job(&format!("bare-{n}")))
        .collect();
    let start = Instant::now();
    let watch = colony::when::<Job>(here.api(), BATCH, colony::is_complete);
    tokio::try_join!(watch, colony::make(here, jobs?))?;
    Ok(start.elapsed())
}

/// Time for a batch of runs until every outcome is stored, and processor time for each. So many are stored already.
async fn flat_out(
    here: &Namespace,
    controller: &Program,
    name: &str,
    known: usize,
) -> Result<(Duration, Duration)> {
    let (start, before) = (Instant::now(), controller.cpu()?);
    carry_out(here, BATCH, name, known).await?;
    let taken = start.elapsed();
    // What is released after the outcome is stored belongs to the run, too.
    sleep(SETTLE).await;
    let used = controller.cpu()? - before;
    Ok((taken, used / u32::try_from(BATCH)?))
}

/// Has runs carried out until the outcome of each is stored.
async fn carry_out(here: &Namespace, count: usize, name: &str, known: usize) -> Result<()> {
    let runs: Result<Vec<AgentRun>> = (0..count)
        .map(|n| colony::run(&format!("{name}-{n}")))
        .collect();
    let watch = colony::when::<AgentRun>(here.api(), known + count, colony::is_stored);
    tokio::try_join!(watch, colony::make(here, runs?))?;
    Ok(())
}

/// The calls that a run takes, counted by a controller of their own: who is measured tells nobody.
async fn calls(here: &Namespace) -> Result<Calls> {
    let receiver = Receiver::start().await?;
    let endpoint = receiver.endpoint();
    let exports = [
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &*endpoint),
        ("OTEL_METRIC_EXPORT_INTERVAL", "500"),
    ];
    let controller = controller_with(here, &exports).await?;
    let counted = Counted::from_now(receiver).await?;
    carry_out(here, COUNTED, "counted", 2 * BATCH + AT_RATE).await?;
    sleep(SETTLE).await;
    drop(controller);
    counted.per_run(COUNTED).await
}

/// From the end of a Job to the stored outcome, at a fixed rate: the middle one, and the 99th of a hundred.
async fn at_rate(here: &Namespace) -> Result<(Duration, Duration)> {
    let names: Vec<String> = (0..AT_RATE).map(|n| format!("steady-{n}")).collect();
    let ask = async {
        let mut ticks = interval(Duration::from_secs(1) / PER_SECOND);
        for name in &names {
            ticks.tick().await;
            colony::make(here, vec![colony::run(name)?]).await?;
        }
        anyhow::Ok(())
    };
    // Those of the batches before count as seen.
    let ended = colony::when::<Job>(here.api(), 2 * BATCH + AT_RATE, colony::is_complete);
    let stored = colony::when::<AgentRun>(here.api(), BATCH + AT_RATE, colony::is_stored);
    let (ended, stored, ()) = tokio::try_join!(ended, stored, ask)?;
    let mut lags = Vec::new();
    for name in &names {
        let end = ended
            .get(&format!("{name}-job"))
            .context("a Job that was never seen")?;
        let store = stored.get(name).context("a run that was never seen")?;
        lags.push(store.saturating_duration_since(*end));
    }
    lags.sort_unstable();
    let p99 = lags.get(lags.len() * 99 / 100).copied();
    Ok((median(lags), p99.unwrap_or_default()))
}

/// Memory with many runs, time to be ready among them, and how many of them were written to although nothing was to do.
async fn many(here: &Namespace) -> Result<(f64, Duration, usize)> {
    let names: Vec<String> = (2 * BATCH + AT_RATE + COUNTED..MANY)
        .map(|n| format!("old-{n}"))
        .collect();
    let runs: Result<Vec<AgentRun>> = names.iter().map(|name| colony::run(name)).collect();
    colony::make(here, runs?).await?;
    colony::age(here, names).await?;
    drop(controller(here).await?); // whatever is new to it is done now
    let before = colony::versions(here).await?;
    let controller = controller(here).await?;
    sleep(SETTLE).await;
    let after = colony::versions(here).await?;
    let resident = controller.resident_mib()?;
    Ok((
        resident,
        controller.ready_after,
        after.difference(&before).count(),
    ))
}

fn bars(measured: &Measured) -> Table {
    let mut table = Table::new(&["what", "asked", "measured", ""]);
    let mut bar = |what: &str, asked: &str, found: String, met: bool| {
        let verdict = match asked {
            "" => String::new(),
            _ => verdict(met),
        };
        table.row([what.to_owned(), asked.to_owned(), found, verdict]);
    };
    let per_minute = |time: Duration| BATCH as f64 * 60.0 / time.as_secs_f64();
    let (bare, runs) = (per_minute(measured.bare), per_minute(measured.runs));
    bar(
        "runs per minute, against bare Jobs",
        "at least half",
        format!("{runs:.0} against {bare:.0}"),
        runs * 2.0 >= bare,
    );
    let hooked = per_minute(measured.hooked);
    bar(
        "the same with the webhook",
        "",
        format!("{hooked:.0}"),
        true,
    );
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let mut within = |what: &str, most: Duration, found: Duration| {
        bar(
            what,
            &format!("at most {}", millis(most)),
            millis(found),
            found <= most,
        );
    };
    within("CPU per run", Duration::from_millis(4), measured.cost);
    within(
        "Job ended to outcome stored, p50",
        Duration::from_millis(50),
        measured.p50,
    );
    within("the same, p99", Duration::from_millis(500), measured.p99);
    within(
        "ready with 10,000 runs",
        Duration::from_secs(3),
        measured.ready,
    );
    bar(
        "RSS with 10,000 runs",
        "at most 60 MiB",
        format!("{:.1} MiB", measured.resident),
        measured.resident <= 60.0,
    );
    bar(
        "runs written to after a restart",
        "none",
        measured.written.to_string(),
        measured.written == 0,
    );
    for (what, most, found) in [
        ("writes of objects per run", 8.0, measured.calls.writes()),
        ("Events per run", 2.0, measured.calls.events()),
    ] {
        let asked = format!("at most {most}");
        bar(what, &asked, format!("{found:.2}"), found <= most);
    }
    table
}
