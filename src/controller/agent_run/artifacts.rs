//! What a run leaves behind is written into its status by others; here it is kept within bounds. Pure.

use crate::api::condition::{ConditionStatus, ConditionType, Lifecycle, Observation};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::AgentRunStatus;
use crate::api::kinds::shared::ArtifactRef;
use crate::controller::driver::plan::Standing;
use crate::controller::runs::holds;

/// No run keeps more, whatever the operator says: the schema allows no more.
pub(super) const MOST: usize = 50;
/// Longest address of an artifact.
const LONGEST_URL: usize = 2048;

/// What the operator allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Artifacts {
    /// Artifacts that a run keeps.
    pub(crate) max: usize,
    /// Whether a run fails that leaves more behind, or something that is not allowed.
    pub(crate) strict: bool,
}

impl Default for Artifacts {
    fn default() -> Self {
        Self {
            max: MOST,
            strict: false,
        }
    }
}

/// A list within bounds, and why it had to be changed, if it had.
#[derive(Clone, Debug, PartialEq)]
struct Bounded {
    kept: Vec<ArtifactRef>,
    reason: Option<Lifecycle>,
}

/// Keeps the last ones, without those that have no name and without addresses that hold their content or are too long.
fn bound(given: &[ArtifactRef], max: usize) -> Bounded {
    let mut reasons = Vec::new();
    let mut kept = Vec::new();
    for artifact in given {
        let ArtifactRef {
            name,
            path,
            key,
            url,
        } = artifact;
        let name = name.trim();
        if name.is_empty() {
            reasons.push(Lifecycle::MissingName);
            continue;
        }
        let url = trimmed(url.as_deref());
        let fault = url.as_deref().and_then(flaw);
        reasons.extend(fault);
        kept.push(ArtifactRef {
            name: name.to_owned(),
            path: trimmed(path.as_deref()),
            key: trimmed(key.as_deref()),
            url: url.filter(|_| fault.is_none()),
        });
    }
    let excess = kept.len().saturating_sub(max.min(MOST));
    if excess > 0 {
        reasons.push(Lifecycle::TooManyArtifacts);
        kept.drain(..excess);
    }
    reasons.sort_unstable();
    reasons.dedup();
    let reason = match reasons.as_slice() {
        [] => None,
        [only] => Some(*only),
        [_, ..] => Some(Lifecycle::Limited),
    };
    Bounded { kept, reason }
}

fn trimmed(text: Option<&str>) -> Option<String> {
    let text = text?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn flaw(url: &str) -> Option<Lifecycle> {
    let scheme = url.get(..5).unwrap_or_default();
    if scheme.eq_ignore_ascii_case("data:") {
        Some(Lifecycle::InlineUrlDisallowed)
    } else if url.chars().count() > LONGEST_URL {
        Some(Lifecycle::UrlTooLong)
    } else {
        None
    }
}

/// Whether what is stored of a run is not within bounds.
pub(super) fn is_over(run: &AgentRun, limits: Artifacts) -> bool {
    let given = run.status.as_ref();
    let given = given.and_then(|status| status.artifacts.as_deref());
    given.is_some_and(|given| bound(given, limits.max).kept != given)
}

/// Why a run fails whose artifacts are not within bounds, if the operator wants that.
pub(super) fn breach(run: &AgentRun, limits: Artifacts) -> Option<String> {
    let given = run.status.as_ref()?.artifacts.as_deref()?;
    let reason = bound(given, limits.max).reason.filter(|_| limits.strict)?;
    Some(sentence(reason))
}

fn sentence(reason: Lifecycle) -> String {
    let meaning = reason.meaning();
    meaning.trim_end_matches('.').to_owned()
}

/// Brings the artifacts of a run within bounds and says so. What was cut off once stays said.
pub(super) fn limit(run: &AgentRun, next: &mut Standing<AgentRunStatus>, limits: Artifacts) {
    let Some(given) = next.status.artifacts.as_deref() else {
        return;
    };
    let Bounded { kept, reason } = bound(given, limits.max);
    next.status.artifacts = Some(kept);
    let type_ = ConditionType::ArtifactsLimited;
    let observed = match reason {
        Some(reason) => Observation::new(type_, ConditionStatus::True, reason, sentence(reason)),
        None if holds(run, type_) => return,
        None => {
            let within = Lifecycle::WithinLimits;
            Observation::new(type_, ConditionStatus::False, within, "")
        }
    };
    next.observed.push(observed);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn bounded(given: Value, max: usize) -> (Value, Option<&'static str>) {
        let given: Vec<ArtifactRef> = serde_json::from_value(given).unwrap();
        let Bounded { kept, reason } = bound(&given, max);
        (
            serde_json::to_value(kept).unwrap(),
            reason.map(Lifecycle::as_str),
        )
    }

    #[test]
    fn artifacts_are_kept_within_bounds() {
        let fine = json!([{"name": "log", "path": "/a", "key": "k", "url": "https://host/a"}]);
        let long = format!("https://host/{}", "a".repeat(LONGEST_URL));
        let many: Vec<Value> = (0..60).map(|n| json!({"name": n.to_string()})).collect();
        for (row, given, max, kept, reason) in [
            ("nothing", json!([]), 50, json!([]), None),
            ("in order", fine.clone(), 50, fine, None),
            (
                "blanks around and alone",
                json!([{"name": " log ", "path": " ", "url": " https://host "}]),
                50,
                json!([{"name": "log", "url": "https://host"}]),
                None,
            ),
            (
                "no name",
                json!([{"name": " "}, {"name": "b"}]),
                50,
                json!([{"name": "b"}]),
                Some("MissingName"),
            ),
            (
                "its content in its address",
                json!([{"name": "a", "url": "DATA:text/plain,secret", "key": "k"}]),
                50,
                json!([{"name": "a", "key": "k"}]),
                Some("InlineUrlDisallowed"),
            ),
            (
                "a long address",
                json!([{"name": "a", "url": long}]),
                50,
                json!([{"name": "a"}]),
                Some("UrlTooLong"),
            ),
            (
                "the last ones stay",
                json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]),
                2,
                json!([{"name": "b"}, {"name": "c"}]),
                Some("TooManyArtifacts"),
            ),
            (
                "none",
                json!([{"name": "a"}]),
                0,
                json!([]),
                Some("TooManyArtifacts"),
            ),
            (
                "never more than the schema allows",
                json!(many),
                1000,
                json!(many[10..]),
                Some("TooManyArtifacts"),
            ),
            (
                "several reasons",
                json!([{"name": ""}, {"name": "a"}, {"name": "b"}]),
                1,
                json!([{"name": "b"}]),
                Some("Limited"),
            ),
        ] {
            assert_eq!(bounded(given, max), (kept, reason), "{row}");
        }
    }
}
