//! Answers where there is no decision: bad input, no time, no room, or a fault of our own.
//!
//! Their HTTP status is not 200, so that the failure policy of the webhook configuration decides what becomes of the
//! request; the body still is a review with the uid, as far as it could be read, and says what happened.

use http::StatusCode;

use crate::reply::{Reply, Status};

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such path.
    UnknownPath,
    /// Reviews are posted.
    WrongMethod,
    /// The body is not declared as JSON.
    WrongType,
    /// The body has more bytes than allowed.
    TooLarge {
        /// How many are allowed.
        limit: usize,
    },
    /// The body broke off.
    Broken,
    /// The body is no review.
    Malformed(String),
    /// An answer would come too late.
    Late,
    /// There is more to do than can be done.
    Shed,
    /// We failed.
    Failed,
}

impl Refusal {
    /// The words of all refusals in metrics and logs.
    pub const WORDS: [&'static str; 9] = [
        "unknown_path",
        "wrong_method",
        "wrong_type",
        "too_large",
        "broken",
        "malformed",
        "late",
        "shed",
        "failed",
    ];

    /// The word in metrics and logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::UnknownPath => "unknown_path",
            Self::WrongMethod => "wrong_method",
            Self::WrongType => "wrong_type",
            Self::TooLarge { .. } => "too_large",
            Self::Broken => "broken",
            Self::Malformed(_) => "malformed",
            Self::Late => "late",
            Self::Shed => "shed",
            Self::Failed => "failed",
        }
    }

    /// The HTTP status. 504 is left to the server's own deadline, and nothing asks to be tried again: the API server
    /// would wait for that, and has less time than we.
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::UnknownPath => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::WrongType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Broken | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Late | Self::Shed => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The reason as the API writes it.
    const fn reason(&self) -> &'static str {
        match self {
            Self::UnknownPath => "NotFound",
            Self::WrongMethod => "MethodNotAllowed",
            Self::WrongType => "UnsupportedMediaType",
            Self::TooLarge { .. } => "RequestEntityTooLarge",
            Self::Broken | Self::Malformed(_) => "BadRequest",
            Self::Late => "Timeout",
            Self::Shed => "TooManyRequests",
            Self::Failed => "InternalError",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::UnknownPath => "there is no such path".to_owned(),
            Self::WrongMethod => "reviews are sent by POST".to_owned(),
            Self::WrongType => "reviews are sent as application/json".to_owned(),
            Self::TooLarge { limit } => format!("the body has more than the {limit} bytes allowed"),
            Self::Broken => "the body broke off".to_owned(),
            Self::Malformed(why) => why.clone(),
            Self::Late => "there is not enough time left to decide".to_owned(),
            Self::Shed => "too many reviews at once".to_owned(),
            Self::Failed => "internal error; the log of agents-webhook says more".to_owned(),
        }
    }

    /// The answer.
    pub fn reply<'a>(&self, uid: &'a str) -> Reply<'a> {
        Reply::undecided(
            uid,
            Status {
                status: "Failure",
                message: self.message(),
                reason: self.reason(),
                code: self.status().as_u16(),
                details: None,
            },
        )
    }
}
