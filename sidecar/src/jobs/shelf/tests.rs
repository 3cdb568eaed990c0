use agents::api::custody::Outcome;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::view::tests::{finished, going, marked, running, time, view};
use super::*;

fn job(uid: &str, more: &[Value]) -> View {
    let uid = json!({"metadata": {"uid": uid}});
    view(&[&[uid], more].concat())
}

/// A shelf that has listed these.
fn listed(jobs: &[View]) -> Shelf {
    let mut shelf = Shelf::default();
    shelf.begin();
    for job in jobs {
        shelf.put(job.clone(), time(0));
    }
    assert_eq!(shelf.complete(), []);
    shelf
}

#[test]
fn what_happened_before_the_first_list_is_not_counted() {
    let mut shelf = Shelf::default();
    shelf.begin();
    let change = shelf.put(job("a", &[running()]), time(0));
    assert_eq!(change.transitions, []);
    shelf.complete();
    let change = shelf.put(job("b", &[running()]), time(0));
    assert_eq!(
        change.transitions,
        [Transition::Created, Transition::Running]
    );
    let change = shelf.put(job("a", &[finished("Complete")]), time(0));
    let after = Some(SignedDuration::from_secs(8));
    let outcome = Outcome::Succeeded;
    assert_eq!(
        change.transitions,
        [Transition::Finished { outcome, after }]
    );
}

#[test]
fn what_a_list_lacks_has_gone_unseen() {
    let recorded = job("stored", &[finished("Complete"), marked()]);
    let mut shelf = listed(&[
        job("stays", &[running()]),
        job("goes", &[running()]),
        recorded.clone(),
    ]);
    shelf.begin();
    shelf.put(job("stays", &[running()]), time(0));
    let change = shelf.put(job("new", &[]), time(0));
    assert_eq!(change.transitions, [Transition::Created]);
    let mut gone = shelf.complete();
    gone.sort_by(|one, other| one.view.uid.cmp(&other.view.uid));
    let gone: Vec<_> = gone
        .iter()
        .map(|change| (&*change.view.uid, change.questions.as_slice()))
        .collect();
    let none: &[Question] = &[];
    assert_eq!(gone, [("goes", &[Question::Gone][..]), ("stored", none)]);
    assert_eq!(shelf.figures().states, [1, 1, 0, 0, 0]);
}

#[test]
fn the_last_state_of_a_job_counts_with_its_first_sight_of_deletion() {
    let mut shelf = listed(&[job("a", &[running()])]);
    shelf.put(job("a", &[running(), going(&["orphan"])]), time(0));
    let last = job("a", &[finished("Failed"), going(&[])]);
    let change = shelf.remove("a", Some(last)).unwrap();
    assert_eq!(change.questions, [Question::Gone]);
    let finalizers = change.view.deletion.unwrap().finalizers;
    assert_eq!(finalizers, ["orphan"]);
    assert_eq!(change.transitions.len(), 2, "it ended and went");
    assert_eq!(shelf.remove("a", None), None);
}

#[test]
fn a_time_to_live_that_is_too_short_is_found_once() {
    let ttl = json!({"spec": {"ttlSecondsAfterFinished": 5}});
    let mut shelf = listed(&[job("a", &[finished("Complete"), ttl.clone()])]);
    assert_eq!(shelf.overrun(time(14)), 0);
    let figures = shelf.figures();
    assert_eq!(figures.unrecorded, 1);
    assert_eq!(
        (figures.oldest, figures.due),
        (Some(time(10)), Some(time(15)))
    );
    assert_eq!(shelf.overrun(time(15)), 1);
    assert_eq!(shelf.overrun(time(16)), 0);
    // Our own clock goes back, and is right again: once was enough.
    assert_eq!(shelf.overrun(time(0)), 0);
    assert_eq!(shelf.overrun(time(15)), 0);
    let again = shelf.put(job("a", &[finished("Complete"), ttl]), time(17));
    assert!(!again.is_overrun);
}

#[test]
fn figures_of_several_watches_add_up() {
    let one = listed(&[job("a", &[finished("Complete")]), job("b", &[])]).figures();
    let other = listed(&[job("c", &[running()]), job("d", &[running()])]).figures();
    let sum = one.and(other);
    assert_eq!(sum.states, [1, 2, 1, 0, 0]);
    assert_eq!((sum.unrecorded, sum.oldest), (1, Some(time(10))));
}

fn pod(more: &Value) -> ObjectMeta {
    let mut pod = json!({
        "name": "p", "uid": "p-1", "labels": {label::RUN_UID: "r-1"}, "finalizers": [finalizer::EVIDENCE],
    });
    for (key, value) in more.as_object().unwrap() {
        pod[key] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

#[test]
fn only_pods_of_ours_that_belong_to_nobody_are_kept() {
    let owned = json!({"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j-1"}]});
    for (row, more, expected) in [
        ("lost its Job", json!({}), 1),
        ("has a Job", owned.clone(), 0),
        (
            "goes",
            json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            0,
        ),
        ("was let go", json!({"finalizers": []}), 0),
        ("is not ours", json!({"labels": {}}), 0),
    ] {
        let mut orphans = Orphans::default();
        assert_eq!(orphans.put(&pod(&more)), expected == 1, "{row}");
        assert_eq!(orphans.count(), expected, "{row}");
    }
    let mut orphans = Orphans::default();
    orphans.put(&pod(&json!({})));
    assert!(!orphans.put(&pod(&json!({}))), "told once");
    orphans.put(&pod(&owned));
    assert_eq!(orphans.count(), 0, "adopted");
    orphans.put(&pod(&json!({})));
    orphans.begin();
    orphans.complete();
    assert_eq!(orphans.count(), 0, "a list lacks it");
}

/// The bar is 1 KiB for each Job; what an allocation costs besides its bytes is counted in.
#[test]
fn a_job_with_the_longest_names_costs_less_than_a_kibibyte() {
    const ALLOCATION: usize = 16;
    let name = "n".repeat(63);
    let uid = "6d3f0a52-3c7b-4b52-9f3e-0a1b2c3d4e5f";
    let long = view(&[
        running(),
        going(&["foregroundDeletion", finalizer::OUTCOME]),
        json!({"metadata": {
            "name": name, "namespace": name, "uid": uid, "labels": {label::RUN_UID: uid}, "ownerReferences": [
                {"apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "name": name, "uid": uid},
            ],
        }}),
    ]);
    let texts = [
        &*long.uid,
        &long.namespace,
        &long.name,
        &long.owner.name,
        &long.owner.uid,
    ];
    let texts: usize = texts.iter().map(|text| text.len() + ALLOCATION).sum();
    let finalizers = &long.deletion.as_ref().unwrap().finalizers;
    let finalizers = finalizers
        .iter()
        .map(|name| name.len() + size_of::<String>() + ALLOCATION);
    // A table that has just grown is half empty.
    let place = 2 * (size_of::<(Arc<str>, Box<Entry>)>() + 1);
    let whole = size_of::<Entry>() + 3 * ALLOCATION + place + texts + finalizers.sum::<usize>();
    assert!(whole <= 1024, "{whole} bytes");
}
