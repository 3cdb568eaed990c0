//! What tests of runs need: an object as it is after a status was stored.

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Run;
use crate::api::condition::Moment;
use crate::api::kind::Kind;
use crate::api::status::{Advance, Wanted, advance};
use crate::controller::driver::plan::Standing;

/// The run after this was stored at this time.
pub(in crate::controller) fn after<R>(
    kind: Kind,
    run: &R,
    standing: &Standing<R::Status>,
    now: Timestamp,
) -> R
where
    R: Run + Clone + Serialize + DeserializeOwned,
    R::Status: Serialize,
{
    let wanted = Wanted {
        status: &standing.status,
        observed: &standing.observed,
        reason: standing.reason,
        message: &standing.message,
    };
    let generation = run.meta().generation.unwrap_or_default();
    let at = Moment { generation, now };
    match advance(kind, run.stored(), &wanted, at).unwrap() {
        Advance::Unchanged => run.clone(),
        Advance::Write(status) => {
            let mut json = serde_json::to_value(run).unwrap();
            json["status"] = status;
            serde_json::from_value(json).unwrap()
        }
    }
}
