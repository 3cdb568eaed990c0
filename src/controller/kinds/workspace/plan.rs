//! What is to be done about a workspace, from what was observed. Pure.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Size;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};

use crate::api::condition::Lifecycle;
use crate::api::contract::label;
use crate::api::kind::Kind;
use crate::api::kinds::{Workspace, WorkspaceStatus};
use crate::api::object::examine::examine;
use crate::api::validate::Quantity;
use crate::controller::driver::plan::{Next, Plan, Standing, Step};
use crate::controller::driver::stand::{Stand, blocked, due, invalid, standing, stored};
use crate::events;

/// Time between two looks at a claim of someone else, of whose end nobody tells us.
const POLL: Duration = Duration::from_secs(5);

/// Time until a claim is asked to grow once more that was not allowed to: someone may have changed its class.
const AGAIN: Duration = Duration::from_secs(600);

/// How a claim is used if the workspace does not say.
const USUAL_MODE: &str = "ReadWriteOnce";

/// What was found about one workspace.
#[derive(Clone, Debug)]
pub(in crate::controller) struct Observed {
    pub(super) now: Timestamp,
    /// The workspace; none if it is gone.
    pub(super) workspace: Option<Arc<Workspace>>,
    pub(super) claim: Sight,
    /// What became of the last try to make the claim grow, if it was refused.
    pub(super) refusal: Option<Refusal>,
}

/// A claim was not allowed to grow.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    /// Uid of the claim.
    pub(super) claim: Option<String>,
    pub(super) size: String,
    pub(super) why: String,
    pub(super) at: Timestamp,
}

/// What there is under the name of the claim.
#[derive(Clone, Debug)]
pub(super) enum Sight {
    /// Nothing.
    Absent,
    /// The claim of this very workspace.
    Ours(Arc<PersistentVolumeClaim>),
    /// A claim of someone else.
    Taken,
}

/// What can be done about a workspace besides writing its status.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Action {
    /// Make the claim.
    Make(Box<PersistentVolumeClaim>),
    /// Ask for more storage.
    Grow {
        claim: Arc<PersistentVolumeClaim>,
        size: String,
    },
    /// Remove the claim: its time is over.
    Remove(Arc<PersistentVolumeClaim>),
}

type WorkspacePlan = Plan<Action, WorkspaceStatus>;

/// Whether it matters which claim there is.
pub(super) fn asks_for_claim(workspace: &Workspace) -> bool {
    workspace.meta().deletion_timestamp.is_none()
}

/// Decides.
pub(super) fn plan(seen: &Observed) -> WorkspacePlan {
    let Some(workspace) = seen.workspace.as_deref() else {
        return Plan::idle(Next::Wait);
    };
    if !asks_for_claim(workspace) {
        return Plan::idle(Next::Wait);
    }
    let json = serde_json::to_value(workspace).unwrap_or_default();
    let causes = examine(Kind::Workspace, &json, None);
    if !causes.is_empty() {
        return say(invalid(workspace, &causes, seen.now), None);
    }
    let over = due(workspace, workspace.spec.ttl_seconds);
    if over.is_some_and(|over| over <= seen.now) {
        return expire(seen, workspace);
    }
    match &seen.claim {
        Sight::Absent => {
            let mut plan = say(described(workspace, None, None, seen.now), over);
            let make = Action::Make(Box::new(claim(workspace)));
            plan.steps.insert(0, Step::Do(make));
            plan
        }
        Sight::Ours(claim) => follow(seen, workspace, claim, over),
        Sight::Taken => {
            let message = format!("someone else has a claim {}", workspace.name_any());
            let reason = Lifecycle::ClaimNameConflict;
            let next = blocked(workspace, stored(workspace), reason, message, seen.now);
            say(next, seen.now.checked_add(POLL).ok())
        }
    }
}

/// A claim that is not allowed to grow is still of use: that is a warning, and not asked for with each look.
fn follow(
    seen: &Observed,
    workspace: &Workspace,
    claim: &Arc<PersistentVolumeClaim>,
    over: Option<Timestamp>,
) -> WorkspacePlan {
    let Some((grow, size)) = grow(workspace, claim) else {
        return say(described(workspace, Some(claim), None, seen.now), over);
    };
    let refusal = seen.refusal.as_ref().filter(|known| known.size == size);
    let again = refusal.and_then(|known| known.at.checked_add(AGAIN).ok());
    match (refusal, again) {
        (Some(refusal), Some(again)) if again > seen.now => {
            let standing = described(workspace, Some(claim), Some(refusal), seen.now);
            let next = over.map_or(again, |over| over.min(again));
            say(standing, Some(next))
        }
        // How it stands is said when the answer is known.
        (Some(_) | None, _) => Plan::steps(vec![Step::Do(grow)]),
    }
}

fn say(standing: Standing<WorkspaceStatus>, next: Option<Timestamp>) -> WorkspacePlan {
    Plan {
        steps: vec![Step::status(standing)],
        next: next.map_or(Next::Wait, Next::At),
    }
}

/// Its time is over: the claim goes, the record stays.
fn expire(seen: &Observed, workspace: &Workspace) -> WorkspacePlan {
    let message = "the time that it is kept is over".to_owned();
    let mut status = stored(workspace);
    status.volume_name = None;
    let stand = Stand::unready(status, "Expired", Lifecycle::Expired, message);
    let mut next = standing(workspace, stand, seen.now);
    let mut steps = Vec::new();
    if let Sight::Ours(claim) = &seen.claim {
        next = next.telling(events::Reason::Expired, "the claim was removed");
        if claim.meta().deletion_timestamp.is_none() {
            steps.push(Step::Do(Action::Remove(Arc::clone(claim))));
        }
    }
    steps.push(Step::status(next));
    Plan::steps(steps)
}

/// How a workspace stands whose claim is this.
fn described(
    workspace: &Workspace,
    claim: Option<&PersistentVolumeClaim>,
    refusal: Option<&Refusal>,
    now: Timestamp,
) -> Standing<WorkspaceStatus> {
    let mut status = stored(workspace);
    let volume = claim.and_then(|claim| claim.spec.as_ref()?.volume_name.clone());
    status.volume_name = volume.filter(|volume| !volume.is_empty());
    let phase = claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref());
    let mut stand = match phase {
        Some("Bound") => Stand::ready(status, "Ready", Lifecycle::Bound),
        Some("Lost") => {
            let message = "the claim lost its volume".to_owned();
            Stand::unready(status, "Failed", Lifecycle::Lost, message)
        }
        Some(_) | None => {
            let message = "the claim has no volume yet".to_owned();
            Stand::unready(status, "Pending", Lifecycle::Pending, message)
        }
    };
    stand.warning = refusal.map(|refusal| (Lifecycle::Forbidden, refusal.why.clone()));
    let next = standing(workspace, stand, now);
    match refusal {
        Some(refusal) => next.telling(events::Reason::Forbidden, refusal.why.clone()),
        None => next,
    }
}

/// Storage can become more, never less; everything else about a claim is fixed.
fn grow(workspace: &Workspace, claim: &Arc<PersistentVolumeClaim>) -> Option<(Action, String)> {
    let size = workspace.spec.size.as_deref()?.trim();
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    let wanted: Quantity = size.parse().ok()?;
    let asked: Quantity = requests.get("storage")?.0.parse().ok()?;
    let grow = Action::Grow {
        claim: Arc::clone(claim),
        size: size.to_owned(),
    };
    (wanted > asked).then(|| (grow, size.to_owned()))
}

/// The claim of a workspace. It goes with it.
fn claim(workspace: &Workspace) -> PersistentVolumeClaim {
    let spec = &workspace.spec;
    let size = spec.size.as_deref().unwrap_or_default().trim().to_owned();
    let modes = spec.access_modes.clone().filter(|modes| !modes.is_empty());
    let class = spec.storage_class_name.clone();
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: workspace.meta().name.clone(),
            namespace: workspace.namespace(),
            labels: Some(BTreeMap::from([(
                label::WORKSPACE.to_owned(),
                workspace.name_any(),
            )])),
            owner_references: Some(vec![OwnerReference {
                api_version: Workspace::api_version(&()).into_owned(),
                kind: Workspace::kind(&()).into_owned(),
                name: workspace.name_any(),
                uid: workspace.uid().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: None,
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(modes.unwrap_or_else(|| vec![USUAL_MODE.to_owned()])),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([("storage".to_owned(), Size(size))])),
                limits: None,
            }),
            storage_class_name: class.filter(|class| !class.is_empty()),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
