//! The ladder as the chart registers it, rung by rung: what happens while the webhook answers, and while it does not.

use agents::api::{
    contract::label,
    kind::Kind,
    registration::rung::{FailurePolicy, Rung, Territory},
};
use agents_webhook::args::variable as own;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use support::{Namespace, builders::smallest, kubectl::Said, metrics::Page, wait};

use super::hook::{Certificates, DEADLINE, Hook, Registered};

/// Doors whose calls can be seen by a rehearsal.
const DOORS: [&str; 3] = ["mutate", "validate", "validate-delete"];

/// An object that is stored while the webhook still answers.
const GOOD: &str = "workspaces.workspaces.proompteng.ai/good";

async fn apply(here: &Namespace, name: &str, size: &str) -> Result<Said> {
    let input = smallest(Kind::Workspace, name).spec(json!({"size": size}));
    let apply = ["apply", "--filename", "-"];
    here.kubectl
        .run_with_input(&apply, &input.to_string())
        .await
}

/// Calls of each door so far.
async fn calls(hook: &Hook) -> Result<[f64; 3]> {
    let page = Page::scrape(&hook.admin.to_string()).await?;
    Ok(DOORS.map(|door| {
        let series = page.series("agents_webhook_calls_total").into_iter();
        let of_door =
            series.filter(|(series, _)| series.labels.get("door").is_some_and(|own| own == door));
        of_door.map(|(_, count)| count).sum()
    }))
}

/// Whether requests in this namespace are seen to reach every door. On the lowest rung nobody is told anything, so the
/// webhook itself must say it.
async fn asked(hook: &Hook, here: &Namespace) -> Result<()> {
    let before = calls(hook).await?;
    let input = smallest(Kind::Workspace, "asked").spec(json!({"size": "1Gi"}));
    let create = ["create", "--dry-run=server", "--filename", "-"];
    here.kubectl
        .run_with_input(&create, &input.to_string())
        .await?;
    let delete = ["delete", "job", "asked", "--dry-run=server"];
    here.kubectl.run(&delete).await?;
    let after = calls(hook).await?;
    ensure!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| before < after),
        "not every door is asked: {before:?}, then {after:?}"
    );
    Ok(())
}

/// What the webhook makes of a fault on this rung.
async fn judged(here: &Namespace, rung: Rung) -> Result<()> {
    let said = apply(here, "faulty", "much").await?;
    let told = said.stderr.contains("spec.size");
    let (code, expected) = match rung {
        Rung::Audit => (Some(0), false),
        Rung::Warn => (Some(0), true),
        Rung::Deny | Rung::FailLabelled | Rung::Fail => (Some(1), true),
    };
    ensure!(
        (said.code, told) == (code, expected),
        "{rung} in {}: {said:?}",
        here.name
    );
    Ok(())
}

/// What passes without the webhook, and what waits for it.
async fn unanswered(here: &Namespace, policy: FailurePolicy) -> Result<()> {
    let refused =
        |said: &Said| said.code == Some(1) && said.stderr.contains("failed calling webhook");
    for (name, size) in [("good", "2Gi"), ("new", "1Gi")] {
        let said = apply(here, name, size).await?;
        match policy {
            FailurePolicy::Ignore => ensure!(said.code == Some(0), "{name}: {said:?}"),
            FailurePolicy::Fail => ensure!(refused(&said), "{name}: {said:?}"),
        }
    }
    for (change, is_judged) in [
        (
            json!({"metadata": {"finalizers": ["agents.proompteng.ai/test"]}}),
            false,
        ),
        (json!({"metadata": {"finalizers": null}}), false),
        (json!({"metadata": {"labels": {"a": "b"}}}), true),
        (json!({"metadata": {"annotations": {"a": "b"}}}), true),
        (json!({"spec": {"size": "3Gi"}}), true),
    ] {
        let patch = [
            "patch",
            GOOD,
            "--type=merge",
            "--patch",
            &change.to_string(),
        ];
        let said = here.kubectl.run(&patch).await?;
        match policy {
            FailurePolicy::Fail if is_judged => ensure!(refused(&said), "{change}: {said:?}"),
            FailurePolicy::Fail | FailurePolicy::Ignore => {
                ensure!(said.code == Some(0), "{change}: {said:?}");
            }
        }
    }
    let status = json!({"status": {"observedGeneration": 1}}).to_string();
    let patch = [
        "patch",
        GOOD,
        "--subresource=status",
        "--type=merge",
        "--patch",
        &status,
    ];
    let said = here.kubectl.run(&patch).await?;
    ensure!(said.code == Some(0), "a status: {said:?}");
    let delete = ["delete", "job", "asked", "--wait=false"];
    let said = here.kubectl.run(&delete).await?;
    ensure!(said.code == Some(0), "a Job: {said:?}");
    Ok(())
}

async fn climb(rung: Rung) -> Result<()> {
    let certificates = Certificates::new();
    let hook = Hook::start(&certificates, &[(own::RUNG, rung.as_str())]).await?;
    let authority = &certificates.authority;
    let registered = Registered::shipped(hook.address, authority, rung).await?;
    let mut places = Vec::new();
    for territory in [Territory::Plain, Territory::Labelled] {
        let labels = match territory {
            Territory::Plain => json!({}),
            Territory::Labelled => json!({label::ADMISSION: label::ADMISSION_FAIL}),
        };
        let here = registered.unasked_namespace("canary", labels).await?;
        wait::retry("a webhook that is asked", DEADLINE, || asked(&hook, &here)).await?;
        judged(&here, rung).await?;
        let said = apply(&here, "good", "1Gi").await?;
        ensure!(said.code == Some(0), "{said:?}");
        places.push((territory, here));
    }
    hook.end().await?;
    for (territory, here) in places {
        let policy = rung.failure_policy(territory);
        let done = unanswered(&here, policy).await;
        done.with_context(|| format!("{rung}, {territory:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn on_audit_nobody_notices_the_webhook_nor_its_absence() -> Result<()> {
    support::own_lab!();
    climb(Rung::Audit).await
}

#[tokio::test]
async fn on_warn_people_are_told_and_nothing_waits() -> Result<()> {
    support::own_lab!();
    climb(Rung::Warn).await
}

#[tokio::test]
async fn on_deny_faults_are_refused_and_nothing_waits() -> Result<()> {
    support::own_lab!();
    climb(Rung::Deny).await
}

#[tokio::test]
async fn on_fail_labelled_only_labelled_namespaces_wait() -> Result<()> {
    support::own_lab!();
    climb(Rung::FailLabelled).await
}

#[tokio::test]
async fn on_fail_specs_wait_and_statuses_and_deletions_do_not() -> Result<()> {
    support::own_lab!();
    climb(Rung::Fail).await
}
