//! Whoever is quick decides as whoever looks at everything, about whatever comes.

use serde_json::{Value, json};

use super::super::Stance;
use super::super::spec::decide_as_a_whole;
use super::*;
use crate::admission::in_force::InForce;
use crate::admission::known::Known;
use crate::admission::question::question;
use crate::admission::review::decode;
use crate::admission::subject::{Door, Sorted, sort};
use crate::api::kinds::tests::fixtures;
use crate::api::registration::rung::Rung;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The places in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(entries) => {
            for (index, value) in entries.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The object, and everything that comes of it when one thing in its spec is left out or something else.
fn variants(object: &Value) -> Vec<Value> {
    let mut all = vec![object.clone()];
    let mut found = Vec::new();
    places(&object["spec"], "/spec", &mut found);
    for place in &found {
        for other in [json!(null), json!("x y"), json!(-7), json!({}), json!([])] {
            let mut changed = object.clone();
            if let Some(there) = changed.pointer_mut(place) {
                *there = other;
                all.push(changed);
            }
        }
        if let Some((parent, name)) = place.rsplit_once('/') {
            let mut less = object.clone();
            let fields = less.pointer_mut(parent).and_then(Value::as_object_mut);
            if fields.is_some_and(|fields| fields.remove(name).is_some()) {
                all.push(less);
            }
        }
    }
    all
}

#[test]
fn the_quick_way_and_the_whole_way_decide_alike() {
    let policy = json!({"images": {"denied": ["evil/*"]}, "labels": {"required": ["team"]}});
    let policy: Policy = serde_json::from_value(policy).unwrap();
    let in_force = InForce {
        active: policy.into(),
        candidate: None,
    };
    let stance = Stance {
        rung: Rung::Fail,
        ..Stance::default()
    };
    let context = Context {
        in_force: &in_force,
        known: &Known::default(),
        stance: &stance,
        now: jiff::Timestamp::UNIX_EPOCH,
        traceparent: Some(TRACEPARENT),
    };
    let mut objects = fixtures::objects("tests/fixtures/full");
    objects.extend(fixtures::objects("examples"));
    let (mut quick, mut asked) = (0, 0);
    for fixtures::Fixture { kind, object, .. } in objects {
        for object in variants(&object) {
            let review = question(kind, "team", &object, None).to_string();
            // The API server never asks `/validate` about what its schema refuses.
            let is_asked = conforms(kind, &object["spec"]);
            let doors = [Some(Door::Mutate), is_asked.then_some(Door::Validate)];
            for door in doors.into_iter().flatten() {
                let Sorted::Ours(subject) = sort(door, decode(review.as_bytes()).unwrap()) else {
                    panic!("foreign: {review}");
                };
                let Some(new) = &subject.request.object else {
                    panic!("no object: {review}");
                };
                let (mut one, mut other) = (Decision::default(), Decision::default());
                asked += 1;
                if decide(kind, &subject, &context, new, &mut one) {
                    quick += 1;
                    decide_as_a_whole(kind, &subject, &context, new, &mut other);
                    assert!(one == other, "{door:?} {review}\n{one:?}\n{other:?}");
                } else {
                    assert_eq!(one, Decision::default(), "{review}");
                }
            }
        }
    }
    assert!(quick > 1_000 && quick < asked, "{quick} of {asked}");
}
