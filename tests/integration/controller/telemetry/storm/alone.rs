//! Ten thousand objects that fail take a machine of their own for a while.

use agents::api::contract::metric;
use agents::api::kinds::AgentRun;
use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::PostParams;
use serde_json::json;
use support::lab::report::{measured, spoken};

use super::{PER_MINUTE, Storm};

const OBJECTS: usize = 10_000;
/// Objects that are made at a time.
const AT_ONCE: usize = 32;

/// Runs that no controller of ours can carry out.
async fn make(storm: &Storm) -> Result<()> {
    let runs = storm.scene.here.api::<AgentRun>();
    let params = PostParams::default();
    let all = stream::iter(0..OBJECTS).map(|number| {
        let (runs, params) = (&runs, &params);
        async move {
            let run = serde_json::from_value(json!({
                "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
                "metadata": {"name": format!("run-{number}")},
                "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
                    "runtime": {"type": "temporal"}},
            }))?;
            anyhow::Ok(runs.create(params, &run).await.map(drop)?)
        }
    });
    all.buffer_unordered(AT_ONCE).try_collect().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_failing_objects_are_told_of_within_the_limit() -> Result<()> {
    support::kinds!();
    let mut storm = Storm::begin().await?;
    make(&storm).await?;
    let made = storm.started.elapsed();
    storm.until(metric::RUNS, OBJECTS).await?;
    let failed = storm.started.elapsed();
    let calm = storm.end().await?;
    let emitted = calm.counted(metric::EVENTS_EMITTED)?;
    measured(format!(
        "{OBJECTS} objects made in {}, failed after {}: {} calls about Events",
        spoken(made),
        spoken(failed),
        calm.calls
    ));
    let bound = 10 * PER_MINUTE * calm.minutes;
    assert!(
        (1..=bound).contains(&emitted),
        "{emitted} Events, {bound} at most"
    );
    assert_eq!(calm.events.len(), emitted);
    assert_eq!(
        (calm.calls, calm.counted(metric::EVENTS_UPDATED)?),
        (emitted, 0)
    );
    assert_eq!(calm.counted(metric::EVENTS_ERRORS)?, 0);
    // What is not told is counted: held back by the limit, or dropped because it came too fast.
    let untold = calm.counted(metric::EVENTS_SUPPRESSED)? + calm.counted(metric::EVENTS_DROPPED)?;
    assert_eq!(emitted + untold, OBJECTS);
    Ok(())
}
