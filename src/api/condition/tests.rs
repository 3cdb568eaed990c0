use super::*;
use crate::api::custody;
use crate::api::object::cause;
use proptest::prelude::*;
use serde_json::{Value, json};

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn at(second: i64, generation: i64) -> Moment {
    Moment {
        generation,
        now: time(second),
    }
}

fn ready(status: ConditionStatus, reason: Lifecycle, message: &str) -> Observation {
    Observation::new(ConditionType::Ready, status, reason, message)
}

fn stored(list: &[Condition]) -> Value {
    serde_json::to_value(list).unwrap()
}

#[test]
fn a_flip_moves_the_time_and_anything_else_does_not() {
    let mut list = vec![];
    merge(
        &mut list,
        &ready(ConditionStatus::False, Lifecycle::Pending, "waits"),
        at(0, 1),
    );
    merge(
        &mut list,
        &ready(ConditionStatus::False, Lifecycle::Running, "works"),
        at(5, 2),
    );
    assert_eq!(
        stored(&list),
        json!([{
            "type": "Ready", "status": "False", "reason": "Running", "message": "works",
            "lastTransitionTime": "2023-11-14T22:13:20Z", "observedGeneration": 2,
        }])
    );
    merge(
        &mut list,
        &ready(ConditionStatus::True, Lifecycle::Completed, ""),
        at(9, 2),
    );
    assert_eq!(
        stored(&list),
        json!([{
            "type": "Ready", "status": "True", "reason": "Completed", "message": "",
            "lastTransitionTime": "2023-11-14T22:13:29Z", "observedGeneration": 2,
        }])
    );
}

#[test]
fn conditions_of_others_stay_where_and_what_they_are() {
    let foreign = |type_: &str| Condition {
        type_: type_.to_owned(),
        status: "perhaps".to_owned(),
        ..Condition::default()
    };
    let mut list = vec![
        foreign("A"),
        foreign("Ready"),
        foreign("B"),
        foreign("Ready"),
    ];
    merge(
        &mut list,
        &ready(ConditionStatus::True, Lifecycle::Active, ""),
        at(0, 1),
    );
    let types: Vec<&str> = list.iter().map(|entry| entry.type_.as_str()).collect();
    assert_eq!(types, ["A", "Ready", "B"]);
    assert_eq!((&list[0], &list[2]), (&foreign("A"), &foreign("B")));
}

#[test]
fn a_late_writer_does_not_take_the_generation_back() {
    let mut list = vec![];
    merge(
        &mut list,
        &ready(ConditionStatus::True, Lifecycle::Active, ""),
        at(0, 7),
    );
    merge(
        &mut list,
        &ready(ConditionStatus::True, Lifecycle::Active, ""),
        at(1, 6),
    );
    assert_eq!(list[0].observed_generation, Some(7));
}

#[test]
fn text_that_is_no_time_reads_as_absent_and_is_healed() {
    let mut list: Vec<Condition> = serde_json::from_value(json!([
        {"type": "Ready", "status": "True", "lastTransitionTime": "yesterday"},
        {"type": "Other", "status": "True", "lastTransitionTime": null},
    ]))
    .unwrap();
    assert_eq!(list[0].last_transition_time, None);
    merge(
        &mut list,
        &ready(ConditionStatus::True, Lifecycle::Active, ""),
        at(3, 1),
    );
    assert_eq!(list[0].last_transition_time, Some(time(3)));
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let observed = ready(
        ConditionStatus::True,
        Lifecycle::Active,
        &"€".repeat(20_000),
    );
    assert_eq!(observed.message.len(), 32_766);
    assert!(observed.message.ends_with("€…"));
}

#[test]
fn no_secret_gets_into_a_message() {
    let error = "GET https://bot:hunter2hunter2@git.example.com failed:\nAuthorization: Bearer abcdef0123456789abcdef";
    let observed = ready(ConditionStatus::False, Lifecycle::Active, error);
    for secret in ["hunter2", "abcdef0123456789", "\n"] {
        assert!(!observed.message.contains(secret), "{}", observed.message);
    }
    assert!(
        observed.message.starts_with("GET https://"),
        "{}",
        observed.message
    );
}

#[test]
fn every_word_is_accepted_as_a_reason_and_means_one_thing() {
    let words: Vec<&str> = (Lifecycle::ALL.iter().map(|word| word.as_str()))
        .chain(cause::Reason::ALL.iter().map(|word| word.as_str()))
        .chain(custody::Class::ALL.iter().map(|word| word.as_str()))
        .collect();
    for word in &words {
        assert!(
            word.len() <= 128 && word.bytes().all(|b| b.is_ascii_alphanumeric()),
            "{word}"
        );
        assert!(word.starts_with(|c: char| c.is_ascii_uppercase()), "{word}");
    }
    let mut unique = words.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), words.len(), "a word is in two lists");
}

#[test]
fn health_follows_from_the_facts_of_this_pass() {
    use ConditionStatus::{False, True};
    use ConditionType::*;
    let saw = |type_, status| vec![Observation::new(type_, status, Lifecycle::Active, "")];
    for (row, phase, observed, expected) in [
        ("failed phase", Some("Failed"), vec![], Health::Degraded),
        (
            "cancelled phase",
            Some("Cancelled"),
            vec![],
            Health::Degraded,
        ),
        ("invalid phase", Some("Invalid"), vec![], Health::Degraded),
        (
            "invalid spec in a usable phase",
            Some("Active"),
            saw(InvalidSpec, True),
            Health::Degraded,
        ),
        (
            "pending phase",
            Some("Pending"),
            vec![],
            Health::Progressing,
        ),
        (
            "running phase",
            Some("Running"),
            saw(InvalidSpec, False),
            Health::Progressing,
        ),
        (
            "work observed",
            None,
            saw(InProgress, True),
            Health::Progressing,
        ),
        ("succeeded phase", Some("Succeeded"), vec![], Health::Ready),
        ("delivered phase", Some("Delivered"), vec![], Health::Ready),
        ("ready observed", None, saw(Ready, True), Health::Ready),
        (
            "not ready observed",
            None,
            saw(Ready, False),
            Health::Degraded,
        ),
        (
            "not ready in a usable phase",
            Some("Active"),
            saw(Ready, False),
            Health::Degraded,
        ),
        ("nothing known", None, vec![], Health::Unknown),
        (
            "a phase nobody knows",
            Some("Expired"),
            vec![],
            Health::Unknown,
        ),
    ] {
        assert_eq!(Health::of(phase, &observed), expected, "{row}");
    }
}

#[test]
fn kstatus_sees_the_same_as_people() {
    for (health, expected) in [
        (Health::Ready, ["True", "False", "False", "False", "False"]),
        (
            Health::Progressing,
            ["False", "True", "False", "True", "False"],
        ),
        (
            Health::Degraded,
            ["False", "False", "True", "False", "True"],
        ),
        (Health::Unknown, ["Unknown"; 5]),
    ] {
        let observed = health.conditions(Lifecycle::Active.into(), "why");
        let statuses: Vec<&str> = observed.iter().map(|entry| entry.status.as_str()).collect();
        let types: Vec<&str> = observed.iter().map(|entry| entry.type_.as_str()).collect();
        assert_eq!(
            types,
            ["Ready", "Progressing", "Degraded", "Reconciling", "Stalled"]
        );
        assert_eq!(statuses, expected, "{health:?}");
    }
}

fn any_observation() -> impl Strategy<Value = Observation> {
    (
        prop::sample::select(&ConditionType::ALL[..5]),
        prop::sample::select(ConditionStatus::ALL),
        prop::sample::select(&Lifecycle::ALL[..5]),
        "[a-z]{0,3}",
    )
        .prop_map(|(type_, status, reason, message)| {
            Observation::new(type_, status, reason, message)
        })
}

fn any_condition() -> impl Strategy<Value = Condition> {
    (
        prop::sample::select(vec!["Accepted", "Running", "Failed", "Foreign", "Other"]),
        prop::sample::select(vec!["True", "False", "Unknown", "odd"]),
        prop::option::of((0..50i64).prop_map(time)),
        prop::option::of(0..5i64),
    )
        .prop_map(
            |(type_, status, last_transition_time, observed_generation)| Condition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                last_transition_time,
                observed_generation,
                ..Condition::default()
            },
        )
}

proptest! {
    #[test]
    fn merging_twice_is_merging_once(
        mut list in prop::collection::vec(any_condition(), 0..6),
        observed in any_observation(),
        second in 0..100i64,
        later in 0..100i64,
    ) {
        merge(&mut list, &observed, at(second, 3));
        let once = list.clone();
        merge(&mut list, &observed, at(second + later, 3));
        prop_assert_eq!(list, once);
    }

    #[test]
    fn the_merged_type_stands_once_and_others_are_untouched(
        before in prop::collection::vec(any_condition(), 0..6),
        observed in any_observation(),
    ) {
        let mut list = before.clone();
        merge(&mut list, &observed, at(60, 3));
        let ours = observed.type_.as_str();
        prop_assert_eq!(list.iter().filter(|entry| entry.type_ == ours).count(), 1);
        let others = |list: &[Condition]| -> Vec<Condition> {
            list.iter().filter(|entry| entry.type_ != ours).cloned().collect()
        };
        prop_assert_eq!(others(&list), others(&before));
    }

    #[test]
    fn the_time_moves_exactly_when_the_status_flips(
        history in prop::collection::vec((any_observation(), 0..3i64), 1..40),
    ) {
        let mut list: Vec<Condition> = vec![];
        let mut second = 0;
        for (observed, pause) in history {
            second += pause;
            let find = |list: &[Condition]| {
                list.iter().find(|entry| entry.type_ == observed.type_.as_str()).cloned()
            };
            let before = find(&list);
            merge(&mut list, &observed, at(second, 1));
            let after = find(&list).unwrap();
            if let Some(before) = before {
                let flipped = before.status != after.status;
                let moved = before.last_transition_time != after.last_transition_time;
                prop_assert_eq!(flipped, moved);
                prop_assert!(after.last_transition_time >= before.last_transition_time);
            }
        }
    }
}
