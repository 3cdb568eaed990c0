//! The status contract once more, as short as it can be said: what the rules in `api` are held against, here and on a real
//! API server. Shares no code with them.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Phases that a run ends in, and the conditions that go with them.
pub(crate) const TERMINAL: [&str; 3] = ["Succeeded", "Failed", "Cancelled"];

/// S1 to S7 between two statuses that were stored one after the other.
pub(crate) fn holds(
    is_run: bool,
    old: &Value,
    new: &Value,
    generation: i64,
) -> Result<(), &'static str> {
    let seen = |status: &Value| status["observedGeneration"].as_i64();
    demand(seen(new) <= Some(generation), "S1 ahead")?;
    demand(seen(new) >= seen(old), "S1 back")?;
    let is_bare = |status: &Value| status.as_object().is_none_or(Map::is_empty);
    let moved = old["updatedAt"] != new["updatedAt"];
    demand(
        old == new || moved || (is_bare(old) && is_bare(new)),
        "S2 not moved",
    )?;
    let (before, after) = (conditions(old), conditions(new));
    for (index, entry) in after.iter().enumerate() {
        let same = |other: &Value| other["type"] == entry["type"];
        demand(after.iter().position(same) == Some(index), "S6 twice")?;
        let earlier = before.iter().find(|other| same(other));
        if let Some(earlier) = earlier {
            let flipped = earlier["status"] != entry["status"];
            let moved = earlier["lastTransitionTime"] != entry["lastTransitionTime"];
            demand(flipped == moved, "S6 time and flip")?;
        }
        demand(seen(entry) <= Some(generation), "S6 ahead")?;
        demand(seen(entry) >= earlier.and_then(seen), "S6 back")?;
        let says = |entry: &Value| ["status", "reason", "message"].map(|name| entry[name].clone());
        let repeats = earlier.is_some_and(|earlier| says(earlier) == says(entry));
        let names_one = seen(entry).is_some() || seen(new).is_none();
        demand(repeats || names_one, "S6 without a generation")?;
    }
    if is_run { run(old, new) } else { Ok(()) }
}

fn run(old: &Value, new: &Value) -> Result<(), &'static str> {
    for name in ["startedAt", "finishedAt"] {
        let kept = old[name].is_null() || old[name] == new[name];
        demand(kept, "S3, S4, S7 a time that is written once")?;
    }
    let ended = |status: &Value| {
        let phase = status["phase"].as_str()?;
        TERMINAL.into_iter().find(|terminal| *terminal == phase)
    };
    demand(ended(old).is_none() || ended(new) == ended(old), "S5 left")?;
    let starts = new["phase"] != "Running" || !new["startedAt"].is_null();
    demand(starts, "S3 running without a start")?;
    let at = |name: &str| {
        new[name]
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
    };
    if let (Some(start), Some(end)) = (at("startedAt"), at("finishedAt")) {
        demand(start <= end, "S4 backwards")?;
    }
    let Some(phase) = ended(new) else {
        return Ok(());
    };
    demand(!new["finishedAt"].is_null(), "S4 no end")?;
    let holding: Vec<&str> = conditions(new)
        .iter()
        .filter(|entry| entry["status"] == "True")
        .filter_map(|entry| entry["type"].as_str())
        .filter(|type_| TERMINAL.contains(type_))
        .collect();
    demand(holding == [phase], "S6 terminal condition")
}

fn conditions(status: &Value) -> &[Value] {
    status["conditions"].as_array().map_or(&[], Vec::as_slice)
}

fn demand(holds: bool, broken: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(broken) }
}
