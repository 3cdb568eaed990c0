//! How the queue stands, and who says so.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::controller::load::Figures;

/// What is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Snapshot {
    pub(super) at: Timestamp,
    pub(super) source: Source,
    /// The pod that leads, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leader: Option<String>,
    #[serde(rename = "queue")]
    pub(super) figures: Figures,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Source {
    /// The controller that leads.
    Leader,
    /// The runs, as they were counted here.
    Runs,
}

/// What the leader answers.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Told {
    pub(super) at: Timestamp,
    /// None where the controller does not lead.
    pub(super) queue: Option<Figures>,
}
