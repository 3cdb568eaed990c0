//! Calls of trackers. Who calls brings no token but a signature, which is checked before anything of the call is read;
//! nothing that an unsigned call brings reaches the API server. What is signed waits in the cluster until the
//! controllers take it over.
//!
//! [`keyring`] knows the secrets of the sources, [`signature`] what is signed with them, [`queue`] where deliveries wait.

mod keyring;
mod queue;
mod signature;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use ring::hmac;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Mutex, Semaphore};

use super::answer::{self, Answer};
use super::fault::{Fault, Reason};
use super::metrics::{DeliveryMetrics, Outcome};
use super::operation::Id;
use super::route::Route;
use super::service::{Given, too_many};
use super::state::State;
use crate::api::kinds::ImplementationSource;
use crate::api::kinds::agents::implementation_source::TrackerProvider;
use crate::api::tracker::{Delivery, Misread, Payload, word};
use crate::cluster::Namespaces;
use keyring::Keyring;
use queue::Queued;
use signature::Signature;

/// Largest call, in bytes: the text of an issue has 64 KiB, and a call can hold it twice.
const BODY: usize = 512 * 1024;

/// Time for the body of a call to come in.
const READING: Duration = Duration::from_secs(5);

/// Calls that are looked at at once.
const CALLS: usize = 64;

/// Longest name of a call, in bytes.
const LONGEST_ID: usize = 128;

/// What takes calls in.
pub(super) struct Inbound {
    client: Client,
    namespaces: Namespaces,
    keyring: ArcSwap<Keyring>,
    /// For checks that no source can pass, so that they cost the same.
    decoy: hmac::Key,
    /// Most deliveries that may wait.
    most: usize,
    /// Held while it is counted and one is added.
    turn: Mutex<()>,
    room: Semaphore,
    metrics: DeliveryMetrics,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Delivered {
    /// `queued`, `duplicate` or `ignored`.
    status: &'static str,
    /// For how many sources it waits now.
    queued: usize,
    /// For how many it waits already, or was taken over.
    duplicates: usize,
}

impl Inbound {
    pub(super) fn new(
        client: Client,
        namespaces: Namespaces,
        most: usize,
        metrics: DeliveryMetrics,
    ) -> Self {
        let bytes: [u8; 32] = std::array::from_fn(|_| fastrand::u8(..));
        Self {
            client,
            namespaces,
            keyring: ArcSwap::default(),
            decoy: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            most,
            turn: Mutex::default(),
            room: Semaphore::new(CALLS),
            metrics,
        }
    }

    async fn taken(
        &self,
        route: &Route,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Delivered, Fault> {
        let signature = Signature::of(route.operation.id, headers);
        let sources = self.signers(route, &signature, body).await;
        let Some(first) = sources.first() else {
            return Err(unsigned());
        };
        let provider = first.spec.provider;
        let now = Timestamp::now();
        let event = text(headers, event_header(provider));
        let payload = match Payload::read(provider, event, body, now) {
            Ok(Some(payload)) => payload,
            Ok(None) => return Ok(Delivered::nothing("ignored", 0)),
            Err(misread) => return Err(misfit(misread)),
        };
        let mut delivered = Delivered::nothing("duplicate", 0);
        let id = text(headers, id_header(provider));
        let id = id.filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
        let wanted = sources.iter();
        let wanted = wanted.filter(|source| payload.is_in(source.spec.scope.as_ref()));
        let mut is_wanted = false;
        for source in wanted {
            is_wanted = true;
            let issue = payload.issue(source.spec.scope.as_ref());
            let delivery = Delivery {
                key: id.map_or_else(|| format!("{}@{}", issue.id, issue.version), str::to_owned),
                id: id.map(str::to_owned),
                received_at: now,
                issue,
            };
            match self.put(source, &delivery).await? {
                Queued::Added => {
                    delivered.queued += 1;
                    tell(route.operation.id, source, &delivery);
                }
                Queued::Known => delivered.duplicates += 1,
            }
        }
        match (is_wanted, delivered.queued) {
            (false, _) => Err(out_of_scope()),
            (true, 0) => Ok(delivered),
            (true, _) => Ok(Delivered {
                status: "queued",
                ..delivered
            }),
        }
    }

    /// The sources whose secret signed a body. All that could be are tried, whether or not one was found.
    async fn signers(
        &self,
        route: &Route,
        signature: &Signature,
        body: &[u8],
    ) -> Vec<Arc<ImplementationSource>> {
        let keyring = self.keyring.load_full();
        let mut found = Vec::new();
        let mut is_tried = false;
        for (key, source) in keyring.of(route) {
            let Some(given) = signature.for_tracker(source.spec.provider) else {
                continue;
            };
            is_tried = true;
            if hmac::verify(key, body, &given).is_ok() {
                found.push(Arc::clone(source));
            }
            tokio::task::yield_now().await;
        }
        if !is_tried {
            let _ = hmac::verify(&self.decoy, body, &signature::NOTHING);
        }
        found
    }
}

/// Takes a call in.
pub(super) async fn take(
    state: &State,
    route: &Route,
    headers: &HeaderMap,
    body: Given,
) -> Result<Answer, Fault> {
    let Some(inbound) = &state.inbound else {
        return Err(switched_off());
    };
    let Ok(_room) = inbound.room.try_acquire() else {
        return Err(too_many());
    };
    let body = body.read(headers, BODY, READING).await?;
    let taken = inbound.taken(route, headers, &body).await;
    inbound.metrics.came(Outcome::of(&taken));
    let delivered = taken?;
    let status = match delivered.queued {
        0 => StatusCode::OK,
        _ => StatusCode::ACCEPTED,
    };
    Ok(answer::json(status, &delivered))
}

impl Delivered {
    fn nothing(status: &'static str, duplicates: usize) -> Self {
        Self {
            status,
            queued: 0,
            duplicates,
        }
    }
}

impl Outcome {
    fn of(taken: &Result<Delivered, Fault>) -> Self {
        match taken {
            Ok(delivered) if delivered.queued > 0 => Self::Queued,
            Ok(delivered) if delivered.duplicates > 0 => Self::Duplicate,
            Ok(_) => Self::Ignored,
            Err(fault) => {
                let sorts = [
                    (Reason::NotSigned, Self::Unsigned),
                    (Reason::QueueFull, Self::Full),
                    (Reason::Stale, Self::Unfit),
                    (Reason::BadRequest, Self::Unfit),
                    (Reason::OutOfScope, Self::Unfit),
                ];
                let sort = sorts.iter().find(|(reason, _)| *reason == fault.reason());
                sort.map_or(Self::Failed, |(_, outcome)| *outcome)
            }
        }
    }
}

/// The line in the log about something that was written.
fn tell(operation: Id, source: &ImplementationSource, delivery: &Delivery) {
    tracing::info!(
        operation = operation.as_str(),
        user = format!("tracker:{}", word(source.spec.provider)),
        namespace = source.namespace().unwrap_or_default(),
        name = source.name_any(),
        delivery = delivery.id.as_deref().unwrap_or_default(),
        status = StatusCode::ACCEPTED.as_u16(),
        reason = "",
        "Audit"
    );
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

const fn event_header(provider: TrackerProvider) -> &'static str {
    match provider {
        TrackerProvider::Github => "x-github-event",
        TrackerProvider::Linear => "linear-event",
    }
}

const fn id_header(provider: TrackerProvider) -> &'static str {
    match provider {
        TrackerProvider::Github => "x-github-delivery",
        TrackerProvider::Linear => "linear-delivery",
    }
}

fn unsigned() -> Fault {
    let message = "no source that takes calls signed this one";
    Fault::new(StatusCode::UNAUTHORIZED, Reason::NotSigned, message).next(
        "give the tracker the secret that spec.auth.secretRef of an ImplementationSource names, and switch spec.webhook on; a new secret is known within seconds",
    )
}

fn misfit(misread: Misread) -> Fault {
    match misread {
        Misread::Malformed => Fault::bad_request("the call says nothing that can be understood")
            .next("have the tracker send calls about issues as JSON"),
        Misread::Stale => Fault::new(
            StatusCode::BAD_REQUEST,
            Reason::Stale,
            "the call is too old, or from the future",
        )
        .next("look at the clock of the control plane, or have the tracker send what is new"),
    }
}

fn out_of_scope() -> Fault {
    let message = "no source is about this issue";
    Fault::new(StatusCode::NOT_FOUND, Reason::OutOfScope, message)
        .next("look at spec.scope of the ImplementationSource")
}

fn switched_off() -> Fault {
    let message = "this control plane takes no calls of trackers";
    Fault::new(StatusCode::NOT_FOUND, Reason::DeliveriesOff, message)
        .next("set controller.webhook.enabled in the values of the chart")
}
