//! What trackers delivered. The control plane put it into the cluster, each call into a ConfigMap of its own; here it is
//! taken over, the oldest first, and tried again for a while where that fails. How often is kept in the status of the
//! source, so it holds over restarts.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::ImplementationSources;
use super::issue::Deed;
use super::plan::{Action, Observed, SourcePlan, SourceStanding};
use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation};
use crate::api::contract::{annotation, env};
use crate::api::kinds::agents::implementation_source::LastWebhook;
use crate::api::kinds::{ImplementationSource, ImplementationSpec};
use crate::api::tracker::{Delivery, Issue, word};
use crate::controller::cache::Key;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::plan::{Next, Plan, Step};
use crate::kit::config::{self, Invalid, Reader, Setting};

/// What became of a delivery, in the words of the status.
const SYNCED: &str = "synced";
const RETRYING: &str = "retrying";
const FAILED: &str = "failed";

/// How a delivery is tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::controller) struct Settings {
    base: Duration,
    most: Duration,
    attempts: usize,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Deliveries of trackers");
        let base = reader.value(
            Setting::<Duration>::new(
                env::DELIVERIES_RETRY_BASE,
                "Time until a delivery that could not be taken over is tried again; it doubles each time",
            )
            .or("1")
            .within("10ms", "1h"),
        );
        let most = reader.value(
            Setting::<Duration>::new(env::DELIVERIES_RETRY_MAX, "Longest time until it is")
                .or("60")
                .within("10ms", "24h"),
        );
        let attempts = reader.value(
            Setting::<usize>::new(
                env::DELIVERIES_ATTEMPTS,
                "How often a delivery is tried before it is given up",
            )
            .or("5")
            .within("1", "100"),
        );
        Ok(Self {
            base: base?,
            most: most?,
            attempts: attempts?,
        })
    }
}

impl Settings {
    /// When a delivery is due that was tried so often.
    fn due(&self, last: &LastWebhook) -> Option<Timestamp> {
        let tried = last.attempts.unwrap_or_default().clamp(1, 32) - 1;
        let doubled = 2_u32.saturating_pow(u32::try_from(tried).unwrap_or_default());
        let wait = self.base.saturating_mul(doubled).min(self.most);
        last.processed_at?.checked_add(wait).ok()
    }
}

/// How the work on a delivery went.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Worked {
    /// The ConfigMap that it waited in.
    entry: Option<String>,
    last: LastWebhook,
}

/// What is to be done about what waits.
pub(super) enum Look {
    Take(Arc<ConfigMap>),
    /// Nothing now but this.
    Post(Box<Post>),
}

/// What is to be told about deliveries, done after that, and when to look again.
pub(super) struct Post {
    last: Option<LastWebhook>,
    is_new: bool,
    drop: Option<Arc<ConfigMap>>,
    next: Next,
}

/// Those that wait, the oldest first.
pub(super) fn sorted(mut entries: Vec<Arc<ConfigMap>>) -> Vec<Arc<ConfigMap>> {
    entries.sort_by_key(|entry| {
        let at = entry.creation_timestamp().map(|at| at.0);
        (at, entry.name_any())
    });
    entries
}

/// Decides about the oldest that waits.
pub(super) fn look(seen: &Observed, source: &ImplementationSource) -> Look {
    let told = source
        .status
        .as_ref()
        .and_then(|status| status.last_webhook.as_ref());
    let mut post = Box::new(Post {
        last: told.cloned(),
        is_new: false,
        drop: None,
        next: Next::Wait,
    });
    let Some(entry) = seen.inbox.first() else {
        return Look::Post(post);
    };
    let webhook = source.spec.webhook.as_ref();
    if !webhook.is_some_and(|webhook| webhook.enabled) {
        post.drop = Some(Arc::clone(entry)); // nobody wants it any more
        return Look::Post(post);
    }
    let worked = seen.worked.as_ref();
    let worked = worked.filter(|worked| worked.entry == entry.uid());
    let last = match worked {
        Some(worked) => Some(&worked.last),
        // What an earlier process did.
        None => told.filter(|told| is_about(told, source, entry)),
    };
    let Some(last) = last else {
        return Look::Take(Arc::clone(entry));
    };
    post.is_new = worked.is_some();
    post.last = Some(last.clone());
    match (last.status.as_deref(), seen.pace.due(last)) {
        (Some(RETRYING), Some(due)) if due > seen.now => post.next = Next::At(due),
        (Some(SYNCED | FAILED), _) => post.drop = Some(Arc::clone(entry)),
        _ => return Look::Take(Arc::clone(entry)),
    }
    Look::Post(post)
}

/// Whether the status tells of this delivery.
fn is_about(told: &LastWebhook, source: &ImplementationSource, entry: &ConfigMap) -> bool {
    let (uid, key) = (source.uid().unwrap_or_default(), &told.idempotency_key);
    let name = |key: &String| Delivery::name(&uid, key) == entry.name_any();
    key.as_ref().is_some_and(name)
}

impl Post {
    /// A source that stands like this, with what is to be said about deliveries.
    pub(super) fn with(self, mut next: SourceStanding, when: Next) -> SourcePlan {
        let last = self.last.as_ref();
        if self.is_new {
            next.status.last_webhook.clone_from(&self.last);
            if let Some(last) = last.filter(|last| last.status.as_deref() == Some(SYNCED)) {
                let at = next.status.last_synced_at.max(last.processed_at);
                next.status.last_synced_at = at;
            }
        }
        if let Some((last, why)) = last.and_then(|last| Some((last, last.error.as_deref()?))) {
            let issue = last.external_id.as_deref().unwrap_or("an issue");
            let again = match last.status.as_deref() {
                Some(FAILED) => "it is given up",
                _ => "it is tried again",
            };
            let message =
                format!("a delivery about {issue} could not be taken over: {why}; {again}");
            let warns = |entry: &Observation| entry.type_ == ConditionType::Warning;
            next.observed.retain(|entry| !warns(entry));
            let holds = ConditionStatus::True;
            let reason = Lifecycle::WebhookFailed;
            next.observed.push(Observation::new(
                ConditionType::Warning,
                holds,
                reason,
                message,
            ));
        }
        let mut steps = vec![Step::status(next)];
        // After the status: who is stopped in between finds both and drops it then.
        steps.extend(self.drop.map(|entry| Step::Do(Action::Drop(entry))));
        Plan {
            steps,
            next: when.or(self.next),
        }
    }
}

impl ImplementationSources {
    /// Takes over what was delivered; says whether there is anything to tell.
    pub(super) async fn take(
        &self,
        source: &ImplementationSource,
        entry: &ConfigMap,
    ) -> Result<bool, Fault> {
        let (namespace, name) = (entry.namespace().unwrap_or_default(), entry.name_any());
        let what = "read a delivery";
        let found: Option<ConfigMap> = self.context.look_up(what, &namespace, &name).await?;
        let Some(found) = found else {
            self.shelves.inbox.unlearn(&Key::of(entry));
            return Ok(true);
        };
        let before = source
            .status
            .as_ref()
            .and_then(|status| status.last_webhook.as_ref());
        let before = before.filter(|told| is_about(told, source, entry));
        let attempts = before.and_then(|told| told.attempts).unwrap_or_default() + 1;
        let delivery = Delivery::read(&found);
        let result = match &delivery {
            Some(delivery) => self.take_over_one(source, &delivery.issue).await,
            None => Ok(Err("what waits there is no delivery".to_owned())),
        };
        let is_last = usize::try_from(attempts).is_ok_and(|tried| tried >= self.inbox.attempts);
        let (status, error) = match result {
            Ok(Ok(())) => (SYNCED, None),
            Ok(Err(why)) => (FAILED, Some(why)),
            Err(fault) if fault.class == Class::Fenced => return Err(fault),
            Err(fault) if is_last => (FAILED, Some(fault.sentence())),
            Err(fault) => (RETRYING, Some(fault.sentence())),
        };
        let issue = delivery.as_ref().map(|delivery| &delivery.issue);
        let last = LastWebhook {
            idempotency_key: delivery.as_ref().map(|delivery| delivery.key.clone()),
            delivery_id: delivery.as_ref().and_then(|delivery| delivery.id.clone()),
            provider: Some(word(source.spec.provider).to_owned()),
            external_id: issue.map(|issue| issue.id.clone()),
            source_version: issue.map(|issue| issue.version.clone()),
            status: Some(status.to_owned()),
            error,
            attempts: Some(attempts),
            received_at: delivery.as_ref().map(|delivery| delivery.received_at),
            processed_at: Some(self.context.clock.now()),
        };
        let entry = entry.uid();
        let worked = Worked { entry, last };
        self.worked.keep(source, &self.shelves.sources, worked);
        Ok(true)
    }

    /// Writes the ImplementationSpec of an issue; a sentence if that can never be done.
    async fn take_over_one(
        &self,
        source: &ImplementationSource,
        issue: &Issue,
    ) -> Result<Result<(), String>, Fault> {
        let namespace = source.namespace().unwrap_or_default();
        let what = "look up the ImplementationSpec of an issue";
        let there: Option<ImplementationSpec> = self
            .context
            .look_up(what, &namespace, &issue.name())
            .await?;
        if there.as_ref().is_some_and(|there| is_newer(there, issue)) {
            return Ok(Ok(()));
        }
        match (issue.deed(source, there.as_ref()), &there) {
            (Deed::Nothing, _) | (Deed::Change(_), None) => {}
            (Deed::Taken, _) => {
                let name = issue.name();
                return Ok(Err(format!("another has the name {name}")));
            }
            (Deed::Make(object), _) => {
                let what = "make the ImplementationSpec of an issue";
                self.context.create(what, &*object).await?;
            }
            (Deed::Change(changes), Some(there)) => {
                let what = "change the ImplementationSpec of an issue";
                self.context.change(what, there, changes).await?;
            }
        }
        Ok(Ok(()))
    }

    /// A delivery need not wait any longer.
    pub(super) async fn drop(&self, entry: &ConfigMap) -> Result<bool, Fault> {
        self.context.delete("remove a delivery", entry).await?;
        self.shelves.inbox.unlearn(&Key::of(entry));
        Ok(true)
    }
}

/// Whether more is known of an issue already than a delivery says: they come in any order, and a call can be repeated.
fn is_newer(there: &ImplementationSpec, issue: &Issue) -> bool {
    let known = there.annotations().get(annotation::SOURCE_VERSION);
    let known = known.and_then(|known| known.parse::<Timestamp>().ok());
    let told = issue.version.parse::<Timestamp>().ok();
    known.is_some_and(|known| told.is_some_and(|told| told < known))
}
