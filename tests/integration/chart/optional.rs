//! Kinds that a cluster may not have: rendered, left out or asked for, by their mode.

use agents::kit::args::variable;
use anyhow::Result;
use serde_json::{Value, json};
use support::helm::Helm;

use super::variables::at;

/// Kind, where its mode is set, what the API server calls it, and what must be set besides.
fn kinds() -> [(&'static str, &'static str, &'static str, Value); 7] {
    let rollouts = json!({"progressiveDelivery": {"enabled": true}});
    let nothing = json!({});
    [
        (
            "ServiceMonitor",
            "metrics.serviceMonitor.renderMode",
            "monitoring.coreos.com/v1/ServiceMonitor",
            nothing.clone(),
        ),
        (
            "PodMonitor",
            "metrics.podMonitor.renderMode",
            "monitoring.coreos.com/v1/PodMonitor",
            json!({"metrics": {"serviceMonitor": {"enabled": false}}}),
        ),
        (
            "PrometheusRule",
            "metrics.rules.renderMode",
            "monitoring.coreos.com/v1/PrometheusRule",
            nothing.clone(),
        ),
        (
            "GrafanaDashboard",
            "metrics.dashboards.grafanaOperator.renderMode",
            "grafana.integreatly.org/v1beta1/GrafanaDashboard",
            nothing.clone(),
        ),
        (
            "Certificate",
            "webhook.certManager.renderMode",
            "cert-manager.io/v1/Certificate",
            json!({"webhook": {"tls": {"secretName": "own"}}}),
        ),
        (
            "Rollout",
            "progressiveDelivery.renderMode",
            "argoproj.io/v1alpha1/Rollout",
            rollouts,
        ),
        (
            "AnalysisRun",
            "progressiveDelivery.renderMode",
            "argoproj.io/v1alpha1/AnalysisRun",
            json!({"progressiveDelivery": {"analysis": {"enabled": true}}, "webhook": {"canary": {"enabled": true}}}),
        ),
    ]
}

/// Kinds whose objects are made from files that the chart may not have yet.
fn has_files(kind: &str) -> bool {
    let folder = match kind {
        "PrometheusRule" => "rules",
        "GrafanaDashboard" => "dashboards",
        _ => return true,
    };
    let folder = support::fixtures::repository()
        .join("charts/agents")
        .join(folder);
    std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some())
}

#[tokio::test]
async fn each_kind_follows_its_mode() -> Result<()> {
    let helm = Helm::new().await?;
    for (kind, path, api, besides) in kinds().into_iter().filter(|(kind, ..)| has_files(kind)) {
        // Nothing works without these, so where nobody knows the cluster they are rendered.
        let needed = matches!(kind, "Certificate" | "Rollout" | "AnalysisRun");
        let cases = [
            ("auto", false, needed),
            ("auto", true, true),
            ("require", true, true),
            ("always", false, true),
            ("never", true, false),
        ];
        for (mode, known, wanted) in cases {
            let mut values = besides.clone();
            super::variables::merge(&mut values, &at(path, &json!(mode)));
            let known = if known {
                vec!["--api-versions", api]
            } else {
                vec![]
            };
            let rendered = helm.render(&values, &known).await?;
            let found = rendered.all(kind).count() > 0;
            assert_eq!(found, wanted, "{kind} with {mode} and {known:?}");
        }
        let mut values = besides.clone();
        super::variables::merge(&mut values, &at(path, &json!("require")));
        let said = helm.refusal(&values, &[]).await?;
        assert!(
            said.contains(&format!("  - {path}: the cluster has no {kind} of")),
            "{said}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_word_of_earlier_charts_is_a_mode_of_the_service_monitor() -> Result<()> {
    let helm = Helm::new().await?;
    let values = |enabled: bool| json!({"metrics": {"serviceMonitor": {"enabled": enabled, "interval": "15s", "labels": {"team": "a"}}}});
    let rendered = helm.render(&values(true), &[]).await?;
    let monitor = rendered.get("ServiceMonitor/agents")?;
    assert_eq!(monitor["spec"]["endpoints"][0]["interval"], "15s");
    assert_eq!(monitor["metadata"]["labels"]["team"], "a");
    let known = ["--api-versions", "monitoring.coreos.com/v1/ServiceMonitor"];
    let rendered = helm.render(&values(false), &known).await?;
    assert_eq!(rendered.all("ServiceMonitor").count(), 0);
    Ok(())
}

#[tokio::test]
async fn the_sidecar_waits_for_its_last_scrape_where_someone_scrapes_it() -> Result<()> {
    let helm = Helm::new().await?;
    let monitor = |mode: &str| json!({"renderMode": mode});
    for (metrics, grace, expected) in [
        (json!({}), 30, None),
        (
            json!({"serviceMonitor": monitor("always")}),
            30,
            Some("25s"),
        ),
        (json!({"podMonitor": monitor("always")}), 45, Some("40s")),
        (json!({"podMonitor": monitor("always")}), 5, None),
    ] {
        let values = json!({"metrics": metrics, "terminationGracePeriodSeconds": grace});
        let rendered = helm.render(&values, &[]).await?;
        let told = rendered.plain_variables("sidecar")?;
        let linger = told.get(variable::SHUTDOWN_LINGER).map(String::as_str);
        assert_eq!(linger, expected, "{values}");
    }
    Ok(())
}

#[tokio::test]
async fn what_was_left_out_and_what_comes_next_is_said() -> Result<()> {
    let helm = Helm::new().await?;
    let install = [
        "install",
        "agents",
        "charts/agents",
        "--namespace",
        "agents",
        "--dry-run=client",
    ];
    let said = helm.run(&install, "").await?;
    let notes = said
        .stdout
        .split_once("NOTES:")
        .map(|(_, notes)| notes)
        .unwrap_or_default();
    for line in [
        "ServiceMonitor: the cluster does not have this kind (metrics.serviceMonitor.renderMode)",
        "PodMonitor: metrics.podMonitor.renderMode is never",
        "Rollout: progressiveDelivery.enabled is false",
        "Role in the namespace default: rbac.clusterScoped is false",
        "kubectl --namespace agents rollout status deployment/agents-controllers",
        "kubectl --namespace agents rollout status deployment/agents\n",
        "kubectl --namespace agents rollout status deployment/agents-webhook",
        "The webhook is on the rung deny-ignore",
        "agents release --namespace agents\n",
    ] {
        assert!(
            notes.contains(line),
            "`{line}` is not in {}{}",
            said.stdout,
            said.stderr
        );
    }
    Ok(())
}
