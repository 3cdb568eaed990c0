//! What a request is answered that cannot be carried out: for programs a word, for people what is wrong and what to do.

use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::answer::{self, Answer};
use crate::api::object::cause::Cause;
use crate::api::text::names::closed_words;
use crate::api::text::sanitise::{Secrets, sanitise};

/// Longest sentence about something that others said, in bytes.
const LONGEST: usize = 4096;

closed_words! {
    /// Why a request was not carried out.
    pub enum Reason {
        /// There is no bearer token, or nobody knows it.
        Unauthenticated,
        /// No source that is known here signed the call.
        NotSigned,
        /// The call is too old, or from the future.
        Stale,
        /// No source is about what the call is about.
        OutOfScope,
        /// As many deliveries wait as may.
        QueueFull,
        /// The control plane is not set to take deliveries.
        DeliveriesOff,
        /// Whoever asks may not do this here.
        Forbidden,
        /// Nobody can be let in, because the program may not ask the cluster who someone is and what they may do.
        ReviewsNotPermitted,
        /// The program itself lacks a right that it needs.
        ControlPlaneForbidden,
        /// The API server does not answer.
        ApiServerUnreachable,
        /// There is no such path.
        NoSuchPath,
        /// The path takes other methods.
        MethodNotAllowed,
        /// There is no such object.
        NotFound,
        /// Something about the request cannot be meant.
        BadRequest,
        /// The body is too large.
        TooLarge,
        /// The object would be refused; every cause is listed.
        Invalid,
        /// The cluster refused the object at admission.
        AdmissionRefused,
        /// An object of this name exists.
        AlreadyExists,
        /// The key was used with another request.
        IdempotencyConflict,
        /// Someone else changed the object meanwhile.
        Conflict,
        /// The run has ended, so nothing can be changed about it.
        AlreadyEnded,
        /// Someone has decided otherwise.
        AlreadyDecided,
        /// The run has not begun, so there is no log yet.
        NotStarted,
        /// The log was kept for a time that is over.
        LogsGone,
        /// What is asked for was there and is gone.
        Gone,
        /// A Budget is used up.
        BudgetExceeded,
        /// A SecretBinding does not allow the secrets of the run.
        SecretBindingRefused,
        /// This control plane does not work for the namespace.
        NamespaceNotServed,
        /// Too much is asked at once.
        TooManyRequests,
        /// No controller holds the lease, so nobody knows how the queue stands.
        NoLeader,
        /// The controller that holds the lease cannot be asked.
        LeaderUnreachable,
        /// It took too long.
        DeadlineExceeded,
        /// The stream is for HTTP/1.1.
        HttpVersion,
        /// Something went wrong that should not.
        Internal,
    }
}

/// Why a request was not carried out, ready to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    reason: Reason,
    message: String,
    next_step: String,
    causes: Vec<Told>,
    retry_after: Option<u32>,
    /// The methods that the path takes, where that is what is wrong.
    allowed: Option<String>,
}

/// The body of every answer that is an error.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Problem {
    /// One word that a program can match on.
    reason: String,
    /// What is wrong.
    message: String,
    /// What to do about it.
    next_step: Option<String>,
    /// Every fault of the object, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    causes: Vec<Told>,
}

/// One fault of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Cause")]
pub(super) struct Told {
    /// Where it stands.
    field: String,
    /// The rule that was broken.
    reason: String,
    /// What is wrong and what would be right.
    message: String,
}

impl Fault {
    pub(super) fn new(status: StatusCode, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            message: message.into(),
            next_step: String::new(),
            causes: Vec::new(),
            retry_after: None,
            allowed: None,
        }
    }

    /// The same with what to do about it.
    pub(super) fn next(self, step: impl Into<String>) -> Self {
        Self {
            next_step: step.into(),
            ..self
        }
    }

    /// The same, worth another try after so many seconds.
    pub(super) fn again_after(self, seconds: u32) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// The same, with the methods that the path takes.
    pub(super) fn allowing(self, methods: String) -> Self {
        Self {
            allowed: Some(methods),
            ..self
        }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Reason::BadRequest, message)
    }

    pub(super) fn not_found(what: &str, namespace: &str, name: &str) -> Self {
        let message = format!("there is no {what} {name} in namespace {namespace}");
        Self::new(StatusCode::NOT_FOUND, Reason::NotFound, message)
            .next("look at the list for what there is")
    }

    /// An object that would be refused.
    pub(super) fn invalid(causes: Vec<Cause>) -> Self {
        let count = causes.len();
        let message = match count {
            1 => "the object has 1 fault".to_owned(),
            count => format!("the object has {count} faults"),
        };
        let told = causes.into_iter().map(|cause| Told {
            field: cause.field.to_string(),
            reason: cause.reason.to_string(),
            message: cause.message,
        });
        Self {
            causes: told.collect(),
            ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, message)
                .next("mend every field of causes and send it again")
        }
    }

    pub(super) fn reason(&self) -> Reason {
        self.reason
    }

    /// What is told, as a sentence and as the body of an answer.
    pub(super) fn told(self) -> (String, String) {
        let problem = self.problem();
        let sentence = match &problem.next_step {
            Some(next) => format!("{}; {next}", problem.message),
            None => problem.message.clone(),
        };
        let text = serde_json::to_string(&problem).unwrap_or_default();
        (sentence, text)
    }

    fn problem(self) -> Problem {
        let next_step = Some(self.next_step).filter(|next| !next.is_empty());
        Problem {
            reason: self.reason.as_str().to_owned(),
            message: self.message,
            next_step,
            causes: self.causes,
        }
    }

    /// As an answer.
    pub(super) fn answer(mut self) -> Answer {
        let (status, reason, retry_after) = (self.status, self.reason, self.retry_after);
        let allowed = self.allowed.take();
        let problem = self.problem();
        let mut answer = answer::json(status, &problem);
        let headers = answer.headers_mut();
        let allowed = allowed.and_then(|methods| HeaderValue::try_from(methods).ok());
        headers.extend(allowed.map(|methods| (header::ALLOW, methods)));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED && reason == Reason::Unauthenticated {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        answer
    }
}

/// What the API server said about a call of ours.
impl From<kube::Error> for Fault {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            let why = sanitise(&error.to_string(), &Secrets::NONE, LONGEST);
            return Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Reason::ApiServerUnreachable,
                format!("the API server does not answer: {why}"),
            )
            .next("try again; if it stays so, look at the API server and at the way to it")
            .again_after(2);
        };
        let message = sanitise(&status.message, &Secrets::NONE, LONGEST);
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::BAD_GATEWAY);
        let refused = message.contains("denied the request") || message.contains("admission");
        match status.code {
            403 | 422 | 400 if refused => {
                let code = StatusCode::UNPROCESSABLE_ENTITY;
                Self::new(code, Reason::AdmissionRefused, message)
                    .next("mend what the message names and send it again")
            }
            401 | 403 => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Reason::ControlPlaneForbidden,
                format!("the control plane itself is not allowed to do this: {message}"),
            )
            .next("add the right to the role of the control plane"),
            404 => Self::new(code, Reason::NotFound, message),
            409 if status.reason == "AlreadyExists" => {
                Self::new(code, Reason::AlreadyExists, message)
                    .next("choose another name, or leave it out")
            }
            409 => Self::new(code, Reason::Conflict, message).next("read it anew and try again"),
            410 => Self::new(code, Reason::Gone, message).next("begin anew without `continue`"),
            422 => Self::new(code, Reason::Invalid, message),
            400 => Self::new(code, Reason::BadRequest, message),
            429 => Self::new(code, Reason::TooManyRequests, message).again_after(1),
            _ => Self::new(
                StatusCode::BAD_GATEWAY,
                Reason::ApiServerUnreachable,
                format!("the API server could not do it: {message}"),
            )
            .again_after(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn what_the_api_server_says_becomes_a_word_and_a_code() {
        let said = |code: u16, reason: &str, message: &str| {
            let status = Status::failure(message, reason).with_code(code);
            let fault = Fault::from(kube::Error::Api(status.boxed()));
            (fault.status.as_u16(), fault.reason)
        };
        for (code, reason, message, expected) in [
            (404, "NotFound", "no such run", (404, Reason::NotFound)),
            (
                409,
                "AlreadyExists",
                "there is one",
                (409, Reason::AlreadyExists),
            ),
            (409, "Conflict", "changed", (409, Reason::Conflict)),
            (
                403,
                "Forbidden",
                "User x cannot list",
                (503, Reason::ControlPlaneForbidden),
            ),
            (
                403,
                "Forbidden",
                "admission webhook \"a\" denied the request: b",
                (422, Reason::AdmissionRefused),
            ),
            (410, "Expired", "too old", (410, Reason::Gone)),
            (
                500,
                "InternalError",
                "etcd",
                (502, Reason::ApiServerUnreachable),
            ),
        ] {
            assert_eq!(said(code, reason, message), expected, "{code} {reason}");
        }
    }

    #[test]
    fn a_secret_in_what_others_say_is_not_told_on() {
        let status = Status::failure(
            "Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "BadRequest",
        );
        let fault = Fault::from(kube::Error::Api(status.with_code(400).boxed()));
        assert!(!fault.message.contains("ghp_"), "{}", fault.message);
    }
}
