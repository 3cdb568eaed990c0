//! The one reconcile: gather, plan, apply, status; again until there is nothing left to do.
//!
//! Only `gather` reads, only `act` and the status step write, `plan` is pure. A crash between two steps loses nothing,
//! because every pass starts from what is observed. Errors are classified in `fault`; a wait is a plan, not an error.

pub(super) mod fault;
pub(super) mod notes;
pub(super) mod plan;
pub(super) mod queue;
pub(super) mod stand;
mod status;
pub(super) mod untold;
mod work;

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use super::cache::shelves;
use super::cache::{Key, Shelf};
use super::context::Context;
use super::metrics::OK;
use crate::api::contract::annotation;
use crate::api::kind::Kind;
use crate::api::status::Advance;
use crate::events::Reason;
use crate::kit::tasks::panic_text;
use crate::kit::telemetry::propagation::{adopt, from_traceparent};
use fault::{Class, Fault};
use plan::{Next, Notice, Plan, Standing, Step};
pub(super) use work::{Pace, Work, run};

/// Passes over one object in a row. More than a life of a run needs; an object that wants more is at odds with itself.
const PASSES: usize = 12;

/// Time for one reconcile, with all its calls.
const DEADLINE: Duration = Duration::from_secs(60);

/// What a kind brings to the driver.
pub(super) trait Reconciler: Send + Sync + 'static {
    /// The kind.
    const KIND: Kind;
    /// Its type.
    type Object: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static;
    /// The type of its status.
    type Status: Clone + Serialize + PartialEq + Send + Sync + 'static;
    /// What `gather` finds.
    type Observed: Send + Sync;
    /// What `plan` can ask for besides a status.
    type Action: Send + Sync;

    /// Copies of its objects.
    fn shelf(&self) -> &Shelf<Self::Object>;

    /// Where its object holds its status.
    fn status(object: &Self::Object) -> Option<&Self::Status>;

    /// The object of what was observed; none if it is gone.
    fn object(observed: &Self::Observed) -> Option<&Self::Object>;

    /// Reads all that a plan needs. The time is the same for the whole pass.
    fn gather(
        &self,
        key: &Key,
        now: Timestamp,
    ) -> impl Future<Output = Result<Self::Observed, Fault>> + Send;

    /// Decides. Pure.
    fn plan(&self, observed: &Self::Observed) -> Plan<Self::Action, Self::Status>;

    /// Carries out one action; says whether anything changed.
    fn act(
        &self,
        observed: &Self::Observed,
        action: &Self::Action,
    ) -> impl Future<Output = Result<bool, Fault>> + Send;

    /// How the object stands after a fault; none if nothing more is stored about it, because it has ended. Pure.
    fn failed(&self, object: &Self::Object, fault: &Fault) -> Option<Standing<Self::Status>>;

    /// A new status is stored and on the shelf; this is how the object was before.
    fn stored(&self, _before: &Self::Object) {}

    /// Objects that a sweep looks at, besides those on the shelf.
    fn strays(&self) -> Vec<Key> {
        Vec::new()
    }
}

/// Reconciles one object until it is settled; says when to look again.
async fn reconcile<R: Reconciler>(
    reconciler: &R,
    context: &Context,
    key: &Key,
) -> Result<Next, Fault> {
    for _ in 0..PASSES {
        let now = context.clock.now();
        let observed = reconciler.gather(key, now).await?;
        if let Some(object) = R::object(&observed) {
            catch_up::<R>(context, key, object);
        }
        let plan = reconciler.plan(&observed);
        let mut moved = false;
        for step in &plan.steps {
            moved |= match step {
                Step::Do(action) => reconciler.act(&observed, action).await?,
                Step::Status(standing) => match R::object(&observed) {
                    Some(object) => store(reconciler, context, object, standing).await?,
                    None => false,
                },
            };
        }
        if !moved {
            return Ok(plan.next);
        }
    }
    tracing::warn!(kind = %R::KIND, %key, passes = PASSES, "Not settled, looking again later");
    Err(Fault::new(
        "settle the object",
        Class::Retryable,
        "each pass found something new to do",
    ))
}

/// Writes a status if it differs, then tells and counts; says whether it was written.
async fn store<R: Reconciler>(
    reconciler: &R,
    context: &Context,
    object: &R::Object,
    standing: &Standing<R::Status>,
) -> Result<bool, Fault> {
    let next = status::next::<R>(object, standing, context.clock.now())?;
    let Advance::Write(next) = next else {
        return Ok(false);
    };
    let stamp = next["updatedAt"].clone();
    let mut written = match context.write_status(object, next).await {
        Ok(written) => written,
        Err(fault) if fault.class == Class::Retryable && !fault.is_not_found() => {
            context.untold.note(untold::Write {
                kind: R::KIND,
                key: Key::of(object),
                over: object.meta().resource_version.clone(),
                stamp,
                notices: standing.notices.clone(),
                facts: standing.facts.clone(),
            });
            return Err(fault);
        }
        Err(fault) if fault.is_not_found() => {
            // It went meanwhile, so there is nothing to say about it any more.
            reconciler.shelf().unlearn(&Key::of(object));
            return Ok(true);
        }
        Err(fault) => return Err(fault),
    };
    shelves::prune(&mut written);
    reconciler.shelf().learn(written);
    reconciler.stored(object);
    context.tell(object, &standing.notices);
    context.metrics.count(&standing.facts);
    Ok(true)
}

/// Tells and counts what a write without an answer has stored after all.
fn catch_up<R: Reconciler>(context: &Context, key: &Key, object: &R::Object) {
    if !context.untold.has(R::KIND, key) {
        return;
    }
    let status = serde_json::to_value(R::status(object)).unwrap_or_default();
    let version = object.meta().resource_version.as_deref();
    let done = context
        .untold
        .take(R::KIND, key, version, &status["updatedAt"]);
    if let Some(write) = done {
        context.tell(object, &write.notices);
        context.metrics.count(&write.facts);
    }
}

/// One reconcile as the workers run it: bounded in time, its fault shown on the object, in the trace of the object.
pub(super) async fn attempt<R: Reconciler>(
    reconciler: Arc<R>,
    context: Arc<Context>,
    key: Key,
) -> Result<Next, Fault> {
    let span = span(&*reconciler, &key);
    let attempt = async {
        let result = try_once(&*reconciler, &context, &key).await;
        let class = result.as_ref().err().map(|fault| fault.class);
        let here = Span::current();
        here.record("result", class.map_or(OK, Class::as_str));
        if class.is_some() {
            here.record("otel.status_code", "ERROR");
        }
        result
    };
    attempt.instrument(span).await
}

/// The span of a reconcile. What was admitted with a trace goes on in it.
fn span<R: Reconciler>(reconciler: &R, key: &Key) -> Span {
    let span = info_span!(
        "reconcile",
        otel.status_code = Empty,
        kind = R::KIND.as_str(),
        namespace = key.namespace,
        name = key.name,
        result = Empty,
    );
    let object = reconciler.shelf().get(key);
    let trace = object.and_then(|object| {
        let trace = object.annotations().get(annotation::TRACEPARENT)?;
        from_traceparent(trace)
    });
    if let Some(trace) = trace {
        adopt(&span, trace);
    }
    span
}

async fn try_once<R: Reconciler>(
    reconciler: &R,
    context: &Context,
    key: &Key,
) -> Result<Next, Fault> {
    let started = Instant::now();
    // What is shared with other reconciles is behind locks that outlive a panic, and every pass starts from what is observed.
    let work = AssertUnwindSafe(reconcile(reconciler, context, key)).catch_unwind();
    let result = match timeout(DEADLINE, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(panicked::<R>(context, key, &*panic)),
        Err(_) => Err(Fault::new(
            "finish in time",
            Class::Retryable,
            "it took longer than a minute",
        )),
    };
    let seconds = started.elapsed().as_secs_f64();
    let class = result.as_ref().err().map(|fault| fault.class);
    context.metrics.reconciled(R::KIND, class, seconds);
    if let Err(fault) = &result {
        show(reconciler, context, key, fault).await;
    }
    result
}

/// A panic is a defect of ours: the object says so, and the log where.
fn panicked<R: Reconciler>(context: &Context, key: &Key, panic: &(dyn Any + Send)) -> Fault {
    let error = panic_text(panic);
    tracing::error!(kind = %R::KIND, %key, error, "Reconcile panicked");
    context.metrics.panicked(R::KIND);
    let why = "the controller has a defect and panicked; its log says more";
    Fault::new("reconcile the object", Class::Panic, why)
}

/// Shows a fault where people look: log, condition, Event. What cannot be written is tried with the next attempt.
async fn show<R: Reconciler>(reconciler: &R, context: &Context, key: &Key, fault: &Fault) {
    let sentence = fault.sentence();
    let class = fault.class.as_str();
    match fault.class {
        Class::Conflict | Class::Fenced => {
            tracing::debug!(kind = %R::KIND, %key, class, fault = sentence, "Reconcile gave way");
            return;
        }
        Class::Retryable
        | Class::Spec
        | Class::Config
        | Class::Forbidden
        | Class::NameTaken
        | Class::Panic => {
            tracing::warn!(kind = %R::KIND, %key, class, fault = sentence, "Reconcile failed");
        }
    }
    let Some(object) = reconciler.shelf().get(key) else {
        return;
    };
    let Some(standing) = reconciler.failed(&object, fault) else {
        return tell(reconciler, context, key, (Reason::CleanupFailed, fault));
    };
    let stored = timeout(DEADLINE, store(reconciler, context, &object, &standing)).await;
    if let Ok(Err(fault)) = stored {
        tracing::debug!(kind = %R::KIND, %key, fault = fault.sentence(), "A fault could not be shown");
    }
}

/// Tells of a fault that no status shows.
fn tell<R: Reconciler>(
    reconciler: &R,
    context: &Context,
    key: &Key,
    (reason, fault): (Reason, &Fault),
) {
    if let Some(object) = reconciler.shelf().get(key) {
        let note = fault.sentence();
        let job = None;
        context.tell(&*object, &[Notice { reason, note, job }]);
    }
}
