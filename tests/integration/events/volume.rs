//! How many writes come of how many occurrences.

use agents::events::Severity;
use agents::events::metrics::{Group, Limit, Loss};

use support::{gateway::Gateway, lab};

use super::*;

#[tokio::test]
async fn repeats_are_one_event_whose_count_is_written_twice() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let mut config = config();
    // Longer than any pause of the story, also on a busy machine: a series that ends too soon would be written once more.
    config.limits.quiet = Duration::from_secs(10);
    let metrics = tell(&namespace.client, config, async |emitter, metrics| {
        say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        only(&namespace, |_| true).await?;
        say(
            emitter,
            run(&namespace, "a"),
            Reason::Failed,
            "It failed, again",
        );
        let told = only(&namespace, |event| count(event) == 2).await?;
        for _ in 0..998 {
            say(
                emitter,
                run(&namespace, "a"),
                Reason::Failed,
                "It failed, and again",
            );
        }
        let closed = only(&namespace, |event| count(event) == 1_000).await?;
        assert_eq!(closed.note.as_deref(), Some("It failed"));
        assert_eq!(closed.metadata.uid, told.metadata.uid);
        Ok(metrics.clone())
    })
    .await?;
    let writes = (
        metrics.emitted(Severity::Warning, Group::Events),
        metrics.updated(),
    );
    assert_eq!(writes, (1, 2));
    Ok(())
}

#[tokio::test]
async fn a_storm_is_bounded_and_every_occurrence_is_accounted_for() -> Result<()> {
    const STORM: u64 = 10_000;
    let namespace = support::namespace("events").await?;
    let reasons = [
        Reason::Failed,
        Reason::InvalidSpec,
        Reason::Started,
        Reason::ReconcileFailed,
    ];
    let metrics = tell(&namespace.client, config(), async |emitter, metrics| {
        let started = Instant::now();
        for n in 0..STORM {
            let name = format!("run-{}", n % 250);
            let reason = reasons[usize::try_from(n)? % reasons.len()];
            say(
                emitter,
                run(&namespace, &name),
                reason,
                "Something happened",
            );
            if n % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let took = started.elapsed();
        println!(
            "{STORM} occurrences emitted in {took:.1?}, {:.1?} each",
            took / u32::try_from(STORM)?
        );
        Ok(metrics.clone())
    })
    .await?;
    let emitted: u64 = Severity::ALL
        .iter()
        .map(|severity| metrics.emitted(*severity, Group::Events))
        .sum();
    let suppressed: u64 = Limit::ALL
        .iter()
        .map(|limit| metrics.suppressed(*limit))
        .sum();
    let dropped: u64 = Loss::ALL.iter().map(|cause| metrics.dropped(*cause)).sum();
    println!(
        "{emitted} stored, {} counted, {} writes of counts, {suppressed} suppressed, {dropped} dropped",
        metrics.aggregated(),
        metrics.updated()
    );
    let topics = u64::try_from(reasons.len() * config().limits.per_topic)?;
    assert!((1..=topics).contains(&emitted), "{emitted} Events");
    assert!(
        metrics.updated() <= 2 * emitted,
        "{} writes of counts for {emitted} Events",
        metrics.updated()
    );
    assert_eq!(emitted + metrics.aggregated() + suppressed + dropped, STORM);
    let events = stored(&namespace).await?;
    assert_eq!(u64::try_from(events.len())?, emitted);
    let told: i32 = events.iter().map(|(_, count)| count).sum();
    assert_eq!(
        u64::try_from(told)?,
        emitted + metrics.aggregated(),
        "what was counted is stored"
    );
    Ok(())
}

const OBJECTS: u64 = 10_000;
const REPEATS: u64 = 1_000;

/// Ten thousand objects fail, and one more fails a thousand times in between. So many occurrences come without a pause.
async fn fail(namespace: &Namespace, emitter: &Emitter, pace: u64) {
    for n in 0..OBJECTS {
        if n % (OBJECTS / REPEATS) == 0 {
            say(emitter, run(namespace, "again"), Reason::Failed, "It fails");
        }
        let name = format!("run-{n}");
        say(emitter, run(namespace, &name), Reason::Failed, "It failed");
        if n % pace == pace - 1 {
            tokio::task::yield_now().await;
        }
    }
}

/// Has all of it told by the emitter as programs have it, and counts the calls. Gives how many occurrences were dropped.
async fn storm(pace: u64) -> Result<u64> {
    let limits = config().limits;
    let namespace = support::namespace("events").await?;
    let way = Gateway::open(lab::shared().await?.kubeconfig(), None).await?;
    let client = support::cluster::client(way.kubeconfig()).await?;
    let emitted = |metrics: &Metrics| metrics.emitted(Severity::Warning, Group::Events);
    let most = u64::try_from(limits.per_topic)?;
    let (metrics, took) = tell(&client, config(), async |emitter, metrics| {
        let started = Instant::now();
        fail(&namespace, emitter, pace).await;
        wait::retry("all that may be told", DEADLINE, || async {
            ensure!(emitted(metrics) == most, "{} Events", emitted(metrics));
            Ok(())
        })
        .await?;
        Ok((metrics.clone(), started.elapsed()))
    })
    .await?;
    let emitted = emitted(&metrics);
    let held_back = metrics.suppressed(Limit::Topic);
    let dropped: u64 = Loss::ALL.iter().map(|cause| metrics.dropped(*cause)).sum();
    println!(
        "{emitted} stored in {took:.1?}, {} counted, {held_back} held back, {dropped} dropped",
        metrics.aggregated()
    );
    let told = emitted + metrics.aggregated();
    assert_eq!(told + held_back + dropped, OBJECTS + REPEATS);
    // As many calls as Events and writes of a count, and only one Event has a count: once at its first repeat, once at the end.
    let calls = u64::try_from(way.asides().len())?;
    assert_eq!((emitted, calls), (most, most + metrics.updated()));
    assert!(metrics.updated() <= 2, "{} writes", metrics.updated());
    let least = (emitted - 1) / u64::try_from(limits.per_second)?;
    assert!(took >= Duration::from_secs(least), "{took:?}");
    let events = stored(&namespace).await?;
    let again = events.iter().find(|(name, _)| name == "again");
    let counted = again.map(|(_, count)| u64::try_from(*count)).transpose()?;
    assert_eq!(counted, Some(1 + metrics.aggregated()));
    assert_eq!(u64::try_from(events.len())?, emitted);
    Ok(dropped)
}

#[tokio::test]
async fn a_storm_over_ten_thousand_objects_costs_no_more_calls_than_allowed() -> Result<()> {
    assert_eq!(storm(25).await?, 0, "all is taken up that comes one by one");
    Ok(())
}

#[tokio::test]
async fn a_storm_over_ten_thousand_objects_at_once_is_dropped_and_counted() -> Result<()> {
    let queue = u64::try_from(config().limits.queue)?;
    assert_eq!(storm(u64::MAX).await?, OBJECTS + REPEATS - queue);
    Ok(())
}

#[tokio::test]
async fn a_full_queue_drops_and_counts_and_the_rest_arrives() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let mut config = config();
    config.limits.queue = 8;
    let metrics = tell(&namespace.client, config, async |emitter, metrics| {
        for _ in 0..100 {
            say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        }
        Ok(metrics.clone())
    })
    .await?;
    assert_eq!(metrics.dropped(Loss::QueueFull), 92);
    assert_eq!(stored(&namespace).await?, [("a".to_owned(), 8)]);
    Ok(())
}

#[tokio::test]
async fn the_operators_limit_holds_for_each_object() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let settings = Settings {
        enabled: true,
        per_minute: 2,
    };
    let config = Config::new(settings, Reporter::new(reporter::CONTROLLER, "pod-0"));
    let warnings = Reason::ALL
        .iter()
        .filter(|reason| reason.severity() == Severity::Warning);
    let metrics = tell(&namespace.client, config, async |emitter, metrics| {
        for reason in warnings.clone() {
            say(emitter, run(&namespace, "a"), *reason, "It happened");
        }
        Ok(metrics.clone())
    })
    .await?;
    assert_eq!(stored(&namespace).await?.len(), 2);
    assert_eq!(
        usize::try_from(metrics.suppressed(Limit::Object))?,
        warnings.count() - 2
    );
    Ok(())
}
