//! The runtime of a run and its settings.

use serde_json::Value;

use crate::api::crd::schema::FreeObject;
use crate::api::kinds::agents::agent_run::{Runtime, RuntimeType};
use crate::api::object::cause::{Causes, Path, Reason};
use crate::api::object::conform::is_whole;
use crate::api::text::names::Form;
use crate::api::validate::shared::{check_name, check_not_negative, check_retries, check_url};

/// Settings of a pod by the type that each must have.
const OBJECTS: [&str; 3] = ["nodeSelector", "affinity", "podSecurityContext"];
const LISTS: [&str; 3] = [
    "tolerations",
    "topologySpreadConstraints",
    "imagePullSecrets",
];
const NAMES: [&str; 3] = ["serviceAccount", "priorityClassName", "schedulerName"];
const NUMBERS: [&str; 3] = [
    "ttlSecondsAfterFinished",
    "logRetentionSeconds",
    "backoffLimit",
];

/// The one place that says which runtimes can be used.
pub(in crate::api::validate) fn check_runtime(
    causes: &mut Causes,
    at: &Path<'_>,
    runtime: &Runtime,
) {
    let nothing = FreeObject::new();
    let config = runtime.config.as_ref().unwrap_or(&nothing);
    let config_at = at.field("config");
    match runtime.type_ {
        RuntimeType::Temporal => causes.add(
            &at.field("type"),
            Reason::UnsupportedRuntime,
            "runs of type \"temporal\" cannot be carried out yet; use \"job\", \"workflow\" or \"custom\"",
        ),
        RuntimeType::Custom => check_endpoint(causes, &config_at.field("endpoint"), config),
        RuntimeType::Job | RuntimeType::Workflow => check_pod_settings(causes, &config_at, config),
    }
}

fn check_endpoint(causes: &mut Causes, at: &Path<'_>, config: &FreeObject) {
    match config
        .get("endpoint")
        .and_then(Value::as_str)
        .map(str::trim)
    {
        None | Some("") => {
            let message = "a run of type \"custom\" needs an endpoint; give the address that takes the run over";
            causes.add(at, Reason::MissingEndpoint, message);
        }
        Some(endpoint) => check_url(causes, at, endpoint, &["https", "http"]),
    }
}

/// A setting of the wrong type would be ignored, which nobody notices until it matters.
fn check_pod_settings(causes: &mut Causes, at: &Path<'_>, config: &FreeObject) {
    for (name, value) in config.iter().filter(|(_, value)| !value.is_null()) {
        let here = at.field(name);
        let name = name.as_str();
        let wanted = if OBJECTS.contains(&name) && !value.is_object() {
            "an object"
        } else if LISTS.contains(&name) && !value.is_array() {
            "a list"
        } else if NAMES.contains(&name) && !value.is_string() {
            "a text"
        } else if NUMBERS.contains(&name) && !value.as_number().is_some_and(is_whole) {
            "a whole number, without quotes"
        } else {
            check_value(causes, &here, name, value);
            continue;
        };
        causes.add(
            &here,
            Reason::InvalidRuntimeConfig,
            format!("has the wrong type; write {wanted}"),
        );
    }
}

fn check_value(causes: &mut Causes, at: &Path<'_>, name: &str, value: &Value) {
    if name == "backoffLimit" {
        check_retries(causes, at, whole(value));
    } else if NUMBERS.contains(&name) {
        check_not_negative(causes, at, whole(value));
    } else if let Some(text) = value.as_str().filter(|_| NAMES.contains(&name)) {
        check_name(causes, at, text, Form::DnsSubdomain);
    } else if name == "imagePullSecrets" {
        for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
            check_pull_secret(causes, &at.index(index), entry);
        }
    }
}

/// A number that is known to be whole, also if it is written with a fraction of nothing.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| Some(value.as_f64()? as i64))
}

fn check_pull_secret(causes: &mut Causes, at: &Path<'_>, entry: &Value) {
    if let Some(name) = entry.as_str() {
        check_name(causes, at, name, Form::DnsSubdomain);
    } else if let Some(name) = entry.get("name").and_then(Value::as_str) {
        check_name(causes, &at.field("name"), name, Form::DnsSubdomain);
    } else {
        let message = "has the wrong type; write the name of a Secret, or an object with a name";
        causes.add(at, Reason::InvalidRuntimeConfig, message);
    }
}
