//! How the sidecar ends, and how much of the machine it takes: what makes it a good neighbour in a pod.

use agents::kit::args::variable as common;
use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::otlp::Sidecar;

#[tokio::test]
async fn a_scrape_after_sigterm_gets_the_page_and_ends_the_lingering() -> Result<()> {
    let mut sidecar = Sidecar::start(&[(common::SHUTDOWN_LINGER, "10m")]).await;
    sidecar
        .page()
        .await
        .context("one that comes before the end")?;
    sidecar.process.signal(Signal::SIGTERM);
    let announced = |line: &Value| line["message"] == "Shutdown announced";
    sidecar.process.line("the end", announced).await;
    sidecar.page().await.context("the last one")?;
    assert_eq!(sidecar.process.end().await.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn it_takes_no_more_threads_than_it_is_allowed() -> Result<()> {
    let mut counted = Vec::new();
    for workers in ["1", "4"] {
        let sidecar = Sidecar::start(&[("TOKIO_WORKER_THREADS", workers)]).await;
        let status = std::fs::read_to_string(format!("/proc/{}/status", sidecar.process.id()))?;
        let threads = status
            .lines()
            .find_map(|line| line.strip_prefix("Threads:"))
            .context("a count of threads")?;
        counted.push(threads.trim().parse::<u32>()?);
    }
    assert_eq!(counted[1] - counted[0], 3, "threads: {counted:?}");
    Ok(())
}
