//! Events as the API server stores them: names, bodies, and what can be read back from them.
//!
//! Two forms of the same thing: `events.k8s.io/v1`, and core `v1` where that is absent or forbidden. Pure; `store` sends
//! them.

#[cfg(test)]
mod tests;

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource};
use k8s_openapi::api::events::v1::{Event as ModernEvent, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use super::occurrence::Regarding;
use super::reason::{Action, Reason};

/// The API server refuses longer names.
const NAME_LIMIT: usize = 253;
/// Hexadecimal digits of the hash at the end of a name.
const HASH_LENGTH: usize = 16;
/// An Event that comes again within this time gets the same name, so that a restarted program, or a second one, adds to
/// it. As long as the API server keeps Events by default.
const NAME_WINDOW_SECONDS: i64 = 3600;
/// The API server refuses longer instances.
const INSTANCE_LIMIT: usize = 128;

/// Who emits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    pub(super) controller: &'static str,
    pub(super) instance: String,
}

impl Reporter {
    /// `controller` is one of [`crate::api::contract::reporter`]; `instance` is the name of the pod, or where there is none
    /// of the host.
    pub fn new(controller: &'static str, instance: &str) -> Self {
        let mut shown: String = instance.chars().filter(char::is_ascii_graphic).collect();
        shown.truncate(INSTANCE_LIMIT);
        if shown.is_empty() {
            shown.push_str("unknown");
        }
        Self {
            controller,
            instance: shown,
        }
    }
}

/// An Event before it is stored: its words are fit to leave the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) regarding: Regarding,
    pub(super) related: Option<Regarding>,
    pub(super) reason: Reason,
    pub(super) note: String,
    /// With a grain of a microsecond, as it is stored.
    pub(super) seen: Timestamp,
}

/// What is known of a stored Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) resource_version: Option<String>,
}

/// How often something was seen, and when last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) count: u32,
    pub(super) last_seen: Timestamp,
}

impl Draft {
    /// The same for the same thing, whichever program says it and how often, within an hour.
    pub(super) fn name(&self) -> String {
        let mut hash = Sha1::new();
        let window = self.seen.as_second().div_euclid(NAME_WINDOW_SECONDS);
        let mut add = |part: &str| {
            hash.update(part);
            hash.update([0]);
        };
        for object in [Some(&self.regarding), self.related.as_ref()]
            .into_iter()
            .flatten()
        {
            let generation = object.generation.unwrap_or_default().to_string();
            add(&object.kind);
            add(object.namespace.as_deref().unwrap_or_default());
            add(&object.name);
            add(object.uid.as_deref().unwrap_or_default());
            add(&generation);
        }
        add(self.reason.as_str());
        add(&window.to_string());
        let hash: String = hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let prefix = subdomain(&self.regarding.name, NAME_LIMIT - HASH_LENGTH - 1);
        format!("{prefix}.{}", &hash[..HASH_LENGTH])
    }

    /// Whether it tells of something that happens once: one Job goes missing once, however many notice it.
    pub(super) fn is_single(&self) -> bool {
        let has_uid = |object: &Regarding| object.uid.is_some();
        self.reason.action() == Action::KeepOutcome && self.related.as_ref().is_some_and(has_uid)
    }

    fn metadata(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name()),
            namespace: Some(self.regarding.event_namespace().to_owned()),
            ..ObjectMeta::default()
        }
    }
}

/// As much of a name as may begin a DNS subdomain. A refused object may have any name.
fn subdomain(name: &str, limit: usize) -> String {
    let allowed = |c: char| match c {
        'a'..='z' | '0'..='9' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '-',
    };
    let labels = name.split('.').map(|label| {
        let label: String = label.chars().map(allowed).collect();
        label.trim_matches('-').to_owned()
    });
    let mut fitting = labels
        .filter(|label| !label.is_empty())
        .collect::<Vec<_>>()
        .join(".");
    fitting.truncate(limit);
    match fitting.trim_end_matches(['-', '.']) {
        "" => "unnamed".to_owned(),
        fitting => fitting.to_owned(),
    }
}

/// One of the two forms.
pub(super) trait Form:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
{
    fn new(draft: &Draft, reporter: &Reporter, tally: Tally) -> Self;

    /// The only change that the API server allows: how often and when last.
    fn recount(tally: Tally) -> Value;

    fn count(&self) -> u32;

    /// Whether this is the draft itself, stored by an earlier try whose answer never came.
    fn is(&self, draft: &Draft, reporter: &Reporter) -> bool;
}

impl Form for ModernEvent {
    fn new(draft: &Draft, reporter: &Reporter, tally: Tally) -> Self {
        Self {
            action: Some(draft.reason.action().as_str().to_owned()),
            event_time: Some(MicroTime(draft.seen)),
            metadata: draft.metadata(),
            note: Some(draft.note.clone()),
            reason: Some(draft.reason.as_str().to_owned()),
            regarding: Some(draft.regarding.reference()),
            related: draft.related.as_ref().map(Regarding::reference),
            reporting_controller: Some(reporter.controller.to_owned()),
            reporting_instance: Some(reporter.instance.clone()),
            series: (tally.count > 1).then(|| EventSeries {
                count: signed(tally.count),
                last_observed_time: MicroTime(tally.last_seen),
            }),
            type_: Some(draft.reason.severity().as_str().to_owned()),
            ..Self::default()
        }
    }

    fn recount(tally: Tally) -> Value {
        json!({ "series": { "count": signed(tally.count), "lastObservedTime": MicroTime(tally.last_seen) } })
    }

    fn count(&self) -> u32 {
        let series = self.series.as_ref().map_or(0, |series| series.count);
        at_least_once(series.max(self.deprecated_count.unwrap_or(0)))
    }

    fn is(&self, draft: &Draft, reporter: &Reporter) -> bool {
        let same_time = self.event_time == Some(MicroTime(draft.seen));
        same_time && self.reporting_instance.as_ref() == Some(&reporter.instance)
    }
}

/// In the old style, with the times that old tools sort by. The API server checks none of its limits then, so they must
/// hold beforehand.
impl Form for CoreEvent {
    fn new(draft: &Draft, reporter: &Reporter, tally: Tally) -> Self {
        Self {
            action: Some(draft.reason.action().as_str().to_owned()),
            count: Some(signed(tally.count)),
            first_timestamp: Some(Time(draft.seen)),
            involved_object: draft.regarding.reference(),
            last_timestamp: Some(Time(tally.last_seen)),
            message: Some(draft.note.clone()),
            metadata: draft.metadata(),
            reason: Some(draft.reason.as_str().to_owned()),
            related: draft.related.as_ref().map(Regarding::reference),
            reporting_component: Some(reporter.controller.to_owned()),
            reporting_instance: Some(reporter.instance.clone()),
            source: Some(EventSource {
                component: Some(reporter.controller.to_owned()),
                host: None,
            }),
            type_: Some(draft.reason.severity().as_str().to_owned()),
            ..Self::default()
        }
    }

    fn recount(tally: Tally) -> Value {
        json!({ "count": signed(tally.count), "lastTimestamp": Time(tally.last_seen) })
    }

    fn count(&self) -> u32 {
        let series = self.series.as_ref().and_then(|series| series.count);
        at_least_once(series.unwrap_or(0).max(self.count.unwrap_or(0)))
    }

    fn is(&self, draft: &Draft, reporter: &Reporter) -> bool {
        let first = self.first_timestamp.as_ref().map(|time| time.0.as_second());
        let same_time = first == Some(draft.seen.as_second());
        same_time && self.reporting_instance.as_ref() == Some(&reporter.instance)
    }
}

impl Stored {
    pub(super) fn of<E: Form>(event: &E) -> Self {
        let meta = event.meta();
        Self {
            name: meta.name.clone().unwrap_or_default(),
            count: event.count(),
            resource_version: meta.resource_version.clone(),
        }
    }
}

fn signed(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn at_least_once(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(1).max(1)
}
