//! gRPC by hand: one message in, one out, and how it went in the trailers.
//!
//! By hand, because the library answers a message that is too long with a code that has clients send it for ever, and
//! copies every message once more.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};

use super::{
    answer::Denied,
    body::Answer,
    inflate::{Packing, unpack},
};

/// Before every message: whether it is packed, and its length.
pub(super) const HEAD: usize = 5;

/// The paths of the services, and what goes there.
pub(super) const METRICS: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
pub(super) const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
pub(super) const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const ENCODING: &str = "grpc-encoding";
const ACCEPTED: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Whether a request speaks gRPC.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The one message of a body.
pub fn message(body: Bytes, headers: &HeaderMap, most: usize) -> Result<Bytes, Denied> {
    let malformed = |why: &str| Denied::Malformed(why.to_owned());
    let Some((&[flag, a, b, c, d], _)) = body.split_first_chunk::<HEAD>() else {
        return Err(malformed("there is no message"));
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > most {
        return Err(Denied::TooLarge(most));
    }
    if body.len() != HEAD + length {
        return Err(malformed("the message has another length than it says"));
    }
    let message = body.slice(HEAD..);
    match flag {
        0 => Ok(message),
        1 => {
            let name = headers.get(ENCODING).and_then(|name| name.to_str().ok());
            unpack(message, Packing::named(name)?, most)
        }
        _ => Err(malformed("the flags of the message are unknown")),
    }
}

/// The answer to a request that was read.
pub(super) fn accepted(message: Bytes) -> Response<Answer> {
    let mut framed = BytesMut::with_capacity(HEAD + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put(message);
    let mut trailers = HeaderMap::new();
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    response(Answer::of(framed.freeze()).with_trailers(trailers))
}

/// The answer to one that was not.
pub(super) fn denied(denied: &Denied) -> Response<Answer> {
    let mut response = response(Answer::default());
    let headers = response.headers_mut();
    headers.insert(STATUS, HeaderValue::from(denied.code() as u16));
    let message = HeaderValue::from_str(&percent_encoded(&denied.message()));
    headers.insert(MESSAGE, message.unwrap_or(HeaderValue::from_static("")));
    response
}

fn response(answer: Answer) -> Response<Answer> {
    let mut response = Response::new(answer);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/grpc"),
    );
    headers.insert(
        ACCEPTED,
        HeaderValue::from_static("identity,gzip,deflate,zstd"),
    );
    response
}

/// As gRPC wants text in a header.
fn percent_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(byte.into()),
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::answer::Code;

    fn read(body: &[u8], most: usize) -> Result<Bytes, Denied> {
        message(Bytes::copy_from_slice(body), &HeaderMap::new(), most)
    }

    #[test]
    fn a_message_is_taken_out_of_its_frame() {
        assert_eq!(read(&[0, 0, 0, 0, 2, 7, 8], 2).unwrap(), [7, 8][..]);
        assert_eq!(read(&[0, 0, 0, 0, 0], 2).unwrap(), [][..]);
        for wrong in [
            &[0, 0, 0][..],
            &[0, 0, 0, 0, 2, 7],
            &[2, 0, 0, 0, 1, 7],
            &[0, 0, 0, 0, 1, 7, 8],
        ] {
            assert!(
                matches!(read(wrong, 9), Err(Denied::Malformed(_))),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn one_that_is_too_long_is_never_sent_again() {
        let too_long = read(&[0, 0, 0, 0, 3, 7, 8, 9], 2).unwrap_err();
        assert_eq!(
            (too_long.clone(), too_long.code()),
            (Denied::TooLarge(2), Code::ResourceExhausted)
        );
        let response = denied(&too_long);
        assert_eq!(response.headers()["grpc-status"], "8");
        assert_eq!(
            response.headers()["grpc-message"],
            "the request is larger than 2 bytes, as sent, unpacked or as protobuf"
        );
    }

    #[test]
    fn text_in_a_header_is_plain() {
        assert_eq!(percent_encoded("a ü%\n"), "a %C3%BC%25%0A");
    }
}
