//! Two kinds of load: as much as goes, and a fixed rate at which a slow answer does not slow the asking.

use crate::client::Client;
use anyhow::{Context, Result};
use rustls::ClientConfig;
use std::{
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

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
    let threads = (0..connections).map(|_| {
        let target = target.clone();
        thread::spawn(move || -> Result<usize> {
            let mut client = Client::connect(target.address, &target.tls)?;
            let (start, mut answers) = (Instant::now(), 0);
            while start.elapsed() < time {
                client.ask(&target.request)?;
                answers += 1;
            }
            Ok(answers)
        })
    });
    Ok(join(threads.collect())?.into_iter().sum())
}

/// Asks at a fixed rate. A request has its time, and its latency counts from then, whether or not the one before it has
/// been answered by then: a server that stalls is charged for all who had to wait.
pub fn at_rate(target: &Target, per_second: u32, time: Duration) -> Result<Latency> {
    const CONNECTIONS: u32 = 32;
    let total = (f64::from(per_second) * time.as_secs_f64()) as u32;
    // Time to connect and to shake hands before the first request is due.
    let start = Instant::now() + Duration::from_secs(1);
    let threads = (0..CONNECTIONS).map(|connection| {
        let target = target.clone();
        thread::spawn(move || -> Result<Vec<Duration>> {
            let mut client = Client::connect(target.address, &target.tls)?;
            client.ask(&target.request)?;
            let mut latencies = Vec::new();
            for number in (connection..total).step_by(CONNECTIONS as usize) {
                let due = start + Duration::from_secs(1) * number / per_second;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                client.ask(&target.request)?;
                latencies.push(due.elapsed());
            }
            Ok(latencies)
        })
    });
    Ok(summary(join(threads.collect())?.concat()))
}

fn join<T>(threads: Vec<JoinHandle<Result<T>>>) -> Result<Vec<T>> {
    let joined = threads.into_iter().map(|thread| {
        let ended = thread.join().ok();
        ended.context("a client panicked")?
    });
    joined.collect()
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
