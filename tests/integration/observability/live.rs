//! The real programs at work and a real Prometheus that scrapes them with the rules loaded: every panel and every recording
//! rule has data, and no alert fires.

use std::{collections::BTreeSet, fs, net::SocketAddr, time::Duration};

use agents::api::kind::Kind;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use support::{builders::smallest, helm::Helm, lab, prometheus::Prometheus, wait};

use super::{lint, names, pictures, replica::Replica, rules, runbooks};
use crate::{
    chart::plain,
    controller::scene::{Scene, condition, holds},
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

/// Alerts that may be on their way to fire, each with its reason. No other may.
const MAY_BE_PENDING: [(&str, &str); 5] = [
    (
        "AgentsRunsBlocked",
        "one run waits for an Agent, so that a panel has something to show",
    ),
    (
        "AgentsWebhookSlow",
        "the machine may have other work, and reviews then wait for a processor",
    ),
    (
        "AgentsWebhookRegistrationAtFault",
        "the registration has a name of this test's own, and the webhook looks for that of the chart",
    ),
    (
        "AgentsWebhookPassedBy",
        "other tests let calls of the same API server to their webhooks fail",
    ),
    (
        "AgentsWebhookBlocksUsers",
        "other tests let calls of the same API server to their webhooks fail",
    ),
];

/// Carries out a run, whose pod ends with this code.
pub(super) async fn carry_out(scene: &Scene, run: &str, code: i32) -> Result<()> {
    scene.run(run, json!({})).await?;
    scene.until_phase(run, "Running").await?;
    scene.end_pod(run, code).await?;
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    scene.until_phase(run, phase).await?;
    Ok(())
}

/// How Prometheus is told of the pages of a sidecar and of a webhook, and of that of the API server.
pub(super) async fn pages(sidecar: SocketAddr, webhook: SocketAddr) -> Result<Vec<Value>> {
    let ours = [
        ("controllers", sidecar, "5f7d9c"),
        ("webhook", webhook, "7bc4f8"),
    ];
    let mut pages = pages_of(&ours).await?;
    pages.push(api_server().await?);
    Ok(pages)
}

/// How Prometheus is told of pages of ours, each by its component, its address and the hash of its pod: with the labels that the
/// PodMonitor of the chart takes from pods.
pub(super) async fn pages_of(ours: &[(&str, SocketAddr, &str)]) -> Result<Vec<Value>> {
    let pods = json!({"metrics": {"serviceMonitor": {"enabled": false}, "podMonitor": {"renderMode": "always"}}});
    let rendered = Helm::new().await?.render(&pods, &[]).await?;
    let monitor = rendered.get("PodMonitor/agents")?;
    let taken = monitor["spec"]["podTargetLabels"].as_array();
    let taken: Vec<_> = taken
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let page = |&(component, target, hash): &(&str, SocketAddr, &str)| {
        let job = format!("agents-{component}");
        let mut labels =
            json!({"job": job, "namespace": "agents", "pod": format!("{job}-{hash}-x2x4z")});
        let of_pod = [
            ("app.kubernetes.io/component", component),
            ("rollouts-pod-template-hash", hash),
        ];
        for (name, value) in of_pod.into_iter().filter(|(name, _)| taken.contains(name)) {
            labels[plain(name)] = json!(value);
        }
        json!({"job_name": format!("{job}-{hash}"), "static_configs": [{"targets": [target.to_string()], "labels": labels}]})
    };
    Ok(ours.iter().map(page).collect())
}

/// The three programs, and the namespace that they work in.
struct Stage {
    replica: Replica,
    station: Station,
}

impl Stage {
    async fn set() -> Result<Self> {
        let station = Station::start(&[]).await?;
        let here = station.registered.namespace("observability").await?;
        Ok(Self {
            replica: Replica::start(here).await?,
            station,
        })
    }

    /// Runs that end well and badly, one that waits for its turn, one that waits for an Agent, and an object that is refused.
    async fn work(&self, prometheus: &Prometheus) -> Result<()> {
        let scene = &self.replica.scene;
        carry_out(scene, "well", 0).await?;
        carry_out(scene, "badly", 1).await?;
        // Only what is added to a series that was seen before is an increase.
        let ended =
            "count(agents_runs_total) == 2 and count(agents_run_duration_seconds_count) == 1";
        wait::retry("the first runs in Prometheus", DEADLINE, || async {
            let seen = prometheus.query(ended).await?;
            ensure!(!seen.is_empty(), "{ended} is not so");
            Ok(())
        })
        .await?;
        carry_out(scene, "well-again", 0).await?;
        carry_out(scene, "badly-again", 1).await?;
        scene.run("at-work", json!({})).await?;
        scene.until_phase("at-work", "Running").await?;
        scene.run("in-line", json!({})).await?;
        let nobody = json!({"agentRef": {"name": "nobody"}});
        scene.run("waits", nobody).await?;
        let blocked = holds("True", "ConcurrencyLimit");
        let is_blocked = |run: &_| condition(run, "Blocked") == blocked;
        scene.until("in-line", is_blocked).await?;
        self.refuse().await
    }

    async fn refuse(&self) -> Result<()> {
        let wrong = smallest(Kind::Workspace, "refused").to_string();
        let create = ["create", "--filename", "-"];
        let kubectl = &self.replica.scene.here.kubectl;
        let said = kubectl.run_with_input(&create, &wrong).await?;
        ensure!(
            said.code == Some(1),
            "a Workspace without a size was stored"
        );
        Ok(())
    }

    async fn prometheus(&self) -> Result<Prometheus> {
        let settings = json!({
            "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
            "rule_files": rules::files(),
            "scrape_configs": pages(self.replica.page, self.station.hook.admin).await?,
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
    no_alert_is_on_its_way(&prometheus).await?;
    for query in runbooks::queries() {
        prometheus.query(&query).await.context(query)?;
    }
    every_metric_is_shown(&prometheus).await?;
    let browser = support::browser!();
    pictures::draw(&prometheus, &browser).await
}

/// No alert fires, and none is about to but for those that are expected to.
async fn no_alert_is_on_its_way(prometheus: &Prometheus) -> Result<()> {
    let mut unexpected = Vec::new();
    for rule in prometheus.rules().await? {
        assert_eq!(rule["health"], "ok", "{rule:#}");
        let expected = MAY_BE_PENDING.iter().any(|(name, _)| rule["name"] == *name);
        match rule["state"].as_str() {
            Some("firing") => unexpected.push(rule),
            Some("pending") if !expected => unexpected.push(rule),
            Some(_) | None => {}
        }
    }
    assert_eq!(unexpected, Vec::<Value>::new());
    Ok(())
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
