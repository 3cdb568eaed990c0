//! Two kinds of load: as much as goes, and a fixed rate at which a slow answer does not slow the asking.
//!
//! One thread asks over all connections, on a core of its own: a server is not charged for waking dozens of sleepers, and
//! who asks does not stand in its way. API servers ask like that.

use crate::{
    client::Shared,
    cpu::{Side, beside},
};
use anyhow::{Context, Result};
use futures::future::try_join_all;
use rustls::ClientConfig;
use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::{runtime, task::yield_now};

/// Who is asked, and what.
#[derive(Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// How it is trusted.
    pub tls: Arc<ClientConfig>,
    /// The whole request.
    pub request: Arc<[u8]>,
}

/// Latencies at a fixed rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    /// Half are faster.
    pub p50: Duration,
    /// 99 of 100 are faster.
    pub p99: Duration,
    /// 999 of 1000 are faster.
    pub p999: Duration,
}

/// Asks over some connections, each as fast as it is answered; gives the number of answers.
pub fn flat_out(target: &Target, connections: usize, time: Duration) -> Result<usize> {
    let answers = asking(target, connections, |mut client, _| async move {
        let (start, mut answers) = (Instant::now(), 0);
        while start.elapsed() < time {
            client.ask(&target.request).await?;
            answers += 1;
        }
        Ok(answers)
    });
    Ok(answers?.into_iter().sum())
}

/// Asks at a fixed rate. A request has its time, and its latency counts from then, whether or not the one before it has
/// been answered by then: a server that stalls is charged for all who had to wait.
pub fn at_rate(target: &Target, per_second: u32, time: Duration) -> Result<Latency> {
    const CONNECTIONS: u32 = 32;
    let total = (f64::from(per_second) * time.as_secs_f64()) as u32;
    // Time to connect and to shake hands before the first request is due.
    let start = Instant::now() + Duration::from_secs(1);
    let latencies = asking(
        target,
        CONNECTIONS as usize,
        |mut client, connection| async move {
            client.ask(&target.request).await?;
            let mut latencies = Vec::new();
            for number in (connection as u32..total).step_by(CONNECTIONS as usize) {
                let due = start + Duration::from_secs(1) * number / per_second;
                // A timer may be a millisecond late, which is more than most answers take. The core has nothing else to do.
                while Instant::now() < due {
                    yield_now().await;
                }
                client.ask(&target.request).await?;
                latencies.push(due.elapsed());
            }
            Ok(latencies)
        },
    );
    Ok(summary(latencies?.concat()))
}

/// Connects so often and lets each connection ask, all on one thread.
fn asking<'t, T: Send, F: Future<Output = Result<T>>>(
    target: &'t Target,
    connections: usize,
    ask: impl Fn(Shared, usize) -> F + Send + 't,
) -> Result<Vec<T>> {
    let work = move || {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            // Sockets are looked at after every round of tasks, also where tasks never rest.
            .event_interval(16)
            .build()?;
        runtime.block_on(async {
            let connecting = (0..connections).map(|_| Shared::connect(target.address, &target.tls));
            let clients = try_join_all(connecting).await?;
            let asking = clients.into_iter().enumerate();
            try_join_all(asking.map(|(number, client)| ask(client, number))).await
        })
    };
    thread::scope(|scope| {
        let thread = scope.spawn(move || beside(Side::Asking, work));
        thread.join().ok().context("the client panicked")?
    })
}

fn summary(mut latencies: Vec<Duration>) -> Latency {
    latencies.sort_unstable();
    let at = |share: f64| {
        let place = (latencies.len() as f64 * share) as usize;
        latencies.get(place).copied().unwrap_or_default()
    };
    Latency {
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_places_in_the_sorted_list() {
        let latency = summary((0..1000).rev().map(Duration::from_millis).collect());
        let millis = [latency.p50, latency.p99, latency.p999].map(|time| time.as_millis());
        assert_eq!(millis, [500, 990, 999]);
    }
}
