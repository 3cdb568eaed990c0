//! The rules that the API server holds by itself: ValidatingAdmissionPolicies of the chart, on the real API server.

use agents::api::contract::{annotation, label};
use agents::api::kind::Kind;
use agents::api::registration::rung::Rung;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::time::Duration;
use support::{Namespace, builders::smallest, helm::Helm, kubectl::Said, lab, wait};

const DEADLINE: Duration = Duration::from_secs(60);
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";

fn values(more: &Value) -> Value {
    let mut values = json!({"controller": {"admissionPolicy": {"inApiServer": true}}});
    super::variables::merge(&mut values, more);
    values
}

#[tokio::test]
async fn no_mode_does_more_than_the_rung_and_without_the_value_there_is_none() -> Result<()> {
    let helm = Helm::new().await?;
    let none = helm.render(&json!({}), &[]).await?;
    assert_eq!(none.all(POLICY).count() + none.all(BINDING).count(), 0);
    for rung in Rung::ALL {
        for (mode, alone) in [
            ("audit", json!(["Audit"])),
            ("warn", json!(["Warn", "Audit"])),
            ("enforce", json!(["Deny"])),
        ] {
            let wanted = match (rung.refuses(), rung.warns(), mode) {
                (false, false, _) => json!(["Audit"]),
                (false, true, "enforce") => json!(["Warn", "Audit"]),
                _ => alone,
            };
            let rung = super::rungs::in_values(rung);
            let modes = json!({"ObservedGeneration": mode, "Conditions": mode});
            let more = json!({
                "webhook": {"rung": rung},
                "controller": {"admissionPolicy": {"jobDelete": mode, "statusModes": modes}},
            });
            let rendered = helm.render(&values(&more), &[]).await?;
            let actions: Vec<_> = rendered
                .all(BINDING)
                .map(|binding| &binding["spec"]["validationActions"])
                .collect();
            assert_eq!(actions, [&wanted; 3], "{rung} {mode}");
        }
    }
    Ok(())
}

/// Puts the policies into the shared cluster, bound to one namespace: other tests break these rules on purpose.
async fn bind(here: &Namespace) -> Result<()> {
    let more = json!({"namespaceOverride": here.name, "webhook": {"restoreUsers": ["restorer"]}});
    let rendered = Helm::new().await?.render(&values(&more), &[]).await?;
    let mut objects: Vec<_> = rendered.all(POLICY).cloned().collect();
    let only =
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": here.name}}});
    for binding in rendered.all(BINDING) {
        let mut binding = binding.clone();
        binding["spec"]["matchResources"] = only.clone();
        objects.push(binding);
    }
    ensure!(objects.len() == 6, "{objects:#?}");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let apply = ["apply", "--validate=strict", "--filename", "-"];
    let said = here.kubectl.run_with_input(&apply, &list).await?;
    ensure!(said.stderr.is_empty(), "{}", said.stderr);
    said.ok().map(drop)
}

fn job(name: &str, labels: Value, annotations: Value) -> Result<Job> {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.example.com/x:1"}]}}},
    }))
    .context("a Job")
}

async fn write_status(here: &Namespace, status: Value, words: &[&str]) -> Result<Said> {
    let run = smallest(Kind::AgentRun, "run").status(status).to_string();
    let replace = [
        "replace",
        "--subresource=status",
        "--dry-run=server",
        "--filename",
        "-",
    ];
    here.kubectl
        .run_with_input(&[&replace, words].concat(), &run)
        .await
}

#[tokio::test]
async fn a_job_without_its_outcome_stays_and_a_status_does_not_contradict_itself() -> Result<()> {
    support::own_lab!();
    support::kinds!();
    let here = support::namespace("twin").await?;
    bind(&here).await?;
    let ours = json!({label::RUN_UID: "0"});
    let recorded = json!({annotation::OUTCOME_RECORDED: "2026-01-01T12:00:00Z"});
    let jobs = here.api::<Job>();
    for job in [
        job("unrecorded", ours.clone(), json!({}))?,
        job("recorded", ours, recorded)?,
        job("foreign", json!({}), json!({}))?,
    ] {
        jobs.create(&PostParams::default(), &job).await?;
    }
    let delete = ["delete", "job", "unrecorded", "--dry-run=server"];
    wait::retry("a Job that stays", DEADLINE, || async {
        let said = here.kubectl.run(&delete).await?;
        ensure!(said.stderr.contains("is not stored yet"), "{said:?}");
        Ok(())
    })
    .await?;
    here.kubectl
        .run(&["delete", "job", "recorded", "foreign"])
        .await?
        .ok()?;

    let create = ["create", "--filename", "-"];
    let run = smallest(Kind::AgentRun, "run").to_string();
    here.kubectl.run_with_input(&create, &run).await?.ok()?;
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": "Completed", "message": "", "lastTransitionTime": "2026-01-01T12:00:00Z"});
    let ended = |conditions: Value| json!({"phase": "Succeeded", "finishedAt": "2026-01-01T12:00:00Z", "conditions": conditions});
    wait::retry("a generation that is ahead", DEADLINE, || async {
        let said = write_status(&here, json!({"observedGeneration": 7}), &[]).await?;
        let why = "observedGeneration is 7, but the object is at generation 1";
        ensure!(said.stderr.contains(why), "{said:?}");
        Ok(())
    })
    .await?;
    let contradictions = [
        json!([]),
        json!([condition("Failed")]),
        json!([condition("Succeeded"), condition("Failed")]),
    ];
    for conditions in contradictions {
        wait::retry("an end without its condition", DEADLINE, || async {
            let said = write_status(&here, ended(conditions.clone()), &[]).await?;
            let why = "the run has ended as Succeeded";
            ensure!(said.stderr.contains(why), "{said:?}");
            Ok(())
        })
        .await?;
    }
    let right = ended(json!([condition("Succeeded")]));
    write_status(&here, right, &[]).await?.ok()?;
    let restored = json!({"observedGeneration": 7});
    let as_restorer = ["--as=restorer", "--as-group=system:masters"];
    write_status(&here, restored, &as_restorer).await?.ok()?;
    remove(&here).await
}

/// Removes what later requests of others would be held against.
async fn remove(here: &Namespace) -> Result<()> {
    let kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings";
    let selector = ["--selector", "app.kubernetes.io/part-of=agents"];
    let delete = [&["delete", kinds], &selector[..]].concat();
    lab::shared().await?.kubectl().run(&delete).await?.ok()?;
    // The API server goes by its own copy of them for a moment longer.
    wait::retry("a Job that may go", DEADLINE, || async {
        let deleted = here.kubectl.run(&["delete", "job", "unrecorded"]).await?;
        deleted.ok().map(drop)
    })
    .await
}
