//! What who asks for a log is told that is gone.

use http::StatusCode;
use jiff::Timestamp;

use crate::api::contract::env;
use crate::api::kinds::AgentRun;
use crate::controller::{Keep, LogGone};
use crate::serve::carry_out::runs::view::Summary;
use crate::serve::fault::{Fault, Reason};

/// Why there is nothing to read any more.
pub(super) fn fault(run: &AgentRun, seen: &Summary, finished: Timestamp, keep: Keep) -> Fault {
    let why = LogGone::of(run, seen.job_missing(), false, Some(keep));
    let message = format!("the log is gone: the run ended at {finished}, {why}");
    Fault::new(StatusCode::GONE, Reason::LogsGone, message).next(format!(
        "to keep logs of later runs longer, set {} of the controllers (here it is {} s)",
        env::RUNNER_JOB_LOG_RETENTION,
        keep.logs.as_secs(),
    ))
}
