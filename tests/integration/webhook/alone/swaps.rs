//! The certificate changes again and again while the API server is busy: no handshake fails.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::{net::TcpStream, time::timeout};

use super::load::{self, Tally};
use crate::{
    kit::pki::{Swap, on_the_wire_in_time, shown},
    webhook::hook::{DEADLINE, Station},
};

const SWAPS: usize = 50;
const WRITERS: usize = 8;
/// Writes that the API server makes between two swaps, so that each of them happens under load.
const WRITES_BETWEEN: usize = 60;

/// Shakes hands, again and again, until the new certificate is on the wire and enough was written: no handshake may fail,
/// and the old certificate may not come back. Says how the swap went, and how many handshakes there were.
async fn seen(
    station: &Station,
    wanted: &[u8],
    tally: &Tally,
    enough: usize,
) -> Result<(Swap, usize)> {
    let (start, mut stale, mut first, mut count) = (Instant::now(), Duration::ZERO, None, 0);
    let client = station.certificates.authority.client(None);
    loop {
        let begun = start.elapsed();
        let handshake = async {
            let tcp = TcpStream::connect(station.hook.address).await?;
            client.connect(tcp).await
        };
        let stream = timeout(DEADLINE, handshake).await.context("no handshake")?;
        let stream = stream.context("a handshake failed")?;
        count += 1;
        match (shown(&stream).as_ref() == wanted, first) {
            (true, _) => first = first.or(Some(start.elapsed())),
            (false, None) => {
                ensure!(start.elapsed() < DEADLINE, "the old certificate stays");
                stale = begun;
            }
            (false, Some(_)) => bail!("the old certificate is back"),
        }
        if let Some(seen) = first {
            let sent = tally.sent();
            if sent >= enough {
                return Ok((Swap { stale, seen }, count));
            }
            tally.until(sent + 1).await?;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn swaps_of_the_certificate_under_load_fail_no_request() -> Result<()> {
    support::own_lab!();
    let station = Station::start(&[]).await?;
    let here = station.registered.namespace("swaps").await?;
    let (tally, start) = (Tally::default(), Instant::now());
    let swapping = async {
        let (mut swaps, mut handshakes) = (Vec::new(), 0);
        tally.until(WRITERS).await?;
        for swap in 1..=SWAPS {
            let pair = station.certificates.authority.issue();
            station.certificates.mount.swap(&pair);
            let enough = swap * WRITES_BETWEEN;
            let (swapped, count) = seen(&station, &pair.certificate, &tally, enough).await?;
            swaps.push(swapped);
            handshakes += count;
        }
        anyhow::Ok((swaps, handshakes))
    };
    let swapping = async {
        let done = swapping.await;
        tally.stop(); // also after a failure, or the writers would go on
        done
    };
    let ((swaps, handshakes), ()) =
        tokio::try_join!(swapping, load::write(&here, WRITERS, &tally))?;
    eprintln!("{SWAPS} swaps, {handshakes} handshakes of our own");
    tally.verdict("50 swaps of the certificate", start)?;
    on_the_wire_in_time(&swaps).map_err(anyhow::Error::msg)
}
