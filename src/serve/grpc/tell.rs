//! What was answered, as messages and codes of gRPC.

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream, StreamExt};
use http::StatusCode;
use http_body_util::BodyExt;
use prost_reflect::{DynamicMessage, MessageDescriptor, Value as Field};
use serde_json::{Map, Value, json};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Response, Status};

use super::schema::{Schema, field};
use crate::kit::http::read_body;
use crate::serve::answer::{Answer, Body};
use crate::serve::fault::{Fault, Reason};

/// Longest answer, in bytes: a page of runs.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// Longest event, in bytes: an object of the cluster, and what is around it.
const LONGEST: usize = 4 * 1024 * 1024;

type Messages = BoxStream<'static, Result<DynamicMessage, Status>>;

/// Why something was not done. The word for programs and the whole answer of HTTP go beside it.
pub(super) fn refused(fault: Fault) -> Status {
    let code = code(fault.status, fault.reason());
    let reason = fault.reason().as_str();
    let (message, problem) = fault.told();
    let mut metadata = MetadataMap::new();
    if let Ok(reason) = MetadataValue::try_from(reason) {
        metadata.insert("agents-reason", reason);
    }
    let problem = MetadataValue::from_bytes(problem.as_bytes());
    metadata.insert_bin("agents-problem-bin", problem);
    Status::with_metadata(code, message, metadata)
}

fn code(status: StatusCode, reason: Reason) -> Code {
    match status.as_u16() {
        400 | 413 | 415 | 422 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::NotFound,
        405 => Code::Unimplemented,
        409 if reason == Reason::AlreadyExists => Code::AlreadyExists,
        409 if reason == Reason::Conflict => Code::Aborted,
        409 | 410 => Code::FailedPrecondition,
        429 => Code::ResourceExhausted,
        502 | 503 => Code::Unavailable,
        504 => Code::DeadlineExceeded,
        _ => Code::Internal,
    }
}

/// An answer that is there as a whole.
pub(super) async fn whole(
    schema: &Schema,
    answer: Answer,
) -> Result<Response<DynamicMessage>, Status> {
    let body = read_body(answer.into_body(), LONGEST_ANSWER).await;
    let body = body.map_err(|_| broken())?;
    let value: Value = serde_json::from_slice(&body).map_err(|_| broken())?;
    let message = schema.json().and_then(|json| object(&json, value));
    message.map(Response::new).ok_or_else(broken)
}

/// A log, piece by piece.
pub(super) fn pieces(schema: &Schema, answer: Answer) -> Messages {
    let Some(piece) = schema.piece() else {
        return stream::iter([Err(broken())]).boxed();
    };
    let told = chunks(answer.into_body()).map(move |chunk| {
        let mut message = DynamicMessage::new(piece.clone());
        message.set_field_by_name(field::DATA, Field::Bytes(chunk?));
        Ok(message)
    });
    told.boxed()
}

/// A stream of events, event by event.
pub(super) fn events(schema: &Schema, answer: Answer) -> Messages {
    let (Some(event), Some(json)) = (schema.event(), schema.json()) else {
        return stream::iter([Err(broken())]).boxed();
    };
    let mut rest = BytesMut::new();
    let told = chunks(answer.into_body()).flat_map(move |chunk| {
        let read = chunk.and_then(|chunk| {
            rest.extend_from_slice(&chunk);
            match rest.len() > LONGEST {
                true => Err(broken()),
                false => Ok(frames(&mut rest)),
            }
        });
        let (event, json) = (event.clone(), json.clone());
        let messages = match read {
            Ok(frames) => {
                let told = frames
                    .into_iter()
                    .filter_map(|frame| told(&event, &json, &frame));
                told.map(Ok).collect()
            }
            Err(status) => vec![Err(status)],
        };
        stream::iter(messages)
    });
    told.boxed()
}

fn chunks(body: Body) -> impl futures::Stream<Item = Result<Bytes, Status>> + Send {
    let chunks = body.into_data_stream();
    chunks.map(|chunk| chunk.map_err(|_| Status::unavailable("the stream broke off")))
}

/// All frames that are complete; what is left waits for more.
fn frames(rest: &mut BytesMut) -> Vec<String> {
    let mut frames = Vec::new();
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
        let frame = rest.split_to(end + 2);
        frames.push(String::from_utf8_lossy(&frame).into_owned());
    }
    frames
}

/// The event of a frame; none if it is a sign of life.
fn told(
    event: &MessageDescriptor,
    json: &MessageDescriptor,
    frame: &str,
) -> Option<DynamicMessage> {
    let of = |name: &str| {
        let values = frame.lines().filter_map(|line| line.strip_prefix(name));
        let values: Vec<_> = values
            .map(|value| value.strip_prefix(' ').unwrap_or(value))
            .collect();
        (!values.is_empty()).then(|| values.join("\n"))
    };
    let data: Value = serde_json::from_str(&of("data:")?).ok()?;
    let mut message = DynamicMessage::new(event.clone());
    for (name, value) in [(field::ID, of("id:")), (field::EVENT, of("event:"))] {
        let value = value.unwrap_or_default();
        message.set_field_by_name(name, Field::String(value));
    }
    let data = Field::Message(object(json, data)?);
    message.set_field_by_name(field::DATA, data);
    Some(message)
}

/// A value as an object of JSON; what is none is in one.
fn object(json: &MessageDescriptor, value: Value) -> Option<DynamicMessage> {
    let fields = match value {
        Value::Object(fields) => fields,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => Map::from_iter([("value".to_owned(), other)]),
    };
    DynamicMessage::deserialize(json.clone(), json!(fields)).ok()
}

fn broken() -> Status {
    Status::internal("the answer cannot be told over gRPC; ask over HTTP")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_in_any_pieces() {
        let schema = Schema::new().unwrap();
        let (event, json) = (schema.event().unwrap(), schema.json().unwrap());
        let mut rest = BytesMut::new();
        let mut seen = Vec::new();
        for piece in [
            ": connected\n\nid: 7\nev",
            "ent: queue\ndata: {\"a\":1}\n",
            "\n: \n\ndata: [1]\n\nda",
        ] {
            rest.extend_from_slice(piece.as_bytes());
            seen.extend(
                frames(&mut rest)
                    .iter()
                    .filter_map(|frame| told(&event, &json, frame)),
            );
        }
        let seen: Vec<_> = seen
            .iter()
            .map(|event| serde_json::to_value(event).unwrap())
            .collect();
        assert_eq!(
            seen,
            [
                json!({"id": "7", "event": "queue", "data": {"a": 1.0}}),
                json!({"data": {"value": [1.0]}}),
            ]
        );
        assert_eq!(&rest[..], b"da");
    }

    #[test]
    fn every_code_of_http_has_one_of_grpc() {
        for (status, reason, expected) in [
            (401, Reason::Unauthenticated, Code::Unauthenticated),
            (403, Reason::Forbidden, Code::PermissionDenied),
            (404, Reason::NotFound, Code::NotFound),
            (409, Reason::AlreadyExists, Code::AlreadyExists),
            (409, Reason::IdempotencyConflict, Code::FailedPrecondition),
            (422, Reason::Invalid, Code::InvalidArgument),
            (429, Reason::TooManyRequests, Code::ResourceExhausted),
            (503, Reason::ReviewsNotPermitted, Code::Unavailable),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(code(status, reason), expected, "{status}");
        }
    }
}
