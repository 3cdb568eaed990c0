use k8s_openapi::api::batch::v1::Job;

use super::*;
use crate::api::kind::Kind;

fn draft() -> Draft {
    Draft {
        regarding: Regarding::named(Kind::AgentRun, "ns", "nightly").with_uid("u-1"),
        related: None,
        reason: Reason::WorkflowJobMissing,
        note: "The Job is gone".to_owned(),
        seen: "2026-02-06T10:00:00.5Z".parse().unwrap(),
    }
}

fn reporter() -> Reporter {
    Reporter::new("agents.proompteng.ai/controller", "agents-controllers-0")
}

fn tally(count: u32) -> Tally {
    Tally {
        count,
        last_seen: "2026-02-06T10:05:00Z".parse().unwrap(),
    }
}

#[test]
fn a_first_occurrence_is_an_event_without_series_and_with_six_fraction_digits() {
    let event = ModernEvent::new(&draft(), &reporter(), tally(1));
    let expected = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "name": draft().name(), "namespace": "ns" },
        "action": "KeepOutcome",
        "eventTime": "2026-02-06T10:00:00.500000Z",
        "note": "The Job is gone",
        "reason": "WorkflowJobMissing",
        "regarding": {
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "namespace": "ns", "name": "nightly", "uid": "u-1",
        },
        "reportingController": "agents.proompteng.ai/controller",
        "reportingInstance": "agents-controllers-0",
        "type": "Warning",
    });
    assert_eq!(serde_json::to_value(event).unwrap(), expected);
}

#[test]
fn a_recreated_event_carries_its_series_and_what_it_is_related_to() {
    let mut job = Job::default();
    job.metadata.name = Some("j".into());
    let draft = Draft {
        related: Some(Regarding::of(&job)),
        ..draft()
    };
    let event = serde_json::to_value(ModernEvent::new(&draft, &reporter(), tally(7))).unwrap();
    let series = json!({ "count": 7, "lastObservedTime": "2026-02-06T10:05:00.000000Z" });
    assert_eq!(event["series"], series);
    assert_eq!(
        event["related"],
        json!({ "apiVersion": "batch/v1", "kind": "Job", "name": "j" })
    );
}

#[test]
fn the_core_form_has_the_times_that_old_tools_sort_by() {
    let event = CoreEvent::new(&draft(), &reporter(), tally(7));
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": draft().name(), "namespace": "ns" },
        "action": "KeepOutcome",
        "count": 7,
        "firstTimestamp": "2026-02-06T10:00:00Z",
        "lastTimestamp": "2026-02-06T10:05:00Z",
        "message": "The Job is gone",
        "reason": "WorkflowJobMissing",
        "involvedObject": {
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "namespace": "ns", "name": "nightly", "uid": "u-1",
        },
        "reportingComponent": "agents.proompteng.ai/controller",
        "reportingInstance": "agents-controllers-0",
        "source": { "component": "agents.proompteng.ai/controller" },
        "type": "Warning",
    });
    assert_eq!(serde_json::to_value(event).unwrap(), expected);
}

#[test]
fn what_is_stored_is_read_back_in_both_forms() {
    for count in [1, 2, 40] {
        let modern = Stored::of(&ModernEvent::new(&draft(), &reporter(), tally(count)));
        let core = Stored::of(&CoreEvent::new(&draft(), &reporter(), tally(count)));
        let expected = Stored {
            name: draft().name(),
            count,
            resource_version: None,
        };
        assert_eq!((modern, core), (expected.clone(), expected));
    }
}

#[test]
fn a_restart_finds_its_own_event_and_nobody_elses() {
    let earlier = Draft {
        seen: "2026-02-06T10:00:07Z".parse().unwrap(),
        ..draft()
    };
    let other = Reporter::new(reporter().controller, "other");
    let modern = ModernEvent::new(&draft(), &reporter(), tally(1));
    let core = CoreEvent::new(&draft(), &reporter(), tally(1));
    assert!(modern.is(&draft(), &reporter()) && core.is(&draft(), &reporter()));
    assert!(!modern.is(&draft(), &other) && !core.is(&draft(), &other));
    assert!(!modern.is(&earlier, &reporter()) && !core.is(&earlier, &reporter()));
}

#[test]
fn the_name_is_the_same_for_the_same_thing_within_the_hour() {
    let base = draft().name();
    let with = |change: fn(&mut Draft)| {
        let mut draft = draft();
        change(&mut draft);
        draft.name()
    };
    let same = [
        ("other words", with(|d| d.note = "x".into())),
        (
            "55 minutes later",
            with(|d| d.seen = "2026-02-06T10:55:00Z".parse().unwrap()),
        ),
    ];
    for (what, other) in same {
        assert_eq!(other, base, "{what}");
    }
    let different = [
        ("other uid", with(|d| d.regarding.uid = None)),
        (
            "other generation",
            with(|d| d.regarding.generation = Some(2)),
        ),
        ("other reason", with(|d| d.reason = Reason::Failed)),
        (
            "related object",
            with(|d| d.related = Some(d.regarding.clone())),
        ),
        (
            "next hour",
            with(|d| d.seen = "2026-02-06T11:00:00Z".parse().unwrap()),
        ),
    ];
    for (what, other) in different {
        assert_ne!(other, base, "{what}");
    }
}

#[test]
fn one_job_goes_missing_once_and_everything_else_may_come_again() {
    let job = Regarding::job("ns", "nightly-job");
    let known = Some(job.clone().with_uid("j-1"));
    for (row, reason, related, expected) in [
        (
            "this very Job",
            Reason::WorkflowJobMissing,
            known.clone(),
            true,
        ),
        (
            "any Job of this name",
            Reason::WorkflowJobMissing,
            Some(job),
            false,
        ),
        ("no Job", Reason::WorkflowJobMissing, None, false),
        ("another reason", Reason::Failed, known, false),
    ] {
        let draft = Draft {
            reason,
            related,
            ..draft()
        };
        assert_eq!(draft.is_single(), expected, "{row}");
    }
}

#[test]
fn every_name_gives_a_name_that_the_api_server_takes() {
    let table = [
        ("nightly", "nightly"),
        ("nightly-", "nightly"),
        ("a.-b-.c", "a.b.c"),
        ("UPPER_case", "upper-case"),
        ("...", "unnamed"),
        ("", "unnamed"),
        ("漢字", "unnamed"),
    ];
    for (given, expected) in table {
        assert_eq!(subdomain(given, 236), expected, "{given}");
    }
    let long = Draft {
        regarding: Regarding::named(Kind::Agent, "ns", &"a-".repeat(200)),
        ..draft()
    };
    assert!(long.name().len() <= NAME_LIMIT);
}

#[test]
fn an_instance_is_never_empty_and_never_too_long() {
    let table = [
        ("pod-0", "pod-0".to_owned()),
        (" \n", "unknown".to_owned()),
        (&"ä1".repeat(200), "1".repeat(128)),
    ];
    for (given, expected) in table {
        assert_eq!(Reporter::new("c", given).instance, expected);
    }
}
