//! Swaps under load, which are held to a time: this runs after all others, with the machine for itself.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use anyhow::ensure;
use support::wait;
use tokio::task::JoinSet;

use super::Running;
use crate::kit::{
    client::{DEADLINE, ask, connect},
    pki::{Authority, Client, Mount, Pair, on_the_wire_in_time},
};

/// So many handshakes at least must have seen the swaps.
const HANDSHAKES: usize = 400;

/// Clients that shake hands and ask, again and again, and count what fails.
struct Load {
    clients: JoinSet<()>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

impl Load {
    fn start(address: SocketAddr, client: &Client, clients: usize) -> Self {
        let mut load = Self {
            clients: JoinSet::new(),
            stop: Arc::default(),
            done: Arc::default(),
            failed: Arc::default(),
        };
        for _ in 0..clients {
            let client = client.clone();
            let (stop, done, failed) = (
                Arc::clone(&load.stop),
                Arc::clone(&load.done),
                Arc::clone(&load.failed),
            );
            load.clients.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    match client.connect(connect(address).await).await {
                        Ok(mut stream) => {
                            assert_eq!(ask(&mut stream, "/").await.status, 200);
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(error) => {
                            eprintln!("handshake failed: {error}");
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        load
    }

    /// Lets the clients go on until there is something to judge by, then ends them.
    async fn end(mut self) -> (usize, usize) {
        let enough = || async {
            let done = self.done.load(Ordering::Relaxed);
            ensure!(done >= HANDSHAKES, "{done} handshakes");
            Ok(())
        };
        wait::retry("enough handshakes", DEADLINE, enough)
            .await
            .unwrap();
        self.stop.store(true, Ordering::Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("no panic");
        }
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        (count(&self.done), count(&self.failed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_swapped_under_load_without_a_failed_handshake() {
    const SWAPS: usize = 50;
    let authority = Authority::new();
    let pairs: Vec<Pair> = (0..=SWAPS).map(|_| authority.issue()).collect();
    let mount = Mount::new(&pairs[0]);
    let running = Running::start(mount.options()).await;
    let client = authority.client(None);
    running.shows(&client, &pairs[0].certificate).await;
    let load = Load::start(running.address, &client, 4);
    let mut swaps = Vec::with_capacity(SWAPS);
    for (round, pair) in pairs.iter().enumerate().skip(1) {
        if round == SWAPS / 2 {
            refuse_a_broken_pair(&running, &mount, &client, &pairs[round - 1]).await;
        }
        mount.swap(pair);
        swaps.push(running.shows(&client, &pair.certificate).await);
    }
    let (handshakes, failed) = load.end().await;
    eprintln!("{SWAPS} swaps, {handshakes} handshakes, {failed} failed");
    assert_eq!(failed, 0, "of {handshakes} handshakes");
    on_the_wire_in_time(&swaps).expect("the promise");
    running.ready().await;
    running.end().await;
}

/// A key that fits another certificate is noticed, counted, and changes nothing on the wire.
async fn refuse_a_broken_pair(running: &Running, mount: &Mount, client: &Client, current: &Pair) {
    const REFUSED: &str = "certificate_reloads_total{result=\"refused\"} 1";
    let stranger = Authority::new().issue();
    mount.swap(&Pair {
        key_pem: stranger.key_pem,
        ..current.clone()
    });
    let noticed = || async {
        running.shows(client, &current.certificate).await;
        let page = running.metrics();
        ensure!(page.contains(REFUSED), "{page}");
        Ok(())
    };
    wait::retry("a refusal", DEADLINE, noticed).await.unwrap();
    running.shows(client, &current.certificate).await;
    let gates = running.readiness.gates();
    assert_eq!(gates[0].closed, None, "the old pair still serves");
}
