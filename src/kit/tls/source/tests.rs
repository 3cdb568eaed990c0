use jiff::ToSpan;

use super::super::material::tests::{in_time, pair};
use super::*;

/// A word for a verdict, to compare whole sequences.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Swap(_) => "swap",
        Verdict::Refuse(_) => "refuse",
        Verdict::Expire(_) => "expire",
    }
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
        let mut followed = Followed::default();
        let got: Vec<_> = looks
            .into_iter()
            .map(|seen| word(&followed.judge(seen, in_time())))
            .collect();
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn a_certificate_that_runs_out_in_use_is_noticed_once() {
    let mut followed = Followed::default();
    let pair = pair();
    assert_eq!(word(&followed.judge(Ok(pair.clone()), in_time())), "swap");
    let not_after = followed.used.as_ref().expect("a pair in use").not_after;
    for (time, expected) in [
        (not_after - 1.second(), "same"),
        (not_after, "expire"),
        (not_after + 1.second(), "same"),
    ] {
        assert_eq!(word(&followed.judge(Ok(pair.clone()), time)), expected);
    }
}
