use agents::api::contract::finalizer;
use agents::api::custody::PodState;
use serde_json::{Value, json};

use super::super::view::tests::{finished, going, marked, of_step, running, time, view};
use super::*;

fn ttl(seconds: i32) -> Value {
    json!({"spec": {"ttlSecondsAfterFinished": seconds}})
}

fn stripped() -> Value {
    json!({"metadata": {"finalizers": []}})
}

/// Everything around the Job is in order, and the run waits.
fn around(standing: Standing) -> Found {
    Found {
        absence: Absence::NotFound,
        run: Run::There(standing),
        namespace_terminating: false,
        pods: Vec::new(),
    }
}

fn waits() -> Found {
    around(Standing::default())
}

#[test]
fn a_change_is_looked_into_once_and_only_while_the_outcome_is_not_stored() {
    use Question::*;
    let runs = view(&[running()]);
    let bare = view(&[running(), stripped()]);
    let cut = view(&[running(), going(&[finalizer::OUTCOME])]);
    let short = view(&[running(), ttl(5)]);
    for (row, before, now, expected) in [
        ("all is well", None, &runs, vec![]),
        ("a time to live", Some(&runs), &short, vec![TtlInjected]),
        ("the same again", Some(&short), &short, vec![]),
        ("from the start", None, &short, vec![TtlInjected]),
        ("stripped", Some(&runs), &bare, vec![FinalizerRemoved]),
        ("stripped unseen", None, &bare, vec![FinalizerRemoved]),
        ("deleted", Some(&runs), &cut, vec![Going]),
        ("still going", Some(&cut), &cut, vec![]),
        (
            "stripped and deleted at once",
            Some(&runs),
            &view(&[running(), going(&["foregroundDeletion"])]),
            vec![FinalizerRemoved, Going],
        ),
        (
            "released as it should be",
            Some(&view(&[finished("Complete")])),
            &view(&[finished("Complete"), marked(), ttl(600)]),
            vec![],
        ),
    ] {
        assert_eq!(questions(before, now), expected, "{row}");
    }
}

#[test]
fn a_time_to_live_is_too_short_if_it_is_over_before_the_outcome_is_stored() {
    let done = |seconds| view(&[finished("Complete"), ttl(seconds)]);
    let stored = view(&[finished("Complete"), marked(), ttl(600)]);
    let unset = view(&[finished("Complete")]);
    for (row, before, now, expected) in [
        ("not over yet", None, done(60), false),
        ("over", None, done(2), true),
        ("none", None, unset.clone(), false),
        ("has not ended", None, view(&[running(), ttl(0)]), false),
        ("stored too late", Some(done(2)), stored.clone(), true),
        ("stored in time", Some(done(4)), stored.clone(), false),
        ("set with the mark", Some(unset), stored.clone(), false),
        ("set long ago", Some(stored.clone()), stored, false),
    ] {
        assert_eq!(
            is_overrun(before.as_ref(), &now, time(12)),
            expected,
            "{row}"
        );
    }
}

/// A verdict in a line.
fn words(verdict: &Verdict) -> String {
    let told = |notice: &Option<Notice>| match notice {
        Some(notice) => format!(", told as {}", notice.reason.as_str()),
        None => String::new(),
    };
    match verdict {
        Verdict::InOrder => "in order".to_owned(),
        Verdict::Endangered(hazard, notice) => format!("{}{}", hazard.as_str(), told(notice)),
        Verdict::Premature {
            class,
            stage,
            notice,
        } => format!("{} {class}{}", stage.as_str(), told(notice)),
    }
}

#[track_caller]
fn check(rows: Vec<(&str, Question, View, Found, &str)>) {
    for (row, question, job, found, expected) in rows {
        let verdict = judge(question, &job, &found, time(100));
        assert_eq!(words(&verdict), expected, "{row}");
    }
}

const OURS: &str = finalizer::OUTCOME;

fn recorded() -> Found {
    around(Standing {
        is_recorded: true,
        ..Standing::default()
    })
}

fn without_run(run: Run) -> Found {
    Found { run, ..waits() }
}

#[test]
fn a_job_that_goes_too_soon_gets_the_class_that_the_controller_gives() {
    use Question::{Going, Gone};
    let orphan = PodEvidence {
        owned: false,
        state: PodState::Active,
        ended_at: None,
    };
    let left = Found {
        pods: vec![orphan],
        ..waits()
    };
    let taken = Found {
        absence: Absence::NameTaken,
        ..waits()
    };
    let ending = Found {
        namespace_terminating: true,
        ..waits()
    };
    let by_jane = around(Standing {
        actor: Some("jane".to_owned()),
        ..Standing::default()
    });
    let run_goes = around(Standing {
        is_going: true,
        ..Standing::default()
    });
    let done = || finished("Complete");
    let foreground = || going(&["foregroundDeletion"]);
    check(vec![
        (
            "deleted while running, held",
            Going,
            view(&[running(), going(&[OURS])]),
            waits(),
            "asked JobDeletedWhileRunning, told as JobDeletedWhileRunning",
        ),
        (
            "gone while running",
            Gone,
            view(&[running(), stripped()]),
            waits(),
            "gone JobDeletedWhileRunning, told as JobDeletedWhileRunning",
        ),
        (
            "a step's",
            Gone,
            view(&[running(), of_step("1")]),
            waits(),
            "gone JobDeletedWhileRunning, told as WorkflowJobMissing",
        ),
        (
            "left its pod to itself",
            Gone,
            view(&[running(), going(&["orphan"])]),
            left.clone(),
            "gone JobDeletedWhileRunning, told as JobDeletedWhileRunning",
        ),
        (
            "ended, and left its pod to itself",
            Gone,
            view(&[done(), going(&["orphan"])]),
            left,
            "gone JobDeletedOrphaned, told as JobDeletedOrphaned",
        ),
        (
            "time to live was over, held",
            Going,
            view(&[done(), ttl(5), going(&["foregroundDeletion", OURS])]),
            waits(),
            "asked JobTtlExpired",
        ),
        (
            "time to live was over, stripped",
            Going,
            view(&[done(), ttl(5), foreground()]),
            waits(),
            "asked JobTtlExpired, told as JobTtlExpired",
        ),
        (
            "time to live was over, gone",
            Gone,
            view(&[done(), ttl(5), foreground()]),
            waits(),
            "gone JobTtlExpired, told as JobTtlExpired",
        ),
        (
            "ended and deleted by someone",
            Gone,
            view(&[done(), stripped()]),
            by_jane,
            "gone JobDeletedByActor, told as JobDeletedByActor",
        ),
        (
            "nobody knows",
            Gone,
            view(&[done(), stripped()]),
            waits(),
            "gone JobDeletedUnknown, told as JobDeletedUnknown",
        ),
        (
            "another has its name",
            Gone,
            view(&[running()]),
            taken,
            "gone JobReplaced, told as JobReplaced",
        ),
        (
            "the namespace goes",
            Gone,
            view(&[running()]),
            ending,
            "gone NamespaceTerminating",
        ),
        (
            "the run goes",
            Gone,
            view(&[running()]),
            run_goes,
            "gone OwnerDeleted",
        ),
        (
            "the run is gone",
            Gone,
            view(&[running()]),
            without_run(Run::Gone),
            "gone OwnerDeleted",
        ),
        (
            "the run is another",
            Gone,
            view(&[running()]),
            without_run(Run::Replaced),
            "gone OwnerDeleted",
        ),
        (
            "the outcome is stored",
            Gone,
            view(&[done()]),
            recorded(),
            "in order",
        ),
    ]);
}

#[test]
fn what_the_status_says_already_is_counted_and_not_told_again() {
    use Question::{Going, Gone, TtlInjected};
    let missed = |is_recorded| {
        around(Standing {
            is_recorded,
            missing: Some(Class::JobReplaced),
            ..Standing::default()
        })
    };
    let warned = around(Standing {
        is_warned: true,
        ..Standing::default()
    });
    let cut = view(&[running(), going(&[OURS])]);
    check(vec![
        (
            "its pod is waited for",
            Going,
            cut.clone(),
            missed(false),
            "asked JobReplaced",
        ),
        (
            "the run has failed",
            Gone,
            cut,
            missed(true),
            "gone JobReplaced",
        ),
        (
            "warned",
            TtlInjected,
            view(&[ttl(3)]),
            warned,
            "ttl_injected",
        ),
    ]);
}

#[test]
fn what_endangers_an_outcome_is_told_while_someone_waits_for_it() {
    use Question::{FinalizerRemoved, TtlInjected};
    let ending = Found {
        namespace_terminating: true,
        ..waits()
    };
    let bare = || view(&[running(), stripped()]);
    check(vec![
        (
            "a time to live",
            TtlInjected,
            view(&[ttl(3)]),
            waits(),
            "ttl_injected, told as JobTtlInjected",
        ),
        (
            "stripped",
            FinalizerRemoved,
            bare(),
            waits(),
            "finalizer_removed, told as JobFinalizerRemoved",
        ),
        (
            "the outcome is stored",
            FinalizerRemoved,
            bare(),
            recorded(),
            "in order",
        ),
        (
            "released, its run is gone",
            FinalizerRemoved,
            bare(),
            without_run(Run::Gone),
            "in order",
        ),
        (
            "released with its namespace",
            FinalizerRemoved,
            bare(),
            ending,
            "in order",
        ),
    ]);
}

#[test]
fn a_notice_says_what_the_controller_would_say() {
    let job = view(&[running(), going(&[OURS])]);
    let Verdict::Premature {
        notice: Some(notice),
        ..
    } = judge(Question::Going, &job, &waits(), time(100))
    else {
        panic!("a notice");
    };
    assert_eq!(
        notice.note,
        "It was deleted before it had ended (JobDeletedWhileRunning)"
    );
}
