//! What Jobs cost the sidecar that looks after them, on a lab.

use agents::api::contract::{env, label};
use agents_sidecar::args::variable;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::{ResourceExt, api::PostParams};
use serde_json::json;
use std::{ffi::OsStr, time::Duration};
use support::{Namespace, crds, lab, metrics::Page, wait::retry};
use tokio::runtime::Builder;

use crate::{
    colony,
    program::Program,
    table::{Table, at_most},
};

/// Jobs that are there when memory is measured.
const MANY: usize = 10_000;
/// Nothing that is measured takes longer.
const DEADLINE: Duration = Duration::from_secs(300);

/// Resident memory of a sidecar that watches Jobs.
struct Watched {
    /// With none there, in MiB.
    idle: f64,
    /// More for each of many, in KiB.
    per_job: f64,
}

/// Measures it and holds it against the bars.
///
/// # Errors
///
/// When there is no lab.
pub fn table() -> Result<Table> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let watched = runtime.block_on(measure())?;
    let mut table = Table::new(&["what", "measured", "bar", ""]);
    let idle = at_most(
        "RSS idle, with Jobs to watch",
        watched.idle,
        "MiB",
        Some(10.0),
    );
    table.row(idle);
    let more = at_most(
        "more for each of 10,000 Jobs",
        watched.per_job,
        "KiB",
        Some(1.0),
    );
    table.row(more);
    Ok(table)
}

/// Jobs are suspended, so that nothing but them is there.
async fn measure() -> Result<Watched> {
    crds::install_once().await?;
    let here = support::namespace("bench").await?;
    colony::settle(&here).await?;
    let run = colony::run("owner")?;
    let run = here.api().create(&PostParams::default(), &run).await?;
    let uid = run.uid().context("a uid")?;
    let idle = resident(&here, 0).await?;
    let jobs: Result<Vec<Job>> = (0..MANY)
        .map(|number| {
            let mut job = serde_json::to_value(colony::job(&format!("job-{number}"))?)?;
            job["metadata"]["labels"] = json!({label::RUN_UID: uid});
            job["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "name": "owner", "uid": uid,
                "controller": true,
            }]);
            job["spec"]["suspend"] = json!(true);
            Ok(serde_json::from_value(job)?)
        })
        .collect();
    colony::make(&here, jobs?).await?;
    let full = resident(&here, MANY).await?;
    Ok(Watched {
        idle,
        per_job: (full - idle) * 1024.0 / MANY as f64,
    })
}

/// Memory of a sidecar that was started and knows so many Jobs.
async fn resident(here: &Namespace, jobs: usize) -> Result<f64> {
    let kubeconfig = lab::shared().await?.kubeconfig().as_os_str().to_owned();
    let variables = [
        ("KUBECONFIG", kubeconfig.as_os_str()),
        (env::NAMESPACES, OsStr::new(&here.name)),
        (variable::QUEUE_STREAMS, OsStr::new("[]")),
        (variable::OTLP_GRPC_LISTEN, OsStr::new("127.0.0.1:0")),
        (variable::OTLP_HTTP_LISTEN, OsStr::new("127.0.0.1:0")),
    ];
    let sidecar =
        tokio::task::block_in_place(|| Program::start("agents-sidecar", &[], &variables))?;
    retry("all Jobs are known", DEADLINE, || async {
        let page = Page::scrape(&sidecar.admin.to_string()).await?;
        let jobs_only = [("resource", "jobs")];
        let is_up = page.value("agents_sidecar_job_watch_up", &jobs_only) == Some(1.0);
        let known: f64 = page.series("agents_sidecar_job_known").values().sum();
        ensure!(is_up && known == jobs as f64, "{known} Jobs are known");
        Ok(())
    })
    .await?;
    sidecar.resident_mib()
}
