//! The PrometheusRule: only alerts about what is there, and links that lead somewhere.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Value, json};
use support::helm::{Helm, Rendered};

/// The alerts of a release, each with the address of its runbook.
async fn alerts(values: &Value) -> Result<BTreeSet<(String, String)>> {
    let mut all = json!({"metrics": {"rules": {"renderMode": "always"}}});
    super::variables::merge(&mut all, values);
    let rendered = Helm::new().await?.render(&all, &[]).await?;
    let rules = rules(&rendered)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let alerts = rules.iter().filter(|rule| rule["alert"].is_string());
    let alerts = alerts.map(|rule| {
        (
            text(&rule["alert"]),
            text(&rule["annotations"]["runbook_url"]),
        )
    });
    Ok(alerts.collect())
}

fn rules(rendered: &Rendered) -> Result<Vec<Value>> {
    let groups = rendered.get("PrometheusRule/agents")?["spec"]["groups"].as_array();
    let rules = groups.into_iter().flatten();
    let rules = rules.flat_map(|group| group["rules"].as_array().into_iter().flatten());
    Ok(rules.cloned().collect())
}

#[tokio::test]
async fn a_webhook_that_is_not_there_is_not_missed() -> Result<()> {
    let is_of_webhook = |(alert, _): &(String, String)| alert.starts_with("AgentsWebhook");
    let with = alerts(&json!({})).await?;
    assert!(with.iter().any(is_of_webhook), "{with:?}");
    let without = alerts(&json!({"webhook": {"enabled": false}})).await?;
    assert!(!without.iter().any(is_of_webhook), "{without:?}");
    assert!(!without.is_empty());
    Ok(())
}

#[tokio::test]
async fn alerts_link_to_where_the_runbooks_are_served() -> Result<()> {
    let base = "https://docs.example/runbooks";
    for written in [base, "https://docs.example/runbooks/"] {
        let values = json!({"metrics": {"rules": {"runbookBaseUrl": written}}});
        for (alert, runbook) in alerts(&values).await? {
            assert_eq!(runbook, format!("{base}/{alert}.md"));
        }
    }
    for (alert, runbook) in alerts(&json!({})).await? {
        assert_eq!(runbook, format!("docs/runbooks/{alert}.md"));
    }
    Ok(())
}
