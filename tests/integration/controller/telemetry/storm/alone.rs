//! Ten thousand failing objects, which keep the machine busy and would be seen by others that look everywhere.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::DeleteParams;

use super::*;

const OBJECTS: usize = 10_000;
/// Time for all of them.
const LONGEST: Duration = Duration::from_secs(300);

/// Waits until all of them say that they are wrong.
async fn until_all_failed(scene: &Scene) -> Result<()> {
    let changes = watcher(scene.any(KIND), watcher::Config::default()).default_backoff();
    let mut changes = pin!(changes.applied_objects());
    let mut failed = BTreeSet::new();
    while failed.len() < OBJECTS {
        let changed = changes.try_next().await?;
        let changed = changed.context("the watch ended")?;
        if is_judged(&changed) {
            failed.insert(changed.name_any());
        }
    }
    Ok(())
}

#[tokio::test]
async fn ten_thousand_failing_objects_are_told_of_within_the_limit() -> Result<()> {
    support::kinds!();
    let began = Instant::now();
    let mut storm = Storm::begin(OBJECTS).await?;
    let made = began.elapsed();
    let topic = vec!["limit=topic".to_owned()];
    let is_held_back = |counts: &BTreeMap<Labels, f64>| counts.get(&topic) > Some(&0.0);
    storm
        .receiver
        .until(metric::EVENTS_SUPPRESSED, is_held_back)
        .await?;
    // Whoever does nothing wrong is served meanwhile, and told of.
    let run = storm.scene.run("good", json!({})).await?;
    storm.scene.until_phase("good", "Running").await?;
    storm.scene.told(&run, "Submitted").await?;
    let served = began.elapsed();
    let all = timeout(LONGEST, until_all_failed(&storm.scene)).await;
    all.context("not all failed in time")??;
    let failed = began.elapsed();
    storm.scene.make(KIND, "good", json!({})).await?;
    let good = storm.scene.until_ready(KIND, "good", "True Active");
    good.await?;
    let signals = storm.scene.any(KIND);
    let calm = storm.end().await?;
    let everything = (DeleteParams::default(), ListParams::default());
    signals
        .delete_collection(&everything.0, &everything.1)
        .await?;
    println!(
        "{OBJECTS} made in {made:.1?}, a run served after {served:.1?}, all failed after {failed:.1?}, gone after {:.1?}",
        began.elapsed()
    );
    calm.is_accounted_for()?;
    let told = calm.about_specs("signal-").len();
    let bound = 10 * PER_MINUTE * calm.minutes;
    assert!(
        (1..=bound).contains(&told),
        "{told} Events, {bound} at most"
    );
    let held_back = calm.counted_as(metric::EVENTS_SUPPRESSED, "limit=topic")?;
    assert_eq!(told + held_back, OBJECTS, "each is told or counted");
    assert_eq!(calm.counted(metric::EVENTS_UPDATED)?, 0, "nothing repeats");
    Ok(())
}
