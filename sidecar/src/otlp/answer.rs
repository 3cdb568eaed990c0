//! What a sender is told, in the encoding that it uses.

use bytes::Bytes;
use serde_json::json;

use super::write::Writer;
use crate::store::Tally;

/// How a request is encoded, and so its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// As OTLP is at home.
    Protobuf,
    /// For whoever has no protobuf.
    Json,
}

/// Why a whole request is refused. The status codes are those of OTLP: what may be sent again says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The bytes are not what they should be.
    Malformed(String),
    /// There are more bytes than allowed, packed, unpacked or turned from JSON into protobuf.
    TooLarge(usize),
    /// How they are packed is not known.
    Packing(String),
    /// Too much at once; the same later.
    Busy,
    /// There is no memory for it; the same later.
    Full,
    /// What came is not taken here, under which circumstances.
    Unimplemented(&'static str, &'static str),
}

/// Status codes of gRPC that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Bad bytes.
    InvalidArgument = 3,
    /// Too many bytes.
    ResourceExhausted = 8,
    /// Not taken here.
    Unimplemented = 12,
    /// Later.
    Unavailable = 14,
}

impl Denied {
    /// For gRPC, and within the answer over HTTP.
    pub fn code(&self) -> Code {
        match self {
            Self::Malformed(_) => Code::InvalidArgument,
            Self::TooLarge(_) => Code::ResourceExhausted,
            Self::Packing(_) | Self::Unimplemented(..) => Code::Unimplemented,
            Self::Busy | Self::Full => Code::Unavailable,
        }
    }

    /// For HTTP.
    pub fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::TooLarge(_) => 413,
            Self::Packing(_) => 415,
            Self::Busy | Self::Full => 429,
            Self::Unimplemented(..) => 501,
        }
    }

    /// Seconds after which the same may be tried again, if it may.
    pub fn later(&self) -> Option<u16> {
        match self {
            Self::Busy => Some(1),
            Self::Full => Some(10),
            Self::Malformed(_) | Self::TooLarge(_) | Self::Packing(_) | Self::Unimplemented(..) => {
                None
            }
        }
    }

    /// For people.
    pub fn message(&self) -> String {
        match self {
            Self::Malformed(why) => format!("the request cannot be read: {why}"),
            Self::TooLarge(most) => {
                format!("the request is larger than {most} bytes, as sent, unpacked or as protobuf")
            }
            Self::Packing(name) => {
                format!("content encoding {name:?} is not known; use gzip, deflate, zstd or none")
            }
            Self::Busy => "too much at once; send it again in a second".to_owned(),
            Self::Full => "memory is short; send it again later".to_owned(),
            Self::Unimplemented(what, when) => format!("{what} are not taken here {when}"),
        }
    }

    /// As a `google.rpc.Status`.
    pub fn body(&self, encoding: Encoding) -> Bytes {
        let (code, message) = (self.code() as u64, self.message());
        match encoding {
            Encoding::Protobuf => {
                let mut status = Writer::default();
                status.varint(1, code);
                status.bytes(2, message.as_bytes());
                status.into_bytes().into()
            }
            Encoding::Json => json!({"code": code, "message": message}).to_string().into(),
        }
    }
}

/// The answer to a request that was read: empty, unless points were refused.
pub fn accepted(tally: &Tally, encoding: Encoding) -> Bytes {
    let rejected = tally.rejected();
    match (rejected, encoding) {
        (0, Encoding::Protobuf) => Bytes::new(),
        (0, Encoding::Json) => Bytes::from_static(b"{}"),
        (_, Encoding::Protobuf) => {
            let mut answer = Writer::default();
            answer.message(1, |partial| {
                partial.varint(1, rejected);
                partial.bytes(2, tally.message().as_bytes());
            });
            answer.into_bytes().into()
        }
        (_, Encoding::Json) => {
            let partial = json!({
                "rejectedDataPoints": rejected.to_string(),
                "errorMessage": tally.message(),
            });
            json!({"partialSuccess": partial}).to_string().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Refusal;

    #[test]
    fn a_request_taken_whole_has_an_empty_answer() {
        let tally = Tally::default();
        assert_eq!(&accepted(&tally, Encoding::Protobuf)[..], b"");
        assert_eq!(&accepted(&tally, Encoding::Json)[..], b"{}");
    }

    #[test]
    fn refused_points_are_counted_in_the_answer() {
        let mut tally = Tally::default();
        tally.refuse(Refusal::Time, 2, "x");
        let answer: serde_json::Value =
            serde_json::from_slice(&accepted(&tally, Encoding::Json)).unwrap();
        let message = r#"2 refused (time, first "x"): the time is missing"#;
        let expected =
            json!({"partialSuccess": {"rejectedDataPoints": "2", "errorMessage": message}});
        assert_eq!(answer, expected);
        let bytes = accepted(&tally, Encoding::Protobuf);
        assert!(
            bytes
                .windows(message.len())
                .any(|part| part == message.as_bytes())
        );
    }

    #[test]
    fn only_what_may_come_again_has_a_code_that_says_so() {
        for (denied, code, status) in [
            (Denied::Malformed(String::new()), Code::InvalidArgument, 400),
            (Denied::TooLarge(1), Code::ResourceExhausted, 413),
            (Denied::Packing("br".to_owned()), Code::Unimplemented, 415),
            (Denied::Busy, Code::Unavailable, 429),
            (Denied::Full, Code::Unavailable, 429),
            (Denied::Unimplemented("logs", ""), Code::Unimplemented, 501),
        ] {
            assert_eq!(
                (denied.code(), denied.status()),
                (code, status),
                "{denied:?}"
            );
            assert_eq!(denied.later().is_some(), status == 429, "{denied:?}");
        }
    }
}
