//! What holds for every input, however odd. Each target takes bytes and panics if a promise is broken.
//!
//! The fuzzer looks for such bytes; a plain test goes through the corpus.

use std::sync::LazyLock;

use agents::api::{
    condition::Moment, kind::Kind, object::defaults::defaults, object::examine::examine,
    policy::Policy, registration::rung::Rung, status,
};
use agents_webhook::{
    Admission, decide::Stance, lookup::Lookup, metrics::Metrics, patch, policy::Policies,
    service::Side, subject::Door,
};
use jiff::Timestamp;
use serde_json::{Value, json};

static ADMISSION: LazyLock<Admission> = LazyLock::new(|| {
    let stance = Stance {
        rung: Rung::Fail,
        ..Stance::default()
    };
    let policies = Policies::fixed(Policy::default(), None);
    Admission::new(
        policies,
        Lookup::empty(),
        stance,
        Side::default(),
        Metrics::default(),
    )
});

/// Every door answers with a review, and never by a fault of its own.
pub fn review(input: &[u8]) {
    for door in Door::ALL {
        let answer = ADMISSION.answer(door, input);
        assert_ne!(answer.status.as_u16(), 500, "{door:?}");
        let review: Value = serde_json::from_slice(&answer.body).expect("an answer in JSON");
        assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
        assert!(review["response"]["uid"].is_string(), "{review}");
        assert!(review["response"]["allowed"].is_boolean(), "{review}");
    }
}

/// The first byte chooses the kind, the rest is the object. Its faults are the same each time, none is new in an update
/// that changes nothing, and defaults are filled in once.
pub fn validation(input: &[u8]) {
    let Some((kind, mut object)) = kind_and_value(input) else {
        return;
    };
    let faults = examine(kind, &object, None);
    assert_eq!(examine(kind, &object, None), faults);
    assert_eq!(examine(kind, &object, Some(&object)), []);
    let mut operations = Vec::new();
    for (path, value) in defaults(kind, &object) {
        patch::set(&mut object, path, value, &mut operations);
    }
    assert_eq!(defaults(kind, &object), []);
}

/// A list of two values: the difference, applied to the first, gives the second.
pub fn patch(input: &[u8]) {
    let Ok(Value::Array(values)) = serde_json::from_slice(input) else {
        return;
    };
    let [from, to] = &values[..] else {
        return;
    };
    let operations = patch::difference("status", Some(from), Some(to));
    let mut object = json!({"status": from, "other": 1});
    json_patch::patch(&mut object, &operations).expect("a patch that applies");
    assert_eq!(object, json!({"status": to, "other": 1}));
    assert_eq!(patch::difference("status", Some(to), Some(to)), []);
}

/// The first byte chooses the kind, then a list of the old and the new status. What was repaired needs no repair.
pub fn status(input: &[u8]) {
    let Some((kind, Value::Array(values))) = kind_and_value(input) else {
        return;
    };
    let [old, new] = &values[..] else {
        return;
    };
    let at = Moment {
        now: Timestamp::UNIX_EPOCH,
        generation: 3,
    };
    let (old, new) = (Some(old), Some(new));
    let mended = status::repair(kind, old, new, at);
    assert_eq!(status::repair(kind, old, mended.as_ref(), at), mended);
    let causes = status::check(kind, old, mended.as_ref(), at);
    assert_eq!(status::check(kind, old, mended.as_ref(), at), causes);
}

fn kind_and_value(input: &[u8]) -> Option<(Kind, Value)> {
    let (first, rest) = input.split_first()?;
    let kind = Kind::ALL[usize::from(*first) % Kind::ALL.len()];
    Some((kind, serde_json::from_slice(rest).ok()?))
}
