//! Kubernetes Events about an object, the latest first.

use http::StatusCode;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::api::kind::Kind;
use crate::serve::answer::{self, Answer};
use crate::serve::fault::Fault;
use crate::serve::service::Call;
use crate::serve::state::State;

/// Entries if nobody says.
const LIMIT: u32 = 25;

/// Events that are read at a time.
const PAGE: u32 = 500;

/// Pages that are read at most. They come in no order, so the latest are only known once all were seen.
const PAGES: usize = 40;

/// Events about an object.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EventList")]
pub(in crate::serve) struct List {
    /// The latest first.
    items: Vec<Said>,
    /// True if there are more Events than are looked at, so that later ones may be missing here.
    partial: Option<bool>,
}

/// One Event.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Event")]
pub(in crate::serve) struct Said {
    name: String,
    namespace: String,
    /// Normal or Warning.
    #[serde(rename = "type")]
    sort: Option<String>,
    reason: Option<String>,
    action: Option<String>,
    /// How often it happened.
    count: i32,
    message: Option<String>,
    first_timestamp: Option<String>,
    last_timestamp: Option<String>,
    event_time: Option<String>,
    involved_object: Involved,
}

/// What an Event is about.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::serve) struct Involved {
    api_version: Option<String>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

/// Events about the run that a call is about.
pub(in crate::serve) async fn of_run(state: &State, call: &Call) -> Result<Answer, Fault> {
    let about = About {
        kind: Some(Kind::AgentRun.as_str()),
        name: Some(call.name()),
        ..About::default()
    };
    list(state, call, about).await
}

/// Events about whatever a call is about.
pub(in crate::serve) async fn of_any(state: &State, call: &Call) -> Result<Answer, Fault> {
    let about = About {
        kind: call.route.text("kind"),
        name: call.route.text("name"),
        uid: call.route.text("uid"),
        sort: call.route.text("type"),
        reason: call.route.text("reason"),
    };
    list(state, call, about).await
}

#[derive(Default)]
struct About<'a> {
    kind: Option<&'a str>,
    name: Option<&'a str>,
    uid: Option<&'a str>,
    sort: Option<&'a str>,
    reason: Option<&'a str>,
}

impl About<'_> {
    /// As the API server is asked. A value cannot break out of its place.
    fn selector(&self) -> Result<String, Fault> {
        let fields = [
            ("involvedObject.kind", self.kind),
            ("involvedObject.name", self.name),
            ("involvedObject.uid", self.uid),
            ("type", self.sort),
            ("reason", self.reason),
        ];
        let given = fields
            .into_iter()
            .filter_map(|(field, value)| Some((field, value?)));
        let is_odd = |value: &str| value.contains([',', '=', '!', '\\']);
        let mut parts = Vec::new();
        for (field, value) in given {
            if is_odd(value) {
                return Err(Fault::bad_request(
                    "kind, name, uid, type and reason must be such as Events have",
                ));
            }
            parts.push(format!("{field}={value}"));
        }
        Ok(parts.join(","))
    }
}

async fn list(state: &State, call: &Call, about: About<'_>) -> Result<Answer, Fault> {
    let events: Api<Event> = Api::namespaced(state.client.clone(), call.namespace());
    let limit = call.route.number("limit").unwrap_or(LIMIT);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut asked = ListParams::default().fields(&about.selector()?).limit(PAGE);
    let mut latest = Vec::new();
    for _ in 0..PAGES {
        let page = events.list(&asked).await?;
        keep_latest(&mut latest, page.items, limit);
        asked.continue_token = page.metadata.continue_.filter(|next| !next.is_empty());
        if asked.continue_token.is_none() {
            break;
        }
    }
    let list = List {
        items: latest.into_iter().map(said).collect(),
        partial: asked.continue_token.map(|_| true),
    };
    Ok(answer::json(StatusCode::OK, &list))
}

/// Adds a page, and forgets at once what cannot be among the latest any more.
fn keep_latest(latest: &mut Vec<Event>, page: Vec<Event>, limit: usize) {
    latest.extend(page);
    latest.sort_by_key(|event| std::cmp::Reverse(last(event)));
    latest.truncate(limit);
}

/// When it last happened.
fn last(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let series = series.and_then(|series| series.last_observed_time.as_ref());
    let times = [
        series.map(|time| time.0),
        event.last_timestamp.as_ref().map(|time| time.0),
        event.event_time.as_ref().map(|time| time.0),
        event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0),
    ];
    times.into_iter().flatten().max()
}

fn said(event: Event) -> Said {
    let counted = event.series.as_ref().and_then(|series| series.count);
    let about = event.involved_object.clone();
    Said {
        name: event.name_any(),
        namespace: event.namespace().unwrap_or_default(),
        count: counted.or(event.count).unwrap_or(1),
        last_timestamp: last(&event).map(|time| time.to_string()),
        first_timestamp: event
            .first_timestamp
            .map(|time| time.0)
            .or(event.event_time.as_ref().map(|time| time.0))
            .map(|time| time.to_string()),
        event_time: event.event_time.map(|time| time.0.to_string()),
        sort: event.type_,
        reason: event.reason,
        action: event.action,
        message: event.message,
        involved_object: Involved {
            api_version: about.api_version,
            kind: about.kind,
            namespace: about.namespace,
            name: about.name,
            uid: about.uid,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_ask_for_more_than_it_should() {
        let about = |name| About {
            kind: Some("AgentRun"),
            name,
            ..About::default()
        };
        assert_eq!(
            about(Some("a")).selector().unwrap(),
            "involvedObject.kind=AgentRun,involvedObject.name=a"
        );
        let refused = About {
            sort: Some("Warning"),
            reason: Some("InvalidSpec"),
            ..About::default()
        };
        assert_eq!(
            refused.selector().unwrap(),
            "type=Warning,reason=InvalidSpec"
        );
        for odd in ["a,involvedObject.kind=Pod", "a=b", "!a"] {
            assert!(about(Some(odd)).selector().is_err(), "{odd}");
            let reason = About {
                reason: Some(odd),
                ..About::default()
            };
            assert!(reason.selector().is_err(), "{odd}");
        }
    }
}
