//! Whether the program can be used, and whose token it is.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{self, Answer};
use super::auth::Caller;
use crate::cluster::Namespaces;
use crate::kit::readiness::Readiness;

/// Whether the program can be used.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    /// `ok` or `not ready`.
    status: &'static str,
    /// What it waits for.
    waiting: Vec<&'static str>,
}

/// Whose token it is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhoAmI {
    /// As the cluster calls them.
    user: String,
    /// Where requests are that name no namespace.
    default_namespace: String,
    /// Namespaces that are served; a star for all.
    namespaces: Vec<String>,
}

pub(super) fn live() -> Answer {
    let health = Health {
        status: "ok",
        waiting: Vec::new(),
    };
    answer::json(StatusCode::OK, &health)
}

/// Names what is missing, and nothing about it: anyone may ask.
pub(super) fn ready(readiness: &Readiness) -> Answer {
    let gates = readiness.gates();
    let closed = gates.iter().filter(|gate| gate.closed.is_some());
    let waiting: Vec<_> = closed.map(|gate| gate.name).collect();
    let (status, code) = match waiting.is_empty() {
        true => ("ok", StatusCode::OK),
        false => ("not ready", StatusCode::SERVICE_UNAVAILABLE),
    };
    answer::json(code, &Health { status, waiting })
}

pub(super) fn who_am_i(
    caller: &Caller,
    default_namespace: &str,
    namespaces: &Namespaces,
) -> Answer {
    let namespaces = match namespaces {
        Namespaces::All => vec!["*".to_owned()],
        Namespaces::Some(names) => names.clone(),
    };
    let who = WhoAmI {
        user: caller.name.clone(),
        default_namespace: default_namespace.to_owned(),
        namespaces,
    };
    answer::json(StatusCode::OK, &who)
}
