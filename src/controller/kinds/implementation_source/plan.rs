//! How a source stands, and whether its tracker is to be read. Pure.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;

use super::inbox::{self, Look, Settings, Worked};
use super::sync::{Tally, Trail, Trouble};
use crate::api::condition::Lifecycle;
use crate::api::kind::Kind;
use crate::api::kinds::{ImplementationSource, ImplementationSourceStatus};
use crate::api::object::examine::examine;
use crate::api::policy::{Policy, Surroundings};
use crate::controller::driver::plan::{Next, Plan, Standing, Step};
use crate::controller::driver::stand::{self, Lack, Stand, invalid, standing, stored, waiting};
use crate::controller::policy::judge;
use crate::events;

/// Time between two looks for something that cannot be watched, or for room to call.
const POLL: Duration = Duration::from_secs(5);

/// Time between two looks at a source that the policy does not let read its tracker: the policy may change.
const JUDGED_AGAIN: Duration = Duration::from_secs(60);

/// What was found about one source.
#[derive(Debug)]
pub(in crate::controller) struct Observed {
    pub(super) now: Timestamp,
    /// The source; none if it is gone.
    pub(super) source: Option<Arc<ImplementationSource>>,
    /// What it is judged by.
    pub(super) policy: Arc<Policy>,
    /// What it needs and what is not there.
    pub(super) missing: Vec<Lack>,
    /// How the last look at its tracker went.
    pub(super) trail: Option<Arc<Trail>>,
    /// What its tracker delivered and what waits to be worked on, the oldest first.
    pub(super) inbox: Vec<Arc<ConfigMap>>,
    /// How the last work on a delivery went.
    pub(super) worked: Option<Arc<Worked>>,
    pub(super) pace: Settings,
}

/// What can be done about a source besides writing its status.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Action {
    /// Read the tracker and take over what is new.
    Sync,
    /// Take over what was delivered.
    Take(Arc<ConfigMap>),
    /// A delivery need not wait any longer.
    Drop(Arc<ConfigMap>),
}

pub(super) type SourcePlan = Plan<Action, ImplementationSourceStatus>;
pub(super) type SourceStanding = Standing<ImplementationSourceStatus>;

/// Decides.
pub(super) fn plan(seen: &Observed) -> SourcePlan {
    let Some(source) = seen.source.as_deref() else {
        return Plan::idle(Next::Wait);
    };
    if source.meta().deletion_timestamp.is_some() {
        return Plan::idle(Next::Wait);
    }
    let (now, later) = (seen.now, seen.now.checked_add(POLL).ok());
    let later = later.map_or(Next::Wait, Next::At);
    let object = serde_json::to_value(source).unwrap_or_default();
    let causes = examine(Kind::ImplementationSource, &object, None);
    if !causes.is_empty() {
        return stands(invalid(source, &causes, now), Next::Wait);
    }
    // Its secrets go to a host that it names itself, so what admission let in while nobody judged is judged here.
    let around = Surroundings::default();
    let verdict = judge(&seen.policy, Kind::ImplementationSource, &object, &around);
    if !verdict.refused.is_empty() {
        let again = now.checked_add(JUDGED_AGAIN).map_or(Next::Wait, Next::At);
        return stands(invalid(source, &verdict.refused, now), again);
    }
    if !seen.missing.is_empty() {
        let waiting = waiting(source, stored(source), &seen.missing, now);
        return stands(waiting, later);
    }
    let post = match inbox::look(seen, source) {
        Look::Take(entry) => {
            let steps = vec![Step::Do(Action::Take(entry))];
            return Plan { steps, next: later };
        }
        Look::Post(post) => post,
    };
    if !source.spec.sync.as_ref().is_some_and(|sync| sync.enabled) {
        return post.with(webhook_only(source, now), Next::Wait);
    }
    let about = source.meta().generation;
    let trail = seen.trail.as_ref();
    match trail.filter(|trail| trail.generation == about && trail.due > now) {
        None => Plan {
            steps: vec![Step::Do(Action::Sync)],
            next: later,
        },
        Some(trail) => {
            let next = match &trail.result {
                Ok(tally) => synced(source, trail.at, tally, now),
                Err(trouble) => unreachable(source, trouble, now),
            };
            post.with(next, Next::At(trail.due))
        }
    }
}

fn stands(next: SourceStanding, when: Next) -> SourcePlan {
    Plan {
        steps: vec![Step::status(next)],
        next: when,
    }
}

/// Nobody reads the tracker; it can only call.
fn webhook_only(source: &ImplementationSource, now: Timestamp) -> SourceStanding {
    let webhook = source.spec.webhook.as_ref();
    let status = stored(source);
    let stand = match webhook.is_some_and(|webhook| webhook.enabled) {
        true => Stand::ready(status, "Ready", Lifecycle::WebhookReady),
        false => {
            let message =
                "neither spec.webhook nor spec.sync is switched on, so nothing is taken over";
            let message = message.to_owned();
            Stand::unready(status, "Pending", Lifecycle::WebhookDisabled, message)
        }
    };
    standing(source, stand, now)
}

/// The tracker was read.
fn synced(
    source: &ImplementationSource,
    at: Timestamp,
    tally: &Tally,
    now: Timestamp,
) -> SourceStanding {
    let Tally {
        issues,
        written,
        taken,
        is_cut,
    } = *tally;
    let mut status = stored(source);
    if written > 0 {
        status.last_synced_at = status.last_synced_at.max(Some(at));
    }
    let mut stand = Stand::ready(status, "Ready", Lifecycle::Synced);
    stand.message = match issues {
        1 => "1 issue is taken over".to_owned(),
        issues => format!("{issues} issues are taken over"),
    };
    if taken > 0 {
        let message = format!(
            "{taken} issues are left out, because others have the names of their ImplementationSpecs"
        );
        stand.warning = Some((Lifecycle::SyncFailed, message));
    } else if is_cut {
        let message =
            format!("there are more issues than the {issues} that are read; narrow spec.scope");
        stand.warning = Some((Lifecycle::SyncFailed, message));
    }
    standing(source, stand, now)
}

/// The tracker could not be read; what was taken over before stays.
fn unreachable(source: &ImplementationSource, trouble: &Trouble, now: Timestamp) -> SourceStanding {
    let (reason, event, message) = match trouble {
        Trouble::Denied(why) => (Lifecycle::EgressDenied, events::Reason::EgressDenied, why),
        Trouble::Unreachable(why) => (Lifecycle::SyncFailed, events::Reason::Unreachable, why),
    };
    stand::unreachable(source, reason, event, message, now)
}
