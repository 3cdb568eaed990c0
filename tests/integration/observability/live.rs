//! The real programs at work and a real Prometheus that scrapes them with the rules loaded: every panel and every recording
//! rule has data, and no alert fires.

use std::{collections::BTreeSet, fs, net::SocketAddr, time::Duration};

use agents::{
    api::{
        contract::{env, queue},
        kind::Kind,
    },
    kit::args::variable as common,
};
use agents_sidecar::args::variable as sidecar;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{builders::smallest, lab, ports::free_addresses, prometheus::Prometheus, wait};

use super::{lint, names, pictures, rules, runbooks};
use crate::{
    controller::scene::{Scene, condition, holds},
    kit::process::{Process, product},
    webhook::hook::Station,
};

/// All windows of the rules have two samples long before.
const DEADLINE: Duration = Duration::from_secs(180);

/// May have no data without a fault, each with its reason; promtool tests what is made of it.
const ONLY_IN_A_FAULT: [(&str, &str); 2] = [
    (
        "agents_sidecar_job_ttl_headroom_seconds",
        "shown only while a Job whose outcome is not stored has a time to live, which only someone else sets",
    ),
    (
        "apiserver_admission_webhook_fail_open_count",
        "the API server shows it once a call to a webhook has failed",
    ),
];

/// The three programs, and the namespace that they work in.
struct Stage {
    scene: Scene,
    station: Station,
    sidecar: SocketAddr,
    _processes: [Process; 2],
}

impl Stage {
    /// As in a pod: the controller pushes to the sidecar, which follows its queue and looks after its Jobs.
    async fn set() -> Result<Self> {
        let station = Station::start(&[]).await?;
        let here = station.registered.namespace("observability").await?;
        let [admin, grpc, stream] = free_addresses()?;
        let kubeconfig = lab::shared().await?.kubeconfig();
        let kubeconfig = kubeconfig.to_str().context("UTF-8")?.to_owned();
        let streams = format!("controller=http://{stream}{}", queue::STREAM);
        let beside = Process::start(
            &product("agents-sidecar"),
            &[],
            &[
                ("KUBECONFIG", &kubeconfig),
                (env::NAMESPACES, &here.name),
                (common::ADMIN_LISTEN, &admin.to_string()),
                (sidecar::OTLP_GRPC_LISTEN, &grpc.to_string()),
                (sidecar::QUEUE_STREAMS, &streams),
            ],
        );
        let endpoint = format!("http://{grpc}");
        let scene = Scene::at(
            here,
            &[
                ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &*endpoint),
                ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
                (env::QUEUE_LISTEN, &stream.to_string()),
                (env::CONCURRENCY_AGENT, "1"),
            ],
        );
        scene.make_agent().await?;
        let controller = scene.controller().await?;
        Ok(Self {
            scene,
            station,
            sidecar: admin,
            _processes: [beside, controller],
        })
    }

    /// Runs that end well and badly, one that waits for its turn, one that waits for an Agent, and an object that is refused.
    async fn work(&self, prometheus: &Prometheus) -> Result<()> {
        self.carry_out("well", 0).await?;
        self.carry_out("badly", 1).await?;
        // Only what is added to a series that was seen before is an increase.
        let ended =
            "count(agents_runs_total) == 2 and count(agents_run_duration_seconds_count) == 1";
        wait::retry("the first runs in Prometheus", DEADLINE, || async {
            let seen = prometheus.query(ended).await?;
            ensure!(!seen.is_empty(), "{ended} is not so");
            Ok(())
        })
        .await?;
        self.carry_out("well-again", 0).await?;
        self.carry_out("badly-again", 1).await?;
        self.scene.run("at-work", json!({})).await?;
        self.scene.until_phase("at-work", "Running").await?;
        self.scene.run("in-line", json!({})).await?;
        let nobody = json!({"agentRef": {"name": "nobody"}});
        self.scene.run("waits", nobody).await?;
        let blocked = holds("True", "ConcurrencyLimit");
        let is_blocked = |run: &_| condition(run, "Blocked") == blocked;
        self.scene.until("in-line", is_blocked).await?;
        self.refuse().await
    }

    async fn carry_out(&self, run: &str, code: i32) -> Result<()> {
        self.scene.run(run, json!({})).await?;
        self.scene.until_phase(run, "Running").await?;
        self.scene.end_pod(run, code).await?;
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        self.scene.until_phase(run, phase).await?;
        Ok(())
    }

    async fn refuse(&self) -> Result<()> {
        let wrong = smallest(Kind::Workspace, "refused").to_string();
        let create = ["create", "--filename", "-"];
        let kubectl = &self.scene.here.kubectl;
        let said = kubectl.run_with_input(&create, &wrong).await?;
        ensure!(
            said.code == Some(1),
            "a Workspace without a size was stored"
        );
        Ok(())
    }

    /// As a PodMonitor of each program means it, and as a Prometheus in a cluster finds the API server.
    async fn prometheus(&self) -> Result<Prometheus> {
        let ours = [
            ("controllers", self.sidecar, "5f7d9c"),
            ("webhook", self.station.hook.admin, "7bc4f8"),
        ];
        let ours = ours.map(|(component, target, hash)| {
            let job = format!("agents-{component}");
            let labels = json!({
                "namespace": "agents", "pod": format!("{job}-{hash}-x2x4z"), "rollouts_pod_template_hash": hash,
                "app_kubernetes_io_component": component,
            });
            json!({"job_name": job, "static_configs": [{"targets": [target.to_string()], "labels": labels}]})
        });
        let scraped = [&ours[..], &[api_server().await?]].concat();
        let settings = json!({
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
            "rule_files": rules::files(),
            "scrape_configs": scraped,
        });
        Prometheus::plain(&settings).await
    }
}

/// How the API server of the lab is scraped: as its administrator.
async fn api_server() -> Result<Value> {
    let lab = lab::shared().await?;
    let config: Value = serde_saphyr::from_str(&fs::read_to_string(lab.kubeconfig())?)?;
    let (cluster, user) = (
        &config["clusters"][0]["cluster"],
        &config["users"][0]["user"],
    );
    let server = cluster["server"].as_str().context("a server")?;
    let server = server.strip_prefix("https://").context("TLS")?;
    Ok(json!({
        "job_name": "apiserver", "scheme": "https", "scrape_timeout": "2s",
        "tls_config": {
            "ca_file": cluster["certificate-authority"],
            "cert_file": user["client-certificate"],
            "key_file": user["client-key"],
        },
        "static_configs": [{"targets": [server]}],
    }))
}

/// A query of a panel as it is with everything chosen.
pub(super) fn spelt_out(expr: &str) -> String {
    let chosen = ["namespace", "job", "instance"];
    let expr = chosen.iter().fold(expr.to_owned(), |expr, variable| {
        expr.replace(&format!("${variable}"), ".*")
    });
    expr.replace("$__rate_interval", "5m")
        .replace("$__range", "6h")
}

/// Everything that must have data: the queries of all panels, and what the rules record.
fn questions() -> Vec<(String, String)> {
    let panels = lint::queries().into_iter();
    let panels = panels.map(|asked| (asked.place, spelt_out(&asked.expr)));
    let records = rules::all().into_iter().filter_map(|rule| {
        let labels = rule
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={value:?}"));
        let labels: Vec<_> = labels.collect();
        let query = format!("{}{{{}}}", rule.record?, labels.join(","));
        Some(("recording rule".to_owned(), query))
    });
    panels.chain(records).collect()
}

/// What has no number yet.
async fn without_data(prometheus: &Prometheus) -> Result<Vec<String>> {
    let mut empty = Vec::new();
    for (place, query) in questions() {
        let found = prometheus.query(&query).await;
        let found = found.with_context(|| format!("{place}: {query}"))?;
        if !found.values().any(|value| value != "NaN") {
            empty.push(format!("{place}: {query}"));
        }
    }
    Ok(empty)
}

#[tokio::test]
async fn every_panel_and_every_recording_rule_has_data_and_no_alert_fires() -> Result<()> {
    support::own_lab!();
    let stage = Stage::set().await?;
    let prometheus = stage.prometheus().await?;
    stage.work(&prometheus).await?;
    wait::retry("data for every panel", DEADLINE, || async {
        // The API server calls again and again, as it does in a cluster where people work.
        stage.refuse().await?;
        let empty = without_data(&prometheus).await?;
        ensure!(empty.is_empty(), "{} without data: {empty:#?}", empty.len());
        Ok(())
    })
    .await?;
    let mut firing = Vec::new();
    for rule in prometheus.rules().await? {
        assert_eq!(rule["health"], "ok", "{rule:#}");
        if rule["state"] == "firing" {
            firing.push(rule["name"].clone());
        }
    }
    assert_eq!(firing, Vec::<Value>::new());
    for query in runbooks::queries() {
        prometheus.query(&query).await.context(query)?;
    }
    every_metric_is_shown(&prometheus).await?;
    let browser = support::browser!();
    pictures::draw(&prometheus, &browser).await
}

/// What the rules and panels ask for is what the programs show, to the letter.
async fn every_metric_is_shown(prometheus: &Prometheus) -> Result<()> {
    let panels = lint::queries().into_iter().map(|asked| asked.expr);
    let rules = rules::all().into_iter().map(|rule| rule.expr);
    let asked: BTreeSet<_> = panels
        .chain(rules)
        .flat_map(|expr| names::asked(&expr))
        .collect();
    let mut absent = BTreeSet::new();
    for name in asked {
        if prometheus.query(&name).await?.is_empty() {
            absent.insert(name);
        }
    }
    for (name, _) in ONLY_IN_A_FAULT {
        absent.remove(name);
    }
    assert_eq!(absent, BTreeSet::new());
    Ok(())
}
