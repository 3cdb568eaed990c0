//! The next status of an object, by the one rule for all kinds.

use jiff::Timestamp;
use kube::Resource;

use super::Reconciler;
use super::fault::{Class, Fault};
use super::plan::Standing;
use crate::api::condition::Moment;
use crate::api::status::{Advance, Wanted, advance};

/// What to write, if anything.
pub(super) fn next<R: Reconciler>(
    object: &R::Object,
    standing: &Standing<R::Status>,
    now: Timestamp,
) -> Result<Advance, Fault> {
    let wanted = Wanted {
        status: &standing.status,
        observed: &standing.observed,
        reason: standing.reason,
        message: &standing.message,
    };
    let at = Moment {
        generation: object.meta().generation.unwrap_or_default(),
        now,
    };
    advance(R::KIND, R::status(object), &wanted, at)
        .map_err(|error| Fault::new("compute the status", Class::Retryable, &error.to_string()))
}
