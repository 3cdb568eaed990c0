//! Whether the program can be used, and whose token it is.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::Namespaces;
use crate::kit::readiness::Readiness;
use crate::serve::answer::{self, Answer};
use crate::serve::auth::Caller;

/// Whether the program can be used.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct Health {
    /// `ok` or `not ready`.
    status: &'static str,
    /// What it waits for.
    waiting: Vec<&'static str>,
}

/// Whose token it is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::serve) struct WhoAmI {
    /// As the cluster calls them.
    user: String,
    /// Where requests are that name no namespace.
    default_namespace: String,
    /// Namespaces that are served; a star for all.
    namespaces: Vec<String>,
}

pub(in crate::serve) fn live() -> Answer {
    let health = Health {
        status: "ok",
        waiting: Vec::new(),
    };
    answer::json(StatusCode::OK, &health)
}

/// Names what is missing, and nothing about it: anyone may ask.
pub(in crate::serve) fn ready(readiness: &Readiness) -> Answer {
    let gates = readiness.gates();
    let closed = gates.iter().filter(|gate| gate.closed.is_some());
    let waiting: Vec<_> = closed.map(|gate| gate.name).collect();
    let (status, code) = match waiting.is_empty() {
        true => ("ok", StatusCode::OK),
        false => ("not ready", StatusCode::SERVICE_UNAVAILABLE),
    };
    answer::json(code, &Health { status, waiting })
}

pub(in crate::serve) fn who_am_i(
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
