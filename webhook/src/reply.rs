//! The answer that the API server reads: the uid that was asked, the verdict, and everything that goes with it.

use std::borrow::Cow;

use agents::api::object::cause::Cause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use json_patch::PatchOperation;
use serde::Serialize;
use serde::ser::Serializer;

use crate::decision::{self, Decision};
use crate::review::{API_VERSION, KIND};
use crate::subject::Subject;

/// An AdmissionReview with a response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(serialize_with = "encoded", skip_serializing_if = "<[_]>::is_empty")]
    patch: &'a [PatchOperation],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_annotations: Option<Audit<'a>>,
}

/// Why something was refused, as the API server hands it to the user.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "fields of the API's Status")]
pub struct Status<'a> {
    pub status: &'static str,
    pub message: String,
    pub reason: &'static str,
    pub code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details<'a>>,
}

/// What was refused, and each cause.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "fields of the API's StatusDetails")]
pub struct Details<'a> {
    pub name: &'a str,
    pub group: &'static str,
    pub kind: &'static str,
    pub causes: Vec<StatusCause<'a>>,
}

/// One cause.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "fields of the API's StatusCause")]
pub struct StatusCause<'a> {
    pub reason: &'static str,
    pub message: &'a str,
    pub field: String,
}

/// What the audit log keeps of a decision. Keys are short: the API server puts the name of the webhook before them.
#[derive(Debug, Serialize)]
struct Audit<'a> {
    /// Rules that are broken.
    rule: Cow<'static, str>,
    /// What each of them does, in the same order.
    mode: Cow<'static, str>,
    /// Which policy was in force.
    policy: &'a str,
}

impl<'a> Reply<'a> {
    /// The answer that a decision becomes.
    pub fn to(subject: &'a Subject<'_>, decision: &'a Decision, policy: &'a str) -> Self {
        let refused = decision.is_refusal();
        let patch: &[PatchOperation] = if refused { &[] } else { &decision.patch };
        Self::with(Response {
            uid: &subject.request.uid,
            allowed: !refused,
            status: refused.then(|| refusal(subject, decision)),
            patch,
            patch_type: (!patch.is_empty()).then_some("JSONPatch"),
            warnings: decision::warnings(decision),
            audit_annotations: Some(audit(decision, policy)),
        })
    }

    /// The answer to a review that no rule is about: let through, with a word to the user.
    pub fn foreign(uid: &'a str, decision: &'a Decision, policy: &'a str) -> Self {
        Self::with(Response {
            uid,
            allowed: true,
            status: None,
            patch: &[],
            patch_type: None,
            warnings: decision::warnings(decision),
            audit_annotations: Some(audit(decision, policy)),
        })
    }

    /// The answer where there is no decision.
    pub fn undecided(uid: &'a str, status: Status<'a>) -> Self {
        Self::with(Response {
            uid,
            allowed: false,
            status: Some(status),
            patch: &[],
            patch_type: None,
            warnings: Vec::new(),
            audit_annotations: None,
        })
    }

    fn with(response: Response<'a>) -> Self {
        Self {
            api_version: API_VERSION,
            kind: KIND,
            response,
        }
    }

    /// The bytes that are sent.
    ///
    /// # Errors
    ///
    /// Never, as far as anyone knows: everything in here can be written as JSON.
    pub fn encode(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }
}

/// 422 and `Invalid` make `kubectl apply` list each cause on a line of its own.
fn refusal<'a>(subject: &'a Subject<'_>, decision: &'a Decision) -> Status<'a> {
    Status {
        status: "Failure",
        message: decision::message(decision.refusing()),
        reason: "Invalid",
        code: 422,
        details: Some(Details {
            name: subject.name(),
            group: subject.target.group(),
            kind: subject.target.kind(),
            causes: decision.refusing().map(cause).collect(),
        }),
    }
}

fn cause(cause: &Cause) -> StatusCause<'_> {
    StatusCause {
        reason: cause.reason.as_str(),
        message: &cause.message,
        field: cause.field.to_string(),
    }
}

/// Each pair of rule and mode once, in the order in which they were found.
fn audit<'a>(decision: &Decision, policy: &'a str) -> Audit<'a> {
    if decision.findings.is_empty() {
        let (rule, mode) = ("none".into(), "none".into());
        return Audit { rule, mode, policy };
    }
    let mut seen = Vec::new();
    for finding in &decision.findings {
        let pair = (finding.rule.as_str(), finding.mode.as_str());
        if !seen.contains(&pair) {
            seen.push(pair);
        }
    }
    let (rules, modes): (Vec<&str>, Vec<&str>) = seen.into_iter().unzip();
    Audit {
        rule: rules.join(",").into(),
        mode: modes.join(",").into(),
        policy,
    }
}

fn encoded<S: Serializer>(patch: &[PatchOperation], serializer: S) -> Result<S::Ok, S::Error> {
    let json = serde_json::to_vec(patch).map_err(serde::ser::Error::custom)?;
    serializer.serialize_str(&STANDARD.encode(json))
}
