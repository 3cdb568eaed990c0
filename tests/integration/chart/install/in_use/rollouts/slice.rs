//! A new version of the webhook takes a slice of the requests, and all of them only if it decides like the old one.

use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, bail, ensure};
use kube::api::{ListParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use support::{Namespace, namespace_in, prometheus::Prometheus, wait};

use super::{DEADLINE, Delivery};
use crate::chart::install::stage::{NEXT, run};
use crate::chart::variables::merge;

/// What the version on trial asks for, and the old one does not.
const DEMAND: &str = "JANGAR_AGENTS_CONTROLLER_LABELS_REQUIRED";

/// A webhook with a version on trial, and more.
fn trial(tag: &str, prometheus: Option<&Prometheus>, more: &Value) -> Value {
    let address = prometheus.map(|prometheus| format!("http://{}", prometheus.authority()));
    let mut values = json!({
        "controlPlane": {"enabled": false},
        "webhook": {"enabled": true, "canary": {"enabled": true, "image": {"tag": tag}}},
        "progressiveDelivery": {"analysis": {
            "enabled": address.is_some(), "address": address.unwrap_or_default(),
            "initialDelay": "20s", "interval": "2s", "count": 3, "webhook": {"minCalls": 5},
        }},
    });
    merge(&mut values, more);
    values
}

/// Whether a run would be stored in a namespace; if not, because a label is missing.
async fn is_taken(there: &Namespace) -> Result<bool> {
    let run = run(&json!({"generateName": "tried-"}))?;
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match there.api::<AgentRun>().create(&params, &run).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.message.contains("team") => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn until_taken(there: &Namespace, wanted: bool) -> Result<()> {
    wait::retry("the version that is asked", DEADLINE, || async {
        ensure!(is_taken(there).await? == wanted, "another version answers");
        Ok(())
    })
    .await
}

/// How many of some runs are taken.
async fn taken(there: &Namespace, of: usize) -> Result<usize> {
    let mut taken = 0;
    for _ in 0..of {
        taken += usize::from(is_taken(there).await?);
    }
    Ok(taken)
}

impl Delivery {
    /// Sends both versions reviews until the one on trial is judged, and gives the name of the analysis and what it says.
    async fn judged(&self, slice: &Namespace) -> Result<(String, String)> {
        let runs = self.kind("AnalysisRun");
        let judged = wait::retry("an analysis that has ended", DEADLINE, || async {
            for there in [&self.stage.here, slice] {
                is_taken(there).await?;
            }
            let found = runs.list(&ListParams::default()).await?;
            let [run]: [DynamicObject; 1] = found.items.try_into().ok().context("one analysis")?;
            let phase = run.data["status"]["phase"].as_str().unwrap_or_default();
            match phase {
                "" | "Pending" | "Running" => bail!("{:#}", run.data["status"]),
                _ => Ok((run.metadata.name.unwrap_or_default(), phase.to_owned())),
            }
        });
        judged.await.with_context(|| self.argo.log())
    }
}

#[tokio::test]
async fn a_new_webhook_takes_a_slice_and_the_gate_keeps_one_that_decides_differently_from_taking_all()
-> Result<()> {
    support::node_lab!();
    let delivery = Delivery::enter().await?;
    let (here, [next, later]) = (&delivery.stage.here, NEXT);
    let slice = namespace_in(delivery.stage.lab, "slice").await?;
    let label = [
        "label",
        "namespace",
        &slice.name,
        "agents.proompteng.ai/webhook=canary",
    ];
    delivery.stage.lab.kubectl().run(&label).await?.ok()?;
    let prometheus = delivery.prometheus(&trial(next, None, &json!({}))).await?;
    let old = json!({"webhook": {"enabled": true}, "controlPlane": {"enabled": false}});
    delivery.put("install", &old).await?;
    for there in [here, &slice] {
        until_taken(there, true).await?;
    }

    let promoted = |tag: &str| {
        let mut values = old.clone();
        merge(&mut values, &json!({"webhook": {"image": {"tag": tag}}}));
        values
    };

    delivery
        .put("upgrade", &trial(next, Some(&prometheus), &json!({})))
        .await?;
    until_taken(&slice, true).await?;
    let (_, phase) = delivery.judged(&slice).await?;
    assert_eq!(phase, "Successful");
    delivery.put("upgrade", &promoted(next)).await?;
    until_taken(&slice, true).await?;

    let strange = |share: u8| {
        json!({"webhook": {
            "image": {"tag": next},
            "canary": {"share": share, "env": {"vars": {DEMAND: "[\"team\"]"}}},
        }})
    };
    let values = trial(later, Some(&prometheus), &strange(0));
    delivery.put("upgrade", &values).await?;
    until_taken(&slice, false).await?;
    assert_eq!(taken(here, 20).await?, 20, "of other namespaces nothing");
    let (analysis, phase) = delivery.judged(&slice).await?;
    assert_eq!(phase, "Failed");
    let refused = delivery.put("upgrade", &promoted(later)).await;
    let said = format!("{:#}", refused.unwrap_err());
    let expected = format!("its canary was not found good: the AnalysisRun {analysis} is Failed");
    assert!(said.contains(&expected), "{said}");
    until_taken(here, true).await?;

    // Half of the objects, wherever they are. That 64 all fall on one side does not happen.
    delivery
        .put("upgrade", &trial(later, None, &strange(8)))
        .await?;
    wait::retry("a share of the objects", DEADLINE, || async {
        let taken = taken(here, 64).await?;
        ensure!((1..64).contains(&taken), "{taken} of 64");
        Ok(())
    })
    .await?;
    delivery.stage.uninstall().await
}
