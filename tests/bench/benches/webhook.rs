//! `make bench-webhook`: the release build of the webhook over TLS with reviews of three sizes, beside a server that does
//! nothing, and whether the bars are met. Takes about two minutes once it is built.

use agents::api::{
    contract::door::{MUTATE, VALIDATE},
    policy::Policy,
    rung::Rung,
};
use agents_bench::{
    client::post,
    cpu::median,
    load::{Latency, Target, at_rate, flat_out},
    pki::Identity,
    program::Webhook,
    review,
    servers::{Apart, be_bare_if_asked},
    table::{Table, micros, verdict},
};
use agents_webhook::{
    Admission, decide::Stance, lookup::Lookup, metrics::Metrics, policy::Policies, service::Side,
    subject::Door,
};
use anyhow::Result;
use prometheus_client::registry::Registry;
use std::{sync::Arc, time::Duration};

/// The rate at which latency is measured.
const PER_SECOND: u32 = 2_000;
const AT_RATE: Duration = Duration::from_secs(10);
/// Rounds flat out, by turns with the server that does nothing; the middle one counts.
const ROUNDS: usize = 5;
const FLAT_OUT: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 32;
/// Time for memory to settle after the start.
const SETTLE: Duration = Duration::from_secs(2);
const SIZES: [usize; 3] = [1024, 4 * 1024, 64 * 1024];

/// What was measured for one size.
struct Measured {
    size: usize,
    per_second: usize,
    cost: Duration,
    cost_of_nothing: Duration,
    allocations: u64,
    webhook: Latency,
    nothing: Latency,
    resident: f64,
}

fn main() -> Result<()> {
    if be_bare_if_asked()? {
        return Ok(());
    }
    let identity = Identity::make()?;
    let nothing = Apart::start(&identity)?;
    let webhook = Webhook::start(&identity)?;
    std::thread::sleep(SETTLE);
    let idle = webhook.program.resident_mib()?;
    let mut measured = Vec::new();
    for size in SIZES {
        let target = Target {
            address: webhook.address,
            tls: identity.client()?,
            request: Arc::from(post(VALIDATE, review::of_size(size).as_bytes())),
        };
        let other = Target {
            address: nothing.address,
            ..target.clone()
        };
        webhook.try_out(&target)?;
        measured.push(measure(&webhook, &nothing, size, &target, &other)?);
    }
    // The other door once, to see that it answers.
    let target = Target {
        address: webhook.address,
        tls: identity.client()?,
        request: Arc::from(post(MUTATE, review::of_size(4 * 1024).as_bytes())),
    };
    webhook.try_out(&target)?;
    println!("{}", overview(&measured).text());
    println!("{}", bars(&webhook, idle, &measured).text());
    Ok(())
}

fn measure(
    webhook: &Webhook,
    nothing: &Apart,
    size: usize,
    target: &Target,
    other: &Target,
) -> Result<Measured> {
    // Warm, so that the first measurement is not that of a cold cache.
    flat_out(target, CONNECTIONS, Duration::from_secs(1))?;
    let (mut rates, mut costs, mut costs_of_nothing) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (answers, cost) = cost(target, || webhook.program.cpu())?;
        rates.push(answers / FLAT_OUT.as_secs() as usize);
        costs.push(cost);
        costs_of_nothing.push(self::cost(other, || nothing.cpu())?.1);
    }
    let nothing = at_rate(other, PER_SECOND, AT_RATE)?;
    let latency = at_rate(target, PER_SECOND, AT_RATE)?;
    Ok(Measured {
        size,
        per_second: median(rates),
        cost: median(costs),
        cost_of_nothing: median(costs_of_nothing),
        allocations: allocations(size),
        webhook: latency,
        nothing,
        resident: webhook.program.resident_mib()?,
    })
}

/// Answers of a server flat out, and its processor time for each.
fn cost(target: &Target, cpu: impl Fn() -> Result<Duration>) -> Result<(usize, Duration)> {
    let before = cpu()?;
    let answers = flat_out(target, CONNECTIONS, FLAT_OUT)?;
    let used = cpu()? - before;
    Ok((answers, used / u32::try_from(answers.max(1))?))
}

/// Allocations for one review, from bytes to bytes, without the server around it.
fn allocations(size: usize) -> u64 {
    let stance = Stance {
        rung: Rung::Fail,
        restorers: Vec::new(),
    };
    let admission = Admission::new(
        Policies::fixed(Policy::default(), None),
        Lookup::empty(),
        stance,
        Side::default(),
        Metrics::register(&mut Registry::default()),
    );
    let body = review::of_size(size).into_bytes();
    // The first one reads schemas that stay.
    admission.answer(Door::Validate, &body);
    let counted = allocation_counter::measure(|| {
        admission.answer(Door::Validate, &body);
    });
    counted.count_total
}

fn overview(measured: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "review",
        "per second, flat out",
        "per CPU-second",
        "CPU per review",
        "doing nothing",
        "allocations",
        "p50",
        "p99",
        "p99.9",
        "doing nothing p50",
        "p99",
        "p99.9",
        "RSS under load",
    ]);
    for one in measured {
        table.row([
            format!("{} KiB", one.size / 1024),
            one.per_second.to_string(),
            format!("{:.0}", one.cost.as_secs_f64().recip()),
            micros(one.cost),
            micros(one.cost_of_nothing),
            one.allocations.to_string(),
            micros(one.webhook.p50),
            micros(one.webhook.p99),
            micros(one.webhook.p999),
            micros(one.nothing.p50),
            micros(one.nothing.p99),
            micros(one.nothing.p999),
            format!("{:.1} MiB", one.resident),
        ]);
    }
    table
}

fn bars(webhook: &Webhook, idle: f64, measured: &[Measured]) -> Table {
    let mut table = Table::new(&["bar", "asked", "measured", ""]);
    let mut bar = |what: &str, asked: &str, found: String, met: bool| {
        table.row([what.to_owned(), asked.to_owned(), found, verdict(met)]);
    };
    for one in measured.iter().filter(|one| one.size == 4 * 1024) {
        let found = one.cost.as_secs_f64().recip();
        let shown = format!("{found:.0}");
        bar(
            "4 KiB reviews per CPU-second",
            "at least 25,000",
            shown,
            found >= 25_000.0,
        );
        let ratio = one.webhook.p99.as_secs_f64() / one.nothing.p99.as_secs_f64();
        let shown = format!("{ratio:.2} times");
        bar(
            "p99 at 2,000/s, against doing nothing",
            "at most 1.5 times",
            shown,
            ratio <= 1.5,
        );
    }
    let most = measured.iter().map(|one| one.resident).fold(0.0, f64::max);
    bar(
        "RSS under load",
        "at most 24 MiB",
        format!("{most:.1} MiB"),
        most <= 24.0,
    );
    bar(
        "RSS idle",
        "at most 12 MiB",
        format!("{idle:.1} MiB"),
        idle <= 12.0,
    );
    let ready = webhook.program.ready_after;
    let shown = format!("{} ms", ready.as_millis());
    bar(
        "ready after the start",
        "within 200 ms",
        shown,
        ready <= Duration::from_millis(200),
    );
    table
}
