//! The real programs, a real Prometheus with the rules of the chart, and one fault after another. Waits are taken out of the
//! rules and windows are cut, so that an alert fires when its fault is there and not minutes later; nothing else is changed.
//!
//! The API server counts failed calls to all webhooks together, so no other test may let one fail beside this one.

use std::{cell::RefCell, collections::BTreeSet, fs, path::PathBuf, time::Duration};

use agents::api::{kind::Kind, registration::rung::Rung};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::ResourceQuota};
use kube::api::{Patch, PatchParams, PostParams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{Namespace, builders::smallest, prometheus::Prometheus, wait};
use tempfile::TempDir;

use super::{
    super::{
        live::{self, Replica},
        rules,
    },
    provoked,
};
use crate::{
    controller::scene::{Scene, job_name},
    webhook::hook::{Registered, Station},
};

/// Longer than the windows and than a lease, also where everything else is busy.
const DEADLINE: Duration = Duration::from_secs(180);
/// What every window is cut to. Pages are read every other second.
const WINDOW: &str = "30s";

/// The rules of the chart in a folder, without waits and with cut windows.
fn without_waits() -> Result<(TempDir, Vec<PathBuf>)> {
    let folder = TempDir::new()?;
    let mut files = Vec::new();
    for file in rules::files() {
        let mut read: Value = serde_saphyr::from_str(&fs::read_to_string(&file)?)?;
        let groups = read["groups"].as_array_mut().context("groups")?;
        for rule in groups
            .iter_mut()
            .filter_map(|group| group["rules"].as_array_mut())
            .flatten()
        {
            let expr = cut(rule["expr"].as_str().context("an expression")?);
            rule["expr"] = json!(expr);
            rule.as_object_mut().map(|rule| rule.remove("for"));
        }
        let name = file.file_name().context("a name")?;
        let path = folder.path().join(name);
        fs::write(&path, read.to_string())?;
        files.push(path);
    }
    Ok((folder, files))
}

/// An expression with its windows cut.
fn cut(expr: &str) -> String {
    let windows = ["5m", "10m", "15m", "1h", "1w", "30d"];
    windows.iter().fold(expr.to_owned(), |expr, window| {
        expr.replace(&format!("[{window}]"), &format!("[{WINDOW}]"))
            .replace(&format!("offset {window}"), &format!("offset {WINDOW}"))
    })
}

/// Watches over the alerts, and keeps which have been shown.
struct Watch {
    prometheus: Prometheus,
    shown: RefCell<BTreeSet<&'static str>>,
    _rules: TempDir,
}

impl Watch {
    async fn start(pages: &[Value]) -> Result<Self> {
        let (folder, files) = without_waits()?;
        let settings = json!({
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "1s"},
            "rule_files": files,
            "scrape_configs": pages,
        });
        Ok(Self {
            prometheus: Prometheus::plain(&settings).await?,
            shown: RefCell::default(),
            _rules: folder,
        })
    }

    /// Alerts that fire now.
    async fn firing(&self) -> Result<BTreeSet<String>> {
        let mut firing = BTreeSet::new();
        for rule in self.prometheus.rules().await? {
            ensure!(rule["health"] == "ok", "{rule:#}");
            if rule["state"] == "firing" {
                firing.insert(rule["name"].as_str().unwrap_or_default().to_owned());
            }
        }
        Ok(firing)
    }

    /// Waits until none of some alerts fires.
    async fn until_silent(&self, alerts: &BTreeSet<&str>) -> Result<()> {
        wait::retry("silence before a fault", DEADLINE, || async {
            let firing = self.firing().await?;
            let loud: Vec<_> = alerts
                .iter()
                .filter(|name| firing.contains(**name))
                .collect();
            ensure!(loud.is_empty(), "{loud:?}");
            Ok(())
        })
        .await
    }

    /// These are silent, and after the fault each of them fires.
    async fn provoke<F>(&self, alerts: &[&'static str], fault: F) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let all: BTreeSet<_> = alerts.iter().copied().collect();
        self.until_silent(&all).await?;
        fault
            .await
            .with_context(|| format!("the fault of {alerts:?}"))?;
        wait::retry(&format!("{alerts:?} in their fault"), DEADLINE, || async {
            let firing = self.firing().await?;
            let silent: Vec<_> = alerts
                .iter()
                .filter(|name| !firing.contains(**name))
                .collect();
            ensure!(silent.is_empty(), "{silent:?} are silent, {firing:?} fire");
            Ok(())
        })
        .await?;
        self.shown.borrow_mut().extend(all);
        Ok(())
    }

    /// Waits until a query has an answer.
    async fn until_told(&self, query: &str) -> Result<()> {
        wait::retry(query, DEADLINE, || async {
            ensure!(!self.prometheus.query(query).await?.is_empty(), "no answer");
            Ok(())
        })
        .await
    }
}

/// Runs that cannot begin, that fail, or that may not have a Job.
async fn of_runs(watch: &Watch, scene: &Scene) -> Result<()> {
    let blocked = async {
        let nobody = json!({"agentRef": {"name": "nobody"}});
        scene.run("waits", nobody).await.map(drop)
    };
    watch.provoke(&["AgentsRunsBlocked"], blocked).await?;
    let failing = async {
        for count in 0..6 {
            live::carry_out(scene, &format!("bad-{count}"), 1).await?;
        }
        Ok(())
    };
    watch.provoke(&["AgentsRunsFailing"], failing).await?;
    let quotas = scene.here.api::<ResourceQuota>();
    let forbidden = async {
        let quota =
            json!({"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}});
        let quota = serde_json::from_value(quota)?;
        quotas.create(&PostParams::default(), &quota).await?;
        let counted = |quota: &ResourceQuota| {
            let status = quota.status.as_ref();
            status.is_some_and(|status| status.hard.is_some())
        };
        wait::until(&quotas, "none", DEADLINE, counted).await?;
        scene.run("without-a-job", json!({})).await.map(drop)
    };
    watch
        .provoke(&["AgentsReconcileForbidden"], forbidden)
        .await?;
    let gone = ["delete", "resourcequota/none", "agentrun/without-a-job"];
    scene.here.kubectl.run(&gone).await?.ok().map(drop)
}

/// Deletes the Job of a run and its pods, and lets them go as only someone with bad intentions does.
async fn wipe_out(scene: &Scene, run: &str) -> Result<()> {
    scene.begin(&[run]).await?;
    let kubectl = &scene.here.kubectl;
    let pod = scene.pod(run).await?.metadata.name.context("a name")?;
    // The Job first: it would make another pod.
    for object in [format!("job/{}", job_name(run)), format!("pod/{pod}")] {
        let delete = ["delete", &object, "--wait=false", "--grace-period=0"];
        let delete = [&delete[..], &["--cascade=orphan"]].concat();
        kubectl.run(&delete).await?.ok()?;
        let free = r#"{"metadata":{"finalizers":null}}"#;
        let patch = ["patch", &object, "--type=merge", "--patch", free];
        // What nothing else holds is gone already.
        kubectl.run(&patch).await?;
    }
    scene.until_phase(run, "Failed").await.map(drop)
}

/// A controller that is killed, Jobs that someone meddles with, and a controller that ends.
async fn of_custody(watch: &Watch, replica: Replica) -> Result<()> {
    let Replica {
        scene,
        sidecar,
        controller,
        ..
    } = replica;
    scene.begin(&["held"]).await?;
    let killed = async {
        controller.kill().await;
        Ok(())
    };
    watch.provoke(&["AgentsSidecarSourceDown"], killed).await?;
    let jobs = scene.here.api::<Job>();
    let job = job_name("held");
    let short = async {
        scene.end_pod("held", 0).await?;
        let patch = Patch::Merge(json!({"spec": {"ttlSecondsAfterFinished": 59}}));
        jobs.patch(&job, &PatchParams::default(), &patch).await?;
        Ok(())
    };
    let alerts = ["AgentsJobHazard", "AgentsJobTtlShort"];
    watch.provoke(&alerts, short).await?;
    let deleted = async {
        let delete = ["delete", "job", &job, "--wait=false"];
        scene.here.kubectl.run(&delete).await?.ok().map(drop)
    };
    watch.provoke(&["AgentsJobsHeld"], deleted).await?;

    let controller = scene.controller().await?;
    scene.until_phase("held", "Succeeded").await?;
    let lost = async {
        wipe_out(&scene, "gone").await?;
        // Only what is added to a series that was seen before is an increase.
        watch
            .until_told("agents_job_missing_total{recovered=\"none\"}")
            .await?;
        wipe_out(&scene, "gone-too").await
    };
    let alerts = ["AgentsJobMissing", "AgentsJobOutcomeLost"];
    watch.provoke(&alerts, lost).await?;

    let ended = async {
        controller.signal(Signal::SIGTERM);
        controller.end().await;
        Ok(())
    };
    let alerts = ["AgentsControllersNoLeader", "AgentsSidecarNothingReceived"];
    watch.provoke(&alerts, ended).await?;
    let ended = async {
        sidecar.signal(Signal::SIGTERM);
        sidecar.end().await;
        Ok(())
    };
    watch.provoke(&["AgentsSidecarDown"], ended).await
}

/// Asks for an object that has nothing wrong, without storing it.
async fn ask(here: &Namespace) -> Result<()> {
    let create = ["create", "--dry-run=server", "--filename", "-"];
    let tool = smallest(Kind::Tool, "asked").to_string();
    here.kubectl.run_with_input(&create, &tool).await.map(drop)
}

/// Files of a webhook that are no good, and a webhook that is gone.
async fn of_the_webhook(watch: &Watch, station: Station, policy: &TempDir) -> Result<()> {
    let mount = &station.certificates.mount;
    let rejected = async {
        Ok(fs::write(
            policy.path().join("policy.yaml"),
            "jobDelete: [\n",
        )?)
    };
    watch
        .provoke(&["AgentsWebhookPolicyRejected"], rejected)
        .await?;
    let refused = async {
        mount.put("no certificate", "no key");
        Ok(())
    };
    let alert = ["AgentsWebhookCertificateReloadFailing"];
    watch.provoke(&alert, refused).await?;
    let short = async {
        mount.swap(&station.certificates.authority.issue_for_days(3));
        Ok(())
    };
    let alert = ["AgentsWebhookCertificateExpiring"];
    watch.provoke(&alert, short).await?;

    let Station {
        hook,
        registered,
        certificates,
    } = station;
    let authority = &certificates.authority;
    let lenient = Registered::shipped(hook.address, authority, Rung::Deny).await?;
    let strict = registered.namespace("faults-strict").await?;
    let open = lenient.namespace("faults-open").await?;
    let gone = async {
        hook.end().await?;
        ask(&strict).await?;
        ask(&open).await
    };
    let alerts = [
        "AgentsWebhookDown",
        "AgentsWebhookBlocksUsers",
        "AgentsWebhookPassedBy",
    ];
    watch.provoke(&alerts, gone).await
}

#[tokio::test]
async fn each_alert_is_silent_until_its_fault_is_there() -> Result<()> {
    support::own_lab!();
    let (station, policy) = Station::lenient().await?;
    let replica = Replica::start(support::namespace("faults").await?).await?;
    let watch = Watch::start(&live::pages(&replica, &station).await?).await?;
    // Only what is added to a series that was seen before is an increase.
    live::carry_out(&replica.scene, "well", 0).await?;
    live::carry_out(&replica.scene, "badly", 1).await?;
    watch.until_told("count(agents_runs_total) == 2").await?;
    watch.until_told("agents:webhook_gate:value").await?;
    watch.until_silent(&provoked()).await?;
    of_runs(&watch, &replica.scene).await?;
    of_custody(&watch, replica).await?;
    of_the_webhook(&watch, station, &policy).await?;
    assert_eq!(*watch.shown.borrow(), provoked());
    Ok(())
}
