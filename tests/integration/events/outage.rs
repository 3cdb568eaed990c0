//! An API server that cannot be reached for a while.

use agents::events::Severity;
use agents::events::metrics::{Failure, Group};
use tokio::sync::watch;

use super::*;
use crate::way::Way;

#[tokio::test]
async fn what_happens_while_the_api_server_is_away_is_told_when_it_is_back() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let way = Way::new().await?;
    let (switch, open) = watch::channel(false);
    let mut config = config();
    config.limits.deadline = Duration::from_secs(1);
    let told = tell(&way.client, config, async |emitter, metrics| {
        for name in ["a", "b", "a"] {
            say(emitter, run(&namespace, name), Reason::Failed, "It failed");
        }
        let failures = || async {
            anyhow::ensure!(metrics.errors(Failure::Timeout) >= 2, "{metrics:?}");
            Ok(())
        };
        wait::retry("two tries fail", DEADLINE, failures).await?;
        assert_eq!(stored(&namespace).await?, []);
        switch.send_replace(true);
        all(&namespace, |list| list.len() == 2).await?;
        Ok(metrics.clone())
    });
    let metrics = tokio::select! {
        told = told => told?,
        broken = way.serve(open) => return broken,
    };
    assert_eq!(metrics.emitted(Severity::Warning, Group::Events), 2);
    assert_eq!(
        stored(&namespace).await?,
        [("a".to_owned(), 2), ("b".to_owned(), 1)]
    );
    Ok(())
}
