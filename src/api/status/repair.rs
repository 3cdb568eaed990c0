//! Mends what a foreign writer left out or could not know: times, and fields that omission must not erase.
//!
//! Only what is mechanical. A contradiction is left as it is for [`check`](super::check) to name.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::fields::{
    FINISHED_AT, Fields, OBSERVED_GENERATION, PHASE, STARTED_AT, UPDATED_AT, time_of,
};
use super::{fill_times, stamp_updated_at};
use crate::api::condition::Moment;
use crate::api::condition::stamp::{Grain, latest_plausible};
use crate::api::kind::Kind;
use crate::api::phase;

/// The status to store instead of `new`: S7 restored, S3 and S4 filled, transition times in step with the flips, and
/// S2 stamped if anything else differs from `old`. None where there is no status, before or after.
///
/// Doing it twice changes nothing more, also when time has passed.
pub fn repair(kind: Kind, old: Option<&Value>, new: Option<&Value>, at: Moment) -> Option<Value> {
    if old.is_none() && new.is_none() {
        return None;
    }
    let stored = Fields::from(old);
    let mut next = Fields::from(new);
    next_keeps_what_is_written_once(kind, &stored, &mut next);
    if phase::is_run(kind) && stored.phase() != next.phase() {
        fill_times(&mut next, at.now);
    }
    repair_conditions(&stored, &mut next, at);
    if stored.same_but_for_updated_at(&next) {
        return Some(stored.into_value());
    }
    let plausible = |status: &Fields| {
        let time = status.time(UPDATED_AT);
        time.filter(|time| *time <= latest_plausible(at.now))
    };
    let given = plausible(&next);
    if given.is_none() || given <= plausible(&stored) {
        stamp_updated_at(&stored, &mut next, at.now);
    }
    Some(next.into_value())
}

/// S7, and S1 where the generation was left out. A time that lost its fraction on the way through a client that
/// keeps whole seconds is the same time.
fn next_keeps_what_is_written_once(kind: Kind, stored: &Fields, next: &mut Fields) {
    if next.get(OBSERVED_GENERATION).is_none() {
        next.restore(stored, OBSERVED_GENERATION);
    }
    if !phase::is_run(kind) {
        return;
    }
    for name in [STARTED_AT, FINISHED_AT] {
        let same = match (next.time(name), stored.time(name)) {
            (Some(new), Some(old)) => new.as_second() == old.as_second(),
            (None, _) | (_, None) => next.get(name).is_none(),
        };
        if same {
            next.restore(stored, name);
        }
    }
    if next.get(PHASE).is_none() && stored.phase().is_some_and(phase::Phase::is_terminal) {
        next.restore(stored, PHASE);
    }
}

fn repair_conditions(stored: &Fields, next: &mut Fields, at: Moment) {
    let generation = next.get(OBSERVED_GENERATION).cloned();
    let mut stored_by_type: HashMap<&str, &Map<String, Value>> = HashMap::new();
    for before in stored.raw_conditions().iter().filter_map(Value::as_object) {
        if let Some(type_) = type_of(before) {
            stored_by_type.entry(type_).or_insert(before);
        }
    }
    for entry in next.raw_conditions_mut() {
        let Some(entry) = entry.as_object_mut() else {
            continue;
        };
        entry.retain(|_, value| !value.is_null());
        let before = type_of(entry).and_then(|type_| stored_by_type.get(type_).copied());
        repair_transition_time(before, entry, at);
        repair_generation(before, entry, generation.as_ref(), at);
    }
}

fn type_of(entry: &Map<String, Value>) -> Option<&str> {
    entry.get("type")?.as_str()
}

const TRANSITION: &str = "lastTransitionTime";

/// S6: the time moves with the flip, and only with it. A time that moved without one is left for the judge.
fn repair_transition_time(
    before: Option<&Map<String, Value>>,
    entry: &mut Map<String, Value>,
    at: Moment,
) {
    let earlier = before.and_then(|before| before.get(TRANSITION));
    let earlier_time = earlier.and_then(time_of);
    let given = entry.get(TRANSITION);
    let given_time = given.and_then(time_of);
    let flipped = before.is_some_and(|before| before.get("status") != entry.get("status"));
    let stays = given.is_none()
        || given_time.map(Timestamp::as_second) == earlier_time.map(Timestamp::as_second);
    let time = match earlier {
        _ if !stays => return,
        _ if flipped || before.is_none() => {
            Grain::Second.moved(earlier_time, at.now).to_string().into()
        }
        Some(earlier) => earlier.clone(),
        None => return,
    };
    entry.insert(TRANSITION.to_owned(), time);
}

/// A condition that says what it said before is still about the same spec; any other is about the spec of the status,
/// or about the one before if that is newer. Where neither is known, it is about the spec as it is now.
fn repair_generation(
    before: Option<&Map<String, Value>>,
    entry: &mut Map<String, Value>,
    generation: Option<&Value>,
    at: Moment,
) {
    if entry.contains_key(OBSERVED_GENERATION) {
        return;
    }
    let same = |before: &&Map<String, Value>| {
        ["status", "reason", "message"]
            .iter()
            .all(|name| before.get(*name) == entry.get(*name))
    };
    let seen = before.and_then(|before| before.get(OBSERVED_GENERATION));
    let generation = match before.filter(same) {
        Some(_) => seen.cloned(),
        None => {
            let known = [seen, generation].into_iter().flatten();
            let newest = known.max_by_key(|given| given.as_i64()).cloned();
            Some(newest.unwrap_or_else(|| at.generation.into()))
        }
    };
    if let Some(generation) = generation {
        entry.insert(OBSERVED_GENERATION.to_owned(), generation);
    }
}
