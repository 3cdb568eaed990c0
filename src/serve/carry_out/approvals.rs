//! Approvals that steps wait for, and decisions about them.

use http::StatusCode;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DynamicObject, Patch, PatchParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::runs::{PAGE, asked, body};
use crate::api::condition::Moment;
use crate::api::contract::FIELD_MANAGER;
use crate::api::kind::Kind;
use crate::api::kinds::ApprovalPolicy;
use crate::api::status;
use crate::controller::decision;
use crate::serve::answer::{self, Answer};
use crate::serve::fault::{Fault, Reason};
use crate::serve::service::Call;
use crate::serve::state::State;

/// A page of approvals.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ApprovalPage")]
pub(in crate::serve) struct Page {
    /// The approvals.
    items: Vec<Approval>,
    /// Where the next page begins; none after the last.
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// An approval and what was decided.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::serve) struct Approval {
    namespace: String,
    name: String,
    uid: String,
    /// How it is decided.
    mode: Option<String>,
    /// What stands in its status.
    phase: Option<String>,
    /// Whether it was given; none while nobody has decided.
    approved: Option<bool>,
    /// When it was decided.
    decided_at: Option<String>,
}

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct Decision {
    /// Whether the approval is given.
    approved: bool,
}

impl Decision {
    /// The word that stands for it in the status.
    fn phase(self) -> &'static str {
        match self.approved {
            true => "Approved",
            false => "Denied",
        }
    }
}

impl Approval {
    fn of(object: &DynamicObject) -> Self {
        let text = |path: &str| object.data.pointer(path)?.as_str().map(str::to_owned);
        let policy: Option<ApprovalPolicy> = object.clone().try_parse().ok();
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            mode: text("/spec/mode"),
            phase: text("/status/phase"),
            approved: policy.as_ref().and_then(decision),
            decided_at: text("/status/lastDecisionAt"),
        }
    }
}

/// Approvals, page by page.
pub(in crate::serve) async fn list(state: &State, call: &Call) -> Result<Answer, Fault> {
    let policies = state.api(Kind::ApprovalPolicy, call.namespace.as_deref());
    let limit = call.route.number("limit").unwrap_or(PAGE);
    let found = policies.list(&asked(&call.route, limit)).await?;
    let page = Page {
        items: found.items.iter().map(Approval::of).collect(),
        next: found.metadata.continue_.filter(|next| !next.is_empty()),
    };
    Ok(answer::json(StatusCode::OK, &page))
}

/// Gives or refuses an approval.
pub(in crate::serve) async fn decide(state: &State, call: &Call) -> Result<Answer, Fault> {
    let wanted: Decision = body(&call.body)?;
    let policies = state.api(Kind::ApprovalPolicy, Some(call.namespace()));
    let found = policies.get_opt(call.name()).await?;
    let found =
        found.ok_or_else(|| Fault::not_found("ApprovalPolicy", call.namespace(), call.name()))?;
    let seen = Approval::of(&found);
    match seen.approved {
        Some(is_given) if is_given == wanted.approved => {
            return Ok(answer::json(StatusCode::OK, &seen));
        }
        Some(_) => return Err(decided(&seen)),
        None => {}
    }
    let patch = json!({
        // Nobody may have decided otherwise meanwhile.
        "metadata": {"resourceVersion": found.metadata.resource_version, "uid": found.metadata.uid},
        "status": decided_status(&found, wanted, Timestamp::now()),
    });
    let how = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patched = policies
        .patch_status(call.name(), &how, &Patch::Merge(patch))
        .await?;
    Ok(answer::json(StatusCode::OK, &Approval::of(&patched)))
}

/// The status with the decision, as the contract wants it.
fn decided_status(found: &DynamicObject, wanted: Decision, now: Timestamp) -> Value {
    let stored = found.data.get("status");
    let mut next = stored.cloned().unwrap_or_else(|| json!({}));
    next["phase"] = wanted.phase().into();
    next["lastDecisionAt"] = json!(now);
    let at = Moment {
        now,
        generation: found.metadata.generation.unwrap_or_default(),
    };
    status::repair(Kind::ApprovalPolicy, stored, Some(&next), at).unwrap_or(next)
}

fn decided(seen: &Approval) -> Fault {
    let phase = seen.phase.as_deref().unwrap_or("by default");
    let message = format!("it was decided otherwise: {phase}");
    Fault::new(StatusCode::CONFLICT, Reason::AlreadyDecided, message)
        .next("a decision stands; make another ApprovalPolicy to ask again")
}
