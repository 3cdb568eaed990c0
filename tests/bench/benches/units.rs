//! `make bench`: what one unit of each kind of work costs, in processor time. Takes about a minute once it is built.

use agents::{
    api::{
        condition::{Lifecycle, Moment},
        kind::Kind,
        kinds::{AgentRun, AgentRunStatus},
        status::{Wanted, advance},
        text::sanitise::{NOTE_LIMIT, Secrets, sanitise},
        validate::validate,
    },
    events::{self, Effect, Limits, Note, Occurrence, Reason, Regarding, Reporter},
};
use agents_bench::{
    client::post,
    cpu,
    load::{Target, flat_out},
    pki::Identity,
    servers::{self, Running},
    table::{Table, micros},
};
use anyhow::{Context, Result};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::{convert::Infallible, hint::black_box, sync::Arc, time::Duration};

/// Time for each function.
const BUDGET: Duration = Duration::from_secs(4);
/// Time for each round of each server, and how many there are.
const ROUND: Duration = Duration::from_secs(3);
const ROUNDS: usize = 4;
const CONNECTIONS: usize = 8;

/// An AgentRun with every field set.
const FULL: &str = include_str!("../../fixtures/full/agent-run.yaml");

fn main() -> Result<()> {
    println!("{}", functions()?.text());
    println!("{}", serving()?.text());
    Ok(())
}

fn full() -> Result<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(FULL)?;
    documents.into_iter().next().context("the fixture is empty")
}

fn functions() -> Result<Table> {
    let object = full()?;
    let bytes = serde_json::to_vec(&object)?;
    let run: AgentRun = serde_json::from_slice(&bytes)?;
    let stored = run.status.clone().context("the fixture has a status")?;
    let note = "The image ghcr.io/example/runner:1.2 is not allowed; password=hunter2 was given. "
        .repeat(6);
    let mut table = Table::new(&["function", "input", "processor time"]);
    let mut add = |what: &str, input: String, cost: Duration| {
        table.row([what.to_owned(), input, micros(cost)]);
    };
    let size = format!("full AgentRun, {} bytes", bytes.len());
    let decode = || serde_json::from_slice::<AgentRun>(black_box(&bytes)).is_ok();
    add(
        "JSON to `AgentRun`",
        size.clone(),
        cpu::per_unit(BUDGET, decode)?,
    );
    let judge = || validate(Kind::AgentRun, black_box(&object), None);
    add(
        "`api::validate`",
        size.clone(),
        cpu::per_unit(BUDGET, judge)?,
    );
    let at = Moment {
        generation: 3,
        now: Timestamp::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
    };
    let step = || advance(Kind::AgentRun, Some(&stored), &wanted(&stored), at).is_ok();
    add(
        "`status::advance`",
        "status of it".to_owned(),
        cpu::per_unit(BUDGET, step)?,
    );
    let clean = || sanitise(black_box(&note), &Secrets::NONE, NOTE_LIMIT);
    add(
        "`sanitise`",
        format!("{} bytes of text", note.len()),
        cpu::per_unit(BUDGET, clean)?,
    );
    add(
        "`Emitter::emit`",
        "the same text".to_owned(),
        emission(&note)?,
    );
    Ok(table)
}

fn wanted(status: &AgentRunStatus) -> Wanted<'_, AgentRunStatus> {
    Wanted {
        status,
        observed: &[],
        reason: Lifecycle::Running.into(),
        message: "the Job runs",
    }
}

/// What an Event costs the one who emits it. Nothing is written: the queue is thrown away once it is full.
fn emission(note: &str) -> Result<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let _inside = runtime.enter();
    let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Ok::<_, Infallible>(http::Response::new(kube::client::Body::empty()))
    });
    let client = kube::Client::new(nobody, "default");
    let metrics = events::Metrics::register(&mut Registry::default());
    let config = events::Config {
        enabled: true,
        reporter: Reporter::new("bench", "bench"),
        limits: Limits::new(60),
    };
    let fresh = || events::new(client.clone(), config.clone(), metrics.clone());
    let (mut queue, mut left) = (fresh(), config.limits.queue);
    cpu::per_unit(BUDGET, || {
        if left == 0 {
            (queue, left) = (fresh(), config.limits.queue);
        }
        left -= 1;
        let regarding = Regarding::named(Kind::AgentRun, "bench", "run");
        let occurrence = Occurrence::new(regarding, Reason::PolicyDenied, Note::new(note));
        queue.0.emit(Effect::Real, occurrence);
    })
}

fn serving() -> Result<Table> {
    let identity = Identity::make()?;
    let body = serde_json::to_vec(&full()?)?;
    let (bare, kit) = (servers::bare(identity.server()?)?, servers::kit(&identity)?);
    let target = |running: &Running| -> Result<Target> {
        Ok(Target {
            address: running.address,
            tls: identity.client()?,
            request: Arc::from(post("/", &body)),
        })
    };
    let mut costs = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        // In turns, so that what else the machine does hits both.
        for (running, costs) in [&bare, &kit].into_iter().zip(&mut costs) {
            let target = target(running)?;
            servers::await_ready(&target)?;
            let before = running.cpu()?;
            let answers = flat_out(&target, CONNECTIONS, ROUND)?;
            costs.push((running.cpu()? - before) / u32::try_from(answers.max(1))?);
        }
    }
    let [bare, kit] = costs.map(cpu::median);
    let ratio = kit.as_secs_f64() / bare.as_secs_f64();
    let mut table = Table::new(&["server over TLS", "processor time per request", "ratio"]);
    table.row(["hyper + rustls".to_owned(), micros(bare), "1.00".to_owned()]);
    table.row(["the kit".to_owned(), micros(kit), format!("{ratio:.2}")]);
    Ok(table)
}
