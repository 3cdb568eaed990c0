//! How the sidecar ends, and how much of the machine it takes: what makes it a good neighbour in a pod.

use agents::kit::args::variable as common;
use agents_sidecar::args::variable;
use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use serde_json::Value;
use support::metrics::Page;

use crate::kit::process::{Process, product};

/// A sidecar that follows nothing.
fn start(settings: &[(&str, &str)]) -> Process {
    let mut environment = vec![
        (common::ADMIN_LISTEN, "127.0.0.1:0"),
        (variable::QUEUE_STREAMS, "[]"),
        (variable::JOBS, "off"),
    ];
    environment.extend_from_slice(settings);
    Process::start(&product("agents-sidecar"), &[], &environment)
}

#[tokio::test]
async fn a_scrape_after_sigterm_gets_the_page_and_ends_the_lingering() -> Result<()> {
    let mut sidecar = start(&[(common::SHUTDOWN_LINGER, "10m")]);
    let admin = sidecar.address("admin").await.to_string();
    Page::scrape(&admin)
        .await
        .context("one that comes before the end")?;
    sidecar.signal(Signal::SIGTERM);
    let announced = |line: &Value| line["message"] == "Shutdown announced";
    sidecar.line("the end", announced).await;
    Page::scrape(&admin).await.context("the last one")?;
    assert_eq!(sidecar.end().await.code, Some(0));
    Ok(())
}

#[tokio::test]
async fn it_takes_no_more_threads_than_it_is_allowed() -> Result<()> {
    let mut counted = Vec::new();
    for workers in ["1", "4"] {
        let mut sidecar = start(&[("TOKIO_WORKER_THREADS", workers)]);
        sidecar.address("admin").await;
        let status = std::fs::read_to_string(format!("/proc/{}/status", sidecar.id()))?;
        let threads = status
            .lines()
            .find_map(|line| line.strip_prefix("Threads:"))
            .context("a count of threads")?;
        counted.push(threads.trim().parse::<u32>()?);
    }
    assert_eq!(counted[1] - counted[0], 3, "threads: {counted:?}");
    Ok(())
}
