//! Runs, page by page. Labels and names are sought by the API server; fields that it does not know are looked at here.

use http::StatusCode;
use kube::api::{DynamicObject, ListParams};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

use super::view::Summary;
use crate::api::kind::Kind;
use crate::api::object::cause::listed;
use crate::serve::answer::{self, Answer};
use crate::serve::fault::Fault;
use crate::serve::route::Route;
use crate::serve::service::Call;
use crate::serve::state::State;

/// Entries of a page if nobody says.
pub(in crate::serve) const PAGE: u32 = 100;

/// Pages that are read for one of ours, where few of their runs are sought.
const PAGES: usize = 20;

/// A page of runs.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RunPage")]
pub(in crate::serve) struct Page {
    /// The runs. A page can have fewer than its limit, and still not be the last.
    items: Vec<Summary>,
    /// Where the next page begins; none after the last.
    #[serde(rename = "continue")]
    next: Option<String>,
    /// How many more there are, where the API server says so.
    remaining: Option<i64>,
}

/// Runs that are as asked for.
pub(in crate::serve) async fn list(state: &State, call: &Call) -> Result<Answer, Fault> {
    let fields = Fields::read(call.route.text("fieldSelector").unwrap_or_default())?;
    let runs = state.api(Kind::AgentRun, call.namespace.as_deref());
    let limit = call.route.number("limit").unwrap_or(PAGE);
    let mut asked = asked(&call.route, limit);
    asked.field_selector = fields.known();
    let mut page = Page {
        items: Vec::new(),
        next: None,
        remaining: None,
    };
    for _ in 0..PAGES {
        let left = limit.saturating_sub(u32::try_from(page.items.len()).unwrap_or(limit));
        asked.limit = Some(left);
        let found = runs.list(&asked).await?;
        let fitting = found.items.iter().filter(|run| fields.fit(run));
        page.items.extend(fitting.map(Summary::of));
        page.next = found.metadata.continue_.filter(|next| !next.is_empty());
        page.remaining = found.metadata.remaining_item_count;
        let is_full = page.items.len() >= usize::try_from(limit).unwrap_or(usize::MAX);
        if is_full || page.next.is_none() {
            break;
        }
        asked.continue_token.clone_from(&page.next);
    }
    Ok(answer::json(StatusCode::OK, &page))
}

/// What the API server is asked for.
pub(in crate::serve) fn asked(route: &Route, limit: u32) -> ListParams {
    ListParams {
        label_selector: route.text("labelSelector").map(str::to_owned),
        continue_token: route.text("continue").map(str::to_owned),
        limit: Some(limit),
        ..ListParams::default()
    }
}

/// Fields that the API server knows.
const KNOWN: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// Fields that are looked at here, and where they stand.
const OWN: [(&str, &str); 3] = [
    ("status.phase", "/status/phase"),
    ("spec.agentRef.name", "/spec/agentRef/name"),
    ("spec.runtime.type", "/spec/runtime/type"),
];

/// What is asked of fields.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fields {
    /// As the API server is asked.
    known: Vec<String>,
    /// Where, whether it should be so, and what.
    own: Vec<(&'static str, bool, String)>,
}

impl Fields {
    fn read(text: &str) -> Result<Self, Fault> {
        let mut fields = Self::default();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (name, wanted, value) = split(part).ok_or_else(|| {
                Fault::bad_request("the field selector cannot be read")
                    .next("write it as field=value or field!=value, separated by commas")
            })?;
            if KNOWN.contains(&name) {
                fields.known.push(part.to_owned());
            } else if let Some((_, place)) = OWN.iter().find(|(own, _)| *own == name) {
                fields.own.push((place, wanted, value.to_owned()));
            } else {
                let names: Vec<_> = KNOWN.into_iter().chain(OWN.map(|(own, _)| own)).collect();
                return Err(Fault::bad_request("runs cannot be sought by this field")
                    .next(format!("use {}", listed(&names))));
            }
        }
        Ok(fields)
    }

    fn known(&self) -> Option<String> {
        (!self.known.is_empty()).then(|| self.known.join(","))
    }

    fn fit(&self, run: &DynamicObject) -> bool {
        self.own.iter().all(|(place, wanted, value)| {
            let found = run.data.pointer(place).and_then(Value::as_str);
            // A run without a phase is pending.
            let found = found
                .filter(|text| !text.is_empty())
                .unwrap_or(match *place {
                    "/status/phase" => "Pending",
                    _ => "",
                });
            (found == value) == *wanted
        })
    }
}

/// Name, whether it should be so, and value.
fn split(part: &str) -> Option<(&str, bool, &str)> {
    let found = part
        .split_once("!=")
        .map(|(name, value)| (name, false, value))
        .or_else(|| {
            part.split_once("==")
                .map(|(name, value)| (name, true, value))
        })
        .or_else(|| {
            part.split_once('=')
                .map(|(name, value)| (name, true, value))
        })?;
    let (name, wanted, value) = found;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty()).then_some((name, wanted, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_read_and_fit() {
        let fields =
            Fields::read("metadata.name=a, status.phase!=Running,spec.agentRef.name==coder");
        let fields = fields.unwrap();
        assert_eq!(fields.known().as_deref(), Some("metadata.name=a"));
        let fits = |agent: &str, phase: Value| {
            let run = json!({"metadata": {}, "spec": {"agentRef": {"name": agent}}, "status": {"phase": phase}});
            fields.fit(&serde_json::from_value(run).unwrap())
        };
        assert!(fits("coder", json!("Failed")) && fits("coder", Value::Null));
        assert!(!fits("coder", json!("Running")) && !fits("other", json!("Failed")));
        let pending = Fields::read("status.phase=Pending").unwrap();
        assert!(pending.fit(&serde_json::from_value(json!({"metadata": {}})).unwrap()));
        for wrong in ["x", "=a", "status.phaze=a", "spec.x=1"] {
            assert!(Fields::read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Fields::read(" , ").unwrap(), Fields::default());
    }
}
