//! Captures the Events about an object, as values that can be compared.

use anyhow::{Context, Result};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, Client, Resource, api::ListParams};
use std::time::Duration;

use crate::wait;

/// What an Event says, without names and times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Said {
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The stable reason.
    pub reason: String,
    /// What was being done.
    pub action: String,
    /// Words for people.
    pub note: String,
    /// How often, if it is a series.
    pub count: i32,
}

impl From<&Event> for Said {
    fn from(event: &Event) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let series = event.series.as_ref().map(|series| series.count);
        Self {
            kind: text(&event.type_),
            reason: text(&event.reason),
            action: text(&event.action),
            note: text(&event.note),
            count: series.or(event.deprecated_count).unwrap_or(1),
        }
    }
}

/// All Events about an object that are there now, in a stable order.
pub async fn about<K: Resource>(client: &Client, object: &K) -> Result<Vec<Said>> {
    let (events, uid) = of(client, object)?;
    let params = ListParams::default().fields(&format!("regarding.uid={uid}"));
    let mut said: Vec<Said> = events.list(&params).await?.iter().map(Said::from).collect();
    said.sort();
    Ok(said)
}

/// Waits for an Event about an object that is as wanted, and returns it.
pub async fn until<K: Resource>(
    client: &Client,
    object: &K,
    deadline: Duration,
    wanted: impl Fn(&Said) -> bool,
) -> Result<Said> {
    let (events, uid) = of(client, object)?;
    let matching = |event: &&Event| {
        event
            .regarding
            .as_ref()
            .is_some_and(|about| about.uid.as_deref() == Some(uid))
            && wanted(&Said::from(*event))
    };
    let all = wait::until_listed(&events, "", deadline, |list: &[Event]| {
        list.iter().any(|one| matching(&one))
    });
    let all = all.await?;
    let found = all
        .iter()
        .find(matching)
        .context("the event was there a moment ago")?;
    Ok(Said::from(found))
}

/// Events live in the object's namespace, those about cluster-wide objects in `default`.
fn of<'a, K: Resource>(client: &Client, object: &'a K) -> Result<(Api<Event>, &'a str)> {
    let meta = object.meta();
    let uid = meta
        .uid
        .as_deref()
        .context("the object has no uid: read it back from the cluster")?;
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    Ok((Api::namespaced(client.clone(), namespace), uid))
}
