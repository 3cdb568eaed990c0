use jiff::ToSpan;

use super::*;
use crate::kit::tls::material::tests::{in_time, pair};

/// A word for a verdict, to compare whole sequences.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Swap(_) => "swap",
        Verdict::Refuse(_) => "refuse",
        Verdict::Warn(_) => "warn",
        Verdict::Expire(_) => "expire",
    }
}

fn followed() -> Followed {
    Followed::new(Demands::default())
}

fn missing() -> Look {
    Err(Refused::Unreadable {
        file: "/tls.crt".into(),
        reason: "not there".to_owned(),
    })
}

#[test]
fn looks_are_judged_by_what_was_seen_before() {
    let (old, new) = (pair(), pair());
    let torn = Material {
        certificate: new.certificate.clone(),
        ..old.clone()
    };
    let cases: [(&str, Vec<Look>, &[&str]); 5] = [
        (
            "a changed pair is swapped in at once",
            vec![Ok(old.clone()), Ok(old.clone()), Ok(new.clone())],
            &["swap", "same", "swap"],
        ),
        (
            "files caught half-way are not worth a word",
            vec![Ok(old.clone()), Ok(torn.clone()), Ok(new.clone())],
            &["swap", "same", "swap"],
        ),
        (
            "a broken pair is refused once and the old one kept",
            vec![
                Ok(old.clone()),
                Ok(torn.clone()),
                Ok(torn.clone()),
                Ok(torn.clone()),
                Ok(old.clone()),
            ],
            &["swap", "same", "refuse", "same", "same"],
        ),
        (
            "a pair that comes late is waited for",
            vec![missing(), missing(), missing(), Ok(old.clone())],
            &["same", "refuse", "same", "swap"],
        ),
        (
            "a second fault is worth a second word",
            vec![missing(), missing(), Ok(torn.clone()), Ok(torn)],
            &["same", "refuse", "same", "refuse"],
        ),
    ];
    for (name, looks, expected) in cases {
        let mut followed = followed();
        let times = (0..).map(|look: i32| in_time() + SETTLED * look);
        let got: Vec<_> = looks
            .into_iter()
            .zip(times)
            .map(|(seen, time)| word(&followed.judge(seen, time)))
            .collect();
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn a_fault_that_is_seen_often_within_a_moment_is_not_yet_one() {
    let mut followed = followed();
    let moments = [0, 1, 50, 399, 400, 401];
    let got =
        moments.map(|moment| word(&followed.judge(missing(), in_time() + moment.milliseconds())));
    assert_eq!(got, ["same", "same", "same", "same", "refuse", "same"]);
}

#[test]
fn a_certificate_that_runs_out_in_use_is_noticed_once() {
    let mut followed = followed();
    let pair = pair();
    assert_eq!(word(&followed.judge(Ok(pair.clone()), in_time())), "swap");
    let term = followed.used.as_ref().expect("a pair in use").term;
    let (overdue, not_after) = (term.overdue(), term.not_after);
    for (time, expected) in [
        (overdue - 1.second(), "same"),
        (overdue, "warn"),
        (not_after - 1.second(), "same"),
        (not_after, "expire"),
        (not_after + 1.second(), "same"),
    ] {
        assert_eq!(word(&followed.judge(Ok(pair.clone()), time)), expected);
    }
    assert_eq!(followed.expired(), Some(not_after));
}
