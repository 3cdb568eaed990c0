//! `make bench-webhook`: the release build of the webhook over TLS with reviews of three sizes, beside a server that does
//! nothing and one that does nothing through the serving kit, and whether the bars are met. Takes about four minutes once it
//! is built. `make bench-webhook ONCE=1` answers reviews of 4 KiB in this process and nothing else, for a profiler.

use agents::api::policy::Policy;
use agents_bench::{
    client::post,
    cpu::median,
    load::{Latency, Target, at_rate, flat_out},
    pki::Identity,
    program::{RUNG, Webhook},
    review,
    servers::{Apart, Sort, await_ready, be_server_if_asked},
    table::{Table, micros, verdict},
};
use agents_webhook::{
    Admission, decide::Stance, lookup::Lookup, metrics::Metrics, policy::Policies, service::Side,
    subject::Door,
};
use anyhow::Result;
use prometheus_client::registry::Registry;
use std::{env, sync::Arc, time::Duration};

/// The rate at which latency is measured.
const PER_SECOND: u32 = 2_000;
const AT_RATE: Duration = Duration::from_secs(4);
/// Rounds of everything, by turns with the servers that do nothing; the middle one counts.
const ROUNDS: usize = 5;
const FLAT_OUT: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 32;
/// Time for memory to settle after the start.
const SETTLE: Duration = Duration::from_secs(2);
/// Doors and sizes that are measured. A create goes through both doors.
const CASES: [(Door, usize); 4] = [
    (Door::Validate, 1024),
    (Door::Validate, 4 * 1024),
    (Door::Validate, 64 * 1024),
    (Door::Mutate, 4 * 1024),
];

/// What was measured for one case.
struct Measured {
    door: Door,
    size: usize,
    per_second: usize,
    cost: Duration,
    cost_of_nothing: Duration,
    cost_of_kit: Duration,
    allocations: u64,
    webhook: Latency,
    nothing: Latency,
    resident: f64,
}

impl Measured {
    fn name(&self) -> String {
        format!("{} KiB at {}", self.size / 1024, self.door.path())
    }
}

/// Who is measured, one after the other.
struct Scene {
    webhook: Webhook,
    nothing: Apart,
    kit: Apart,
}

fn main() -> Result<()> {
    if be_server_if_asked()? {
        return Ok(());
    }
    if env::var_os("ONCE").is_some() {
        return answer_often();
    }
    let identity = Identity::make()?;
    let scene = Scene {
        nothing: Apart::start(Sort::Bare, &identity)?,
        kit: Apart::start(Sort::Kit, &identity)?,
        webhook: Webhook::start(&identity)?,
    };
    std::thread::sleep(SETTLE);
    let idle = scene.webhook.program.resident_mib()?;
    let mut measured = Vec::new();
    for (door, size) in CASES {
        let target = Target {
            address: scene.webhook.address,
            tls: identity.client()?,
            request: Arc::from(post(door.path(), review::of_size(size).as_bytes())),
        };
        scene.webhook.try_out(&target)?;
        measured.push(measure(&scene, (door, size), &target)?);
    }
    println!("{}", overview(&measured).text());
    println!("{}", bars(&scene.webhook, idle, &measured).text());
    Ok(())
}

/// Reviews of 4 KiB from bytes to bytes, so that a profiler sees nothing else.
fn answer_often() -> Result<()> {
    const TIMES: u32 = 1000;
    let (admission, body) = (admission(), review::of_size(4 * 1024).into_bytes());
    for _ in 0..TIMES {
        anyhow::ensure!(admission.answer(Door::Validate, &body).status == 200);
    }
    println!("{TIMES} reviews answered");
    Ok(())
}

fn measure(scene: &Scene, (door, size): (Door, usize), target: &Target) -> Result<Measured> {
    let Scene {
        webhook,
        nothing,
        kit,
    } = scene;
    let at = |address| Target {
        address,
        ..target.clone()
    };
    let (other, third) = (at(nothing.address), at(kit.address));
    await_ready(&third)?;
    // Warm, so that the first measurement is not that of a cold cache.
    for warm in [target, &other, &third] {
        flat_out(warm, CONNECTIONS, Duration::from_secs(1))?;
    }
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    let (mut costs_of_nothing, mut costs_of_kit) = (Vec::new(), Vec::new());
    let (mut latencies, mut latencies_of_nothing) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (answers, cost) = cost(target, || webhook.program.cpu())?;
        rates.push(answers / FLAT_OUT.as_secs() as usize);
        costs.push(cost);
        costs_of_nothing.push(self::cost(&other, || nothing.cpu())?.1);
        costs_of_kit.push(self::cost(&third, || kit.cpu())?.1);
        latencies.push(at_rate(target, PER_SECOND, AT_RATE)?);
        latencies_of_nothing.push(at_rate(&other, PER_SECOND, AT_RATE)?);
    }
    Ok(Measured {
        door,
        size,
        per_second: median(rates),
        cost: median(costs),
        cost_of_nothing: median(costs_of_nothing),
        cost_of_kit: median(costs_of_kit),
        allocations: allocations(door, size),
        webhook: middle(&latencies),
        nothing: middle(&latencies_of_nothing),
        resident: webhook.program.resident_mib()?,
    })
}

/// The middle of each percentile.
fn middle(rounds: &[Latency]) -> Latency {
    let of = |percentile: fn(&Latency) -> Duration| median(rounds.iter().map(percentile).collect());
    Latency {
        p50: of(|latency| latency.p50),
        p99: of(|latency| latency.p99),
        p999: of(|latency| latency.p999),
    }
}

/// Answers of a server flat out, and its processor time for each.
fn cost(target: &Target, cpu: impl Fn() -> Result<Duration>) -> Result<(usize, Duration)> {
    let before = cpu()?;
    let answers = flat_out(target, CONNECTIONS, FLAT_OUT)?;
    let used = cpu()? - before;
    Ok((answers, used / u32::try_from(answers.max(1))?))
}

/// Allocations for one review, from bytes to bytes, without the server around it.
fn allocations(door: Door, size: usize) -> u64 {
    let admission = admission();
    let body = review::of_size(size).into_bytes();
    // The first one reads schemas that stay.
    admission.answer(door, &body);
    let counted = allocation_counter::measure(|| {
        admission.answer(door, &body);
    });
    counted.count_total
}

/// What the program has inside, set as the program is.
fn admission() -> Admission {
    let stance = Stance {
        rung: RUNG,
        restorers: Vec::new(),
    };
    Admission::new(
        Policies::fixed(Policy::default(), None),
        Lookup::empty(),
        stance,
        Side::default(),
        Metrics::register(&mut Registry::default()),
    )
}

fn overview(measured: &[Measured]) -> Table {
    let mut table = Table::new(&[
        "review",
        "per second, flat out",
        "per CPU-second",
        "CPU per review",
        "doing nothing",
        "doing nothing, kit",
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
            one.name(),
            one.per_second.to_string(),
            format!("{:.0}", one.cost.as_secs_f64().recip()),
            micros(one.cost),
            micros(one.cost_of_nothing),
            micros(one.cost_of_kit),
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
            &format!("reviews per CPU-second, {}", one.name()),
            "at least 25,000",
            shown,
            found >= 25_000.0,
        );
    }
    for one in measured {
        let ratio = one.webhook.p99.as_secs_f64() / one.nothing.p99.as_secs_f64();
        let shown = format!("{ratio:.2} times");
        bar(
            &format!("p99 at 2,000/s against doing nothing, {}", one.name()),
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
