//! A call as the request that it would be over HTTP. Pure.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use prost_reflect::{DynamicMessage, Value as Field};
use serde_json::Value;
use tonic::{Request, Status};

use super::schema::{field, snake};
use crate::serve::operation::{Operation, Sort, Verb};
use crate::serve::route::route;
use crate::serve::service::{Asked, Given};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The request that a call stands for.
pub(super) fn asked(
    operation: &'static Operation,
    request: Request<DynamicMessage>,
) -> Result<Asked, Status> {
    let (metadata, _, message) = request.into_parts();
    let mut headers = HeaderMap::new();
    if let Some(token) = metadata.get("authorization") {
        let token = HeaderValue::from_bytes(token.as_encoded_bytes());
        headers.extend(token.ok().map(|token| (header::AUTHORIZATION, token)));
    }
    for (name, own) in [(IDEMPOTENCY_KEY, field::KEY), (LAST_EVENT_ID, field::LAST)] {
        if let Some(text) = text(&message, own) {
            let value = HeaderValue::from_str(&text);
            let value = value.map_err(|_| {
                Status::invalid_argument(format!("{own} has characters that cannot be sent"))
            })?;
            headers.insert(name, value);
        }
    }
    let method = match operation.method {
        Verb::Get => Method::GET,
        Verb::Post => Method::POST,
    };
    Ok(Asked {
        found: route(
            &method,
            &path(operation, &message),
            &query(operation, &message),
        ),
        headers,
        // Each call is a stream with a window of its own, so a reader who stalls hides behind nothing.
        version: Version::HTTP_11,
        body: Given::Whole(body(&message)?),
    })
}

fn path(operation: &Operation, message: &DynamicMessage) -> String {
    let parts = operation.path.split('/').map(|part| {
        let name = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'));
        match name {
            Some(name) => encoded(&text(message, name).unwrap_or_default()),
            None => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// What was left out of a message is left out of the query.
fn query(operation: &Operation, message: &DynamicMessage) -> String {
    let pairs = operation.query.iter().filter_map(|known| {
        let name = match known.sort {
            Sort::Namespace { .. } => field::NAMESPACE.to_owned(),
            Sort::Text | Sort::Number(_) | Sort::Switch | Sort::Time(_) => snake(known.name),
        };
        let value = text(message, &name)?;
        Some(format!("{}={}", known.name, encoded(&value)))
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// A field that was set, as text.
fn text(message: &DynamicMessage, name: &str) -> Option<String> {
    if !message.has_field_by_name(name) {
        return None;
    }
    let value = message.get_field_by_name(name)?;
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    if let Some(number) = value.as_u32() {
        return Some(number.to_string());
    }
    value.as_bool().map(|switch| switch.to_string())
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn body(message: &DynamicMessage) -> Result<Bytes, Status> {
    let given = message.get_field_by_name(field::BODY);
    let Some(Field::Message(given)) = given.as_deref() else {
        return Ok(Bytes::new());
    };
    let unreadable = |_| Status::invalid_argument("the body is no JSON object");
    let mut value = serde_json::to_value(given).map_err(unreadable)?;
    whole_numbers(&mut value);
    Ok(Bytes::from(value.to_string()))
}

/// Objects of JSON have one sort of number over gRPC; those that are whole are written as such.
fn whole_numbers(value: &mut Value) {
    /// Beyond it a double does not have every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => {
            let given = number.as_f64().unwrap_or_default();
            if given.fract() == 0.0 && given.abs() <= EXACT {
                *number = (given as i64).into(); // whole and small enough to be one
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::Schema;
    use super::*;
    use crate::serve::operation::Id;
    use serde_json::json;

    fn asked_for(method: &str, fields: Value) -> Asked {
        let schema = Schema::new().unwrap();
        let operation = schema.operation(method).unwrap();
        let descriptor = schema.request(operation).unwrap();
        let message = DynamicMessage::deserialize(descriptor, fields).unwrap();
        asked(operation, Request::new(message)).unwrap()
    }

    #[test]
    fn a_call_is_the_request_that_it_would_be() {
        let run = asked_for("GetRun", json!({"namespace": "a", "name": "b.c"}));
        let route = run.found.unwrap();
        let found = (
            route.operation.id,
            route.namespace.as_deref(),
            route.name.as_deref(),
        );
        assert_eq!(found, (Id::GetRun, Some("a"), Some("b.c")));
        let list = asked_for(
            "ListRuns",
            json!({"namespace": "*", "label_selector": "a=b,c", "limit": 5}),
        );
        let route = list.found.unwrap();
        assert_eq!(route.text("namespace"), Some("*"));
        assert_eq!(route.text("labelSelector"), Some("a=b,c"));
        assert_eq!(route.number("limit"), Some(5));
        let logs = asked_for(
            "RunLogs",
            json!({"namespace": "a", "name": "b", "follow": false}),
        );
        assert_eq!(logs.found.unwrap().switch("follow"), Some(false));
        let climbing = asked_for("GetRun", json!({"namespace": "a", "name": "../b"}));
        assert!(climbing.found.is_err());
        let nothing = asked_for("GetRun", json!({}));
        assert!(nothing.found.is_err());
    }

    #[test]
    fn a_body_keeps_its_whole_numbers() {
        let body = json!({"spec": {"a": 3, "b": [1.5, -2], "c": "x", "d": null, "e": true}});
        let submit = asked_for("SubmitRun", json!({"body": body, "idempotency_key": "k"}));
        assert_eq!(submit.headers.get("idempotency-key").unwrap(), "k");
        let Given::Whole(bytes) = submit.body else {
            panic!("no body");
        };
        let read: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read, body);
    }
}
