//! Waits for the state of a cluster: watches with a deadline that say what they last saw.
//!
//! Only [`retry`] polls, for what Kubernetes does not offer to watch.

use anyhow::{Context, Result, bail};
use futures::{Stream, StreamExt, TryStreamExt};
use kube::{
    Api, Resource, ResourceExt,
    core::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::BTreeMap, fmt::Debug, time::Duration};
use tokio::time::{Instant, sleep, timeout_at};

/// Between two attempts at something that cannot be watched.
const RETRY_PERIOD: Duration = Duration::from_millis(25);

/// What can be waited for.
pub trait Watched:
    Resource<DynamicType: Default> + Clone + Debug + DeserializeOwned + Serialize + Send + 'static
{
}

impl<K> Watched for K where
    K: Resource<DynamicType: Default>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + 'static
{
}

/// Waits until the object is there and as wanted, and returns it.
pub async fn until<K: Watched>(
    api: &Api<K>,
    name: &str,
    deadline: Duration,
    wanted: impl Fn(&K) -> bool,
) -> Result<K> {
    let mut last = None;
    let seen = until_seen(api, name, deadline, |object| {
        last = object.cloned();
        object.is_some_and(&wanted)
    })
    .await;
    match (seen, last) {
        (Ok(()), Some(object)) => Ok(object),
        (Ok(()), None) => bail!("{} was never seen", described::<K>(name)),
        (Err(error), _) => Err(error),
    }
}

/// Waits until the object is gone.
pub async fn until_gone<K: Watched>(api: &Api<K>, name: &str, deadline: Duration) -> Result<()> {
    until_seen(api, name, deadline, |object| object.is_none()).await
}

/// Waits until an object of any kind, or that there is none, is as wanted, and returns it.
pub async fn until_any(
    api: &Api<DynamicObject>,
    what: &str,
    name: &str,
    deadline: Duration,
    wanted: impl Fn(Option<&DynamicObject>) -> bool,
) -> Result<Option<DynamicObject>> {
    let states = watcher::watch_object(api.clone(), name).default_backoff();
    follow(states, deadline, what, |object: &Option<DynamicObject>| {
        wanted(object.as_ref())
    })
    .await
}

async fn until_seen<K: Watched>(
    api: &Api<K>,
    name: &str,
    deadline: Duration,
    mut enough: impl FnMut(Option<&K>) -> bool,
) -> Result<()> {
    let states = watcher::watch_object(api.clone(), name).default_backoff();
    follow(
        states,
        deadline,
        &described::<K>(name),
        |object: &Option<K>| enough(object.as_ref()),
    )
    .await?;
    Ok(())
}

/// Waits until the objects that a label selector picks (all, if it is empty) are as wanted, and returns them by name.
pub async fn until_listed<K: Watched>(
    api: &Api<K>,
    labels: &str,
    deadline: Duration,
    wanted: impl Fn(&[K]) -> bool,
) -> Result<Vec<K>> {
    let events = watcher(api.clone(), watcher::Config::default().labels(labels)).default_backoff();
    let mut known = BTreeMap::new();
    let lists = events.try_filter_map(move |event| {
        let complete = apply(&mut known, event);
        let list = complete.then(|| known.values().cloned().collect::<Vec<K>>());
        futures::future::ready(Ok(list))
    });
    let what = described::<K>(if labels.is_empty() { "*" } else { labels });
    follow(lists, deadline, &what, |list: &Vec<K>| wanted(list)).await
}

/// Keeps the list current; says whether it is complete.
fn apply<K: Resource>(
    known: &mut BTreeMap<(Option<String>, String), K>,
    event: watcher::Event<K>,
) -> bool {
    let key = |object: &K| (object.namespace(), object.name_any());
    match event {
        watcher::Event::Init => {
            known.clear();
            false
        }
        watcher::Event::InitApply(object) => {
            known.insert(key(&object), object);
            false
        }
        watcher::Event::InitDone => true,
        watcher::Event::Apply(object) => {
            known.insert(key(&object), object);
            true
        }
        watcher::Event::Delete(object) => {
            known.remove(&key(&object));
            true
        }
    }
}

/// Tries something that cannot be watched until it works, and returns what it gave.
pub async fn retry<T, F: Future<Output = Result<T>>>(
    what: &str,
    deadline: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T> {
    let end = Instant::now() + deadline;
    let mut last = None;
    loop {
        match timeout_at(end, attempt()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => last = Some(error),
            Err(_) => {}
        }
        if Instant::now() + RETRY_PERIOD >= end {
            let seen = last.map_or_else(|| "no answer".to_owned(), |error| format!("{error:#}"));
            bail!("{what}: not after {deadline:?}; last seen: {seen}");
        }
        sleep(RETRY_PERIOD).await;
    }
}

/// Follows states until one is enough; failures of the watch itself are retried until the deadline and then told.
async fn follow<S: Serialize>(
    states: impl Stream<Item = watcher::Result<S>>,
    deadline: Duration,
    what: &str,
    mut enough: impl FnMut(&S) -> bool,
) -> Result<S> {
    let end = Instant::now() + deadline;
    let mut states = std::pin::pin!(states);
    let mut last = "nothing".to_owned();
    loop {
        match timeout_at(end, states.next()).await {
            Ok(Some(Ok(state))) if enough(&state) => return Ok(state),
            Ok(Some(Ok(state))) => last = pretty(&state)?,
            Ok(Some(Err(error))) => last = format!("{:#}", anyhow::Error::from(error)),
            Ok(None) => bail!("the watch of {what} ended"),
            Err(_) => bail!("{what} is not as wanted after {deadline:?}; last seen:\n{last}"),
        }
    }
}

fn described<K: Resource<DynamicType: Default>>(name: &str) -> String {
    format!("{} {name}", K::kind(&K::DynamicType::default()))
}

/// An object as people read it, without the bookkeeping of field managers.
fn pretty<S: Serialize>(state: &S) -> Result<String> {
    let mut value = serde_json::to_value(state).context("what was seen cannot be shown")?;
    let objects = match value.as_array_mut() {
        Some(list) => list.iter_mut().collect(),
        None => vec![&mut value],
    };
    for object in objects {
        if let Some(metadata) = object
            .get_mut("metadata")
            .and_then(|one| one.as_object_mut())
        {
            metadata.remove("managedFields");
        }
    }
    Ok(serde_json::to_string_pretty(&value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn named(name: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object
    }

    #[test]
    fn a_list_is_complete_only_after_its_first_round_and_forgets_what_a_new_round_lacks() {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        let mut known = BTreeMap::new();
        let mut seen = Vec::new();
        for event in [
            Init,
            InitApply(named("a")),
            InitApply(named("b")),
            InitDone,
            Delete(named("a")),
            Apply(named("c")),
            Init,
            InitApply(named("c")),
            InitDone,
        ] {
            let complete = apply(&mut known, event);
            let names: String = known.values().map(ResourceExt::name_any).collect();
            seen.push((complete, names));
        }
        let expected = [
            (false, ""),
            (false, "a"),
            (false, "ab"),
            (true, "ab"),
            (true, "b"),
            (true, "bc"),
            (false, ""),
            (false, "c"),
            (true, "c"),
        ];
        assert_eq!(
            seen,
            expected.map(|(complete, names)| (complete, names.to_owned()))
        );
    }

    #[tokio::test]
    async fn a_retry_gives_the_first_success_and_tells_the_last_failure() {
        let mut attempts = 0;
        let mut attempt = || {
            attempts += 1;
            std::future::ready(if attempts == 3 {
                Ok(attempts)
            } else {
                Err(anyhow::anyhow!("no {attempts}"))
            })
        };
        let first = retry("it", Duration::from_secs(5), &mut attempt).await;
        assert_eq!(first.unwrap(), 3);
        let error = retry("it", Duration::from_millis(1), &mut attempt)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "it: not after 1ms; last seen: no 4");
    }

    #[tokio::test]
    async fn a_wait_that_fails_shows_what_it_last_saw() {
        let states = stream::iter([Ok(Some(named("first"))), Ok(Some(named("last")))]);
        let states = states.chain(stream::pending());
        let error = follow(states, Duration::from_millis(10), "ConfigMap x", |_| false)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("ConfigMap x is not as wanted after 10ms"),
            "{error}"
        );
        assert!(error.contains(r#""name": "last""#), "{error}");
    }
}
