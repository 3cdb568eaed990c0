//! Random writers of one status through the real API server: whatever they send, what is stored keeps the contract.

#[path = "../../../webhook/src/tests/contract.rs"]
mod contract;

use agents::api::{kind::Kind, phase::is_run};
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, future::try_join_all};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};
use support::{Namespace, builders::smallest};
use tokio::time::timeout;

use super::{
    cases::resource,
    hook::{self, DEADLINE},
};

/// Writes to each object, over all writers.
const WRITES: usize = 80;
/// Writers of one object.
const WRITERS: usize = 4;

fn choose<'v, T>(chance: &mut fastrand::Rng, values: &'v [T]) -> &'v T {
    &values[chance.usize(..values.len())]
}

/// A time of day, or a moment that has not come yet.
fn time(chance: &mut fastrand::Rng) -> String {
    match chance.u8(..20) {
        0 => "2199-01-01T00:00:00Z".to_owned(),
        minute => format!("2026-01-01T10:{minute:02}:00Z"),
    }
}

/// What one writer wants to change; it knows nothing of the others.
fn change(chance: &mut fastrand::Rng) -> Value {
    let phases = [
        "Pending",
        "Running",
        "Succeeded",
        "Failed",
        "Cancelled",
        "Odd",
    ];
    let types = ["Succeeded", "Failed", "Cancelled", "Ready", "Foreign"];
    let condition = |chance: &mut fastrand::Rng| {
        let mut condition = json!({
            "type": choose(chance, &types), "status": choose(chance, &["True", "False", "Unknown"]),
            "reason": "Random", "message": "",
        });
        if chance.bool() {
            condition["lastTransitionTime"] = json!(time(chance));
        }
        if chance.bool() {
            condition["observedGeneration"] = json!(chance.i64(0..4));
        }
        condition
    };
    let end = *choose(chance, &["Succeeded", "Failed", "Cancelled"]);
    match chance.u8(..10) {
        0 => json!({"phase": choose(chance, &phases)}),
        1 => json!({"phase": "Running", "startedAt": time(chance)}),
        2 => json!({"startedAt": time(chance)}),
        3 => json!({"finishedAt": time(chance)}),
        4 => json!({"observedGeneration": chance.i64(0..4)}),
        5 => json!({"updatedAt": time(chance)}),
        6 => json!({"conditions": [condition(chance)]}),
        7 => json!({"conditions": [condition(chance), condition(chance)]}),
        8 => {
            json!({*choose(chance, &["phase", "startedAt", "finishedAt", "updatedAt", "observedGeneration", "conditions"]): null})
        }
        _ => json!({"phase": end, "conditions": [{
            "type": end, "status": "True", "reason": "Random", "message": "", "lastTransitionTime": time(chance),
        }]}),
    }
}

/// A change of the spec that is allowed at any time.
fn respecified(kind: Kind, chance: &mut fastrand::Rng) -> Value {
    if kind == Kind::Signal {
        json!({"channel": choose(chance, &["a", "b", "c"])})
    } else if kind == Kind::AgentProvider {
        json!({"binary": choose(chance, &["/a", "/b", "/c"])})
    } else {
        // What may still change once a run has started.
        json!({"cancel": chance.bool()})
    }
}

/// One writer: reads, changes, writes; now and then changes the spec, so that generations move. Counts what was taken.
async fn write(api: &Api<DynamicObject>, kind: Kind, mut chance: fastrand::Rng) -> Result<usize> {
    let params = PatchParams::default();
    let mut taken = 0;
    for _ in 0..WRITES / WRITERS {
        if chance.u8(..8) == 0 {
            let spec = respecified(kind, &mut chance);
            let change = Patch::Merge(json!({ "spec": spec }));
            lost_or(api.patch("x", &params, &change).await)?;
        }
        let change = Patch::Merge(json!({"status": change(&mut chance)}));
        taken += lost_or(api.patch_status("x", &params, &change).await)?;
    }
    Ok(taken)
}

/// One if the write was taken; none if it was refused, or lost against another writer too often.
fn lost_or<T>(written: kube::Result<T>) -> Result<usize> {
    match written {
        Ok(_) => Ok(1),
        Err(kube::Error::Api(status)) if [409, 422].contains(&status.code) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Lets the writers work, and returns every version of the object that was stored meanwhile, in order.
async fn versions(
    api: &Api<DynamicObject>,
    created: &DynamicObject,
    writers: impl Future<Output = Result<usize>>,
) -> Result<(usize, Vec<DynamicObject>)> {
    let from = created.resource_version().context("a version")?;
    let params = WatchParams::default().fields("metadata.name=x");
    let mut events = api.watch(&params, &from).await?.boxed();
    let writing = async {
        let taken = writers.await?;
        anyhow::Ok((taken, api.get("x").await?.resource_version()))
    };
    let mut writing = std::pin::pin!(writing);
    let (mut last, mut found) = (None, Vec::new());
    loop {
        let seen = found.last().unwrap_or(created).resource_version();
        if let Some((taken, _)) = last.take_if(|(_, version)| *version == seen) {
            return Ok((taken, found));
        }
        tokio::select! {
            written = &mut writing, if last.is_none() => last = Some(written?),
            event = events.try_next() => match event?.context("the watch ended")? {
                WatchEvent::Modified(object) => found.push(object),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Added(_) | WatchEvent::Deleted(_) | WatchEvent::Error(_) => {
                    anyhow::bail!("not a change of the object")
                }
            },
        }
    }
}

fn status(object: &DynamicObject) -> Value {
    object.data.get("status").cloned().unwrap_or_default()
}

/// Has writers at an object of the kind, and judges each stored version by the one before.
async fn history(here: &Namespace, kind: Kind, seed: u64) -> Result<()> {
    let resource = resource(kind.as_str())?;
    let client = here.client.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, &here.name, &resource);
    let object = smallest(kind, "x").typed()?;
    let created = api.create(&PostParams::default(), &object).await?;
    let mut chance = fastrand::Rng::with_seed(seed);
    let writers = (0..WRITERS).map(|_| write(&api, kind, chance.fork()));
    let writers = async { Ok(try_join_all(writers).await?.into_iter().sum()) };
    let (taken, stored) = timeout(DEADLINE, versions(&api, &created, writers))
        .await
        .context("the writers take too long")??;
    eprintln!(
        "{kind}, seed {seed}: {taken} of {WRITES} writes taken, {} versions",
        stored.len()
    );
    ensure!(taken >= WRITES / 10, "hardly anything was taken: {taken}");
    let mut before = created;
    for object in stored {
        let (old, new) = (status(&before), status(&object));
        let generation = object.metadata.generation.unwrap_or_default();
        let kept = contract::holds(is_run(kind), &old, &new, generation);
        ensure!(
            kept.is_ok(),
            "seed {seed}: {kept:?}\nbefore: {old}\nafter: {new}"
        );
        stamped(&before, &object).with_context(|| format!("seed {seed}"))?;
        before = object;
    }
    Ok(())
}

/// S2: `updatedAt` moves with the rest of the status, and only with it.
fn stamped(before: &DynamicObject, after: &DynamicObject) -> Result<()> {
    let rest = |object: &DynamicObject| {
        let mut status = status(object);
        if status.is_null() {
            status = json!({}); // nobody can tell these apart
        }
        let stamp = status
            .as_object_mut()
            .and_then(|fields| fields.remove("updatedAt"));
        (status, stamp)
    };
    let ((old, then), (new, now)) = (rest(before), rest(after));
    ensure!(
        (old == new) == (then == now),
        "{old} {then:?} became {new} {now:?}"
    );
    Ok(())
}

#[tokio::test]
async fn no_history_of_writers_stores_a_status_that_breaks_the_contract() -> Result<()> {
    support::own_lab!();
    let here = hook::namespace("histories").await?;
    let seed = 4;
    history(&here, Kind::AgentRun, seed).await?;
    history(&here, Kind::ToolRun, seed + 1).await?;
    history(&here, Kind::OrchestrationRun, seed + 2).await?;
    // One that stands, and one that has no phase at all.
    history(&here, Kind::Signal, seed + 3).await?;
    history(&here, Kind::AgentProvider, seed + 4).await
}
