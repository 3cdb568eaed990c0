//! Who is asked to hold the lease next, and whether it may. Pure.
//!
//! A request names a candidate on the lease itself. The candidate answers there, if it is ready, with the renewal that it
//! has seen. So nothing more than the lease has to be read or written, and an answer is as fresh as that renewal: its time
//! comes from the clock of the holder, who alone compares it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use crate::api::contract::annotation;

/// What the holder does about the request on its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// There is none.
    Nothing,
    /// Whoever was asked has not said yet that it is ready.
    Wait,
    /// This candidate is ready.
    Yield(String),
    /// It makes no sense.
    Refuse(&'static str),
}

/// What the holder of this lease does. An answer counts for so long after the renewal that it names.
pub(super) fn decide(lease: &Lease, own: &str, now: Timestamp, fresh: Duration) -> Decision {
    let Some(wanted) = read(lease, annotation::YIELD_TO) else {
        return Decision::Nothing;
    };
    if names(wanted, own) {
        return Decision::Refuse("it holds the lease already");
    }
    let answer = read(lease, annotation::YIELD_READY).and_then(|answer| answer.rsplit_once(' '));
    let Some((candidate, renewal)) = answer.filter(|(candidate, _)| names(wanted, candidate))
    else {
        return Decision::Wait;
    };
    let age = renewal
        .parse::<Timestamp>()
        .ok()
        .and_then(|renewal| Duration::try_from(now.duration_since(renewal)).ok());
    match age {
        Some(age) if age <= fresh => Decision::Yield(candidate.to_owned()),
        Some(_) | None => Decision::Wait,
    }
}

/// What a standby has to say about the request on a lease: that it is ready, unless it has said so since the last renewal
/// or nobody asked it.
pub(super) fn answer(lease: &Lease, own: &str) -> Option<String> {
    let wanted = read(lease, annotation::YIELD_TO)?;
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if !names(wanted, own) || holder.is_empty() || holder == own {
        return None;
    }
    let renewal = spec.renew_time.as_ref()?;
    let answer = format!("{own} {}", renewal.0);
    (read(lease, annotation::YIELD_READY) != Some(&answer)).then_some(answer)
}

/// The lease with the request of a canary, and its answer to it, if it has reason to ask: someone of another version holds
/// it, has renewed it since, and nobody else is asked for.
pub(super) fn ask(lease: &Lease, own: &str, revision: Option<&str>) -> Option<Lease> {
    let spec = lease.spec.as_ref()?;
    let is_settled = spec.acquire_time.as_ref() != spec.renew_time.as_ref();
    let is_ours = read(lease, annotation::HOLDER_REVISION) == Some(revision?);
    if !is_settled || is_ours || wanted(lease).is_some() {
        return None;
    }
    let mut asked = lease.clone();
    write(&mut asked, annotation::YIELD_TO, Some(own.to_owned()));
    write(&mut asked, annotation::YIELD_REFUSED, None);
    let answer = answer(&asked, own)?;
    say(&mut asked, answer);
    Some(asked)
}

/// Notes on a lease which version its holder is of, and what readers of the holder's queue must show.
pub(super) fn held_by(lease: &mut Lease, revision: Option<String>, key: Option<String>) {
    write(lease, annotation::HOLDER_REVISION, revision);
    write(lease, annotation::QUEUE_KEY, key);
}

/// Puts the answer on a lease.
pub(super) fn say(lease: &mut Lease, answer: String) {
    write(lease, annotation::YIELD_READY, Some(answer));
}

/// Takes the request off a lease; says why, if it was not granted.
pub(super) fn close(lease: &mut Lease, refusal: Option<&str>) {
    let wanted = write(lease, annotation::YIELD_TO, None).unwrap_or_default();
    write(lease, annotation::YIELD_READY, None);
    let refusal = refusal.map(|why| format!("{wanted}: {why}"));
    write(lease, annotation::YIELD_REFUSED, refusal);
}

/// Who is asked for on a lease.
pub(super) fn wanted(lease: &Lease) -> Option<&str> {
    read(lease, annotation::YIELD_TO)
}

/// Whether a request means this process: by its identity, or by the name of its pod.
fn names(wanted: &str, identity: &str) -> bool {
    let pod = identity.rsplit_once('_').map(|(pod, _)| pod);
    wanted == identity || pod == Some(wanted)
}

fn read<'a>(lease: &'a Lease, annotation: &str) -> Option<&'a str> {
    let text = lease.metadata.annotations.as_ref()?.get(annotation)?;
    let text = text.trim();
    (!text.is_empty()).then_some(text)
}

fn write(lease: &mut Lease, annotation: &str, text: Option<String>) -> Option<String> {
    let annotations = lease.metadata.annotations.get_or_insert_default();
    match text {
        Some(text) => annotations.insert(annotation.to_owned(), text),
        None => annotations.remove(annotation),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FRESH: Duration = Duration::from_secs(11);

    fn lease(wanted: &str, ready: &str, holder: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": {"annotations": {"agents.proompteng.ai/yield-to": wanted, "agents.proompteng.ai/yield-ready": ready}},
            "spec": {"holderIdentity": holder, "renewTime": "2026-01-01T00:00:10.000000Z"},
        }))
        .unwrap()
    }

    #[test]
    fn a_holder_yields_only_to_who_is_named_and_has_just_said_that_it_is_ready() {
        let now = "2026-01-01T00:00:12Z".parse().unwrap();
        let give = |to: &str| Decision::Yield(to.to_owned());
        for (row, wanted, ready, expected) in [
            ("nobody asks", "", "", Decision::Nothing),
            (
                "an old answer to nobody",
                "",
                "b_2 2026-01-01T00:00:10Z",
                Decision::Nothing,
            ),
            ("no answer yet", "b_2", "", Decision::Wait),
            ("ready", "b_2", "b_2 2026-01-01T00:00:10Z", give("b_2")),
            (
                "asked for by pod",
                "b",
                "b_2 2026-01-01T00:00:10Z",
                give("b_2"),
            ),
            (
                "the renewal before",
                "b_2",
                "b_2 2026-01-01T00:00:05Z",
                give("b_2"),
            ),
            (
                "ready long ago",
                "b_2",
                "b_2 2025-12-31T23:59:59Z",
                Decision::Wait,
            ),
            (
                "a time to come",
                "b_2",
                "b_2 2026-01-01T00:00:13Z",
                Decision::Wait,
            ),
            (
                "someone else is ready",
                "b_2",
                "c_3 2026-01-01T00:00:10Z",
                Decision::Wait,
            ),
            ("no time", "b_2", "b_2 yes", Decision::Wait),
            ("nothing but a name", "b_2", "b_2", Decision::Wait),
            (
                "the holder itself",
                "a_1",
                "a_1 2026-01-01T00:00:10Z",
                Decision::Refuse("it holds the lease already"),
            ),
        ] {
            let lease = lease(wanted, ready, "a_1");
            assert_eq!(decide(&lease, "a_1", now, FRESH), expected, "{row}");
        }
    }

    #[test]
    fn a_standby_answers_once_for_each_renewal_if_it_is_meant() {
        let said = "b_2 2026-01-01T00:00:10Z";
        for (row, wanted, ready, holder, expected) in [
            ("nobody asks", "", "", "a_1", None),
            ("someone else is asked", "c_3", "", "a_1", None),
            ("asked", "b_2", "", "a_1", Some(said)),
            ("asked by pod", "b", "", "a_1", Some(said)),
            ("said already", "b_2", said, "a_1", None),
            (
                "said before",
                "b_2",
                "b_2 2026-01-01T00:00:05Z",
                "a_1",
                Some(said),
            ),
            ("nobody holds it", "b_2", "", "", None),
            ("it is its own already", "b_2", "", "b_2", None),
        ] {
            let lease = lease(wanted, ready, holder);
            assert_eq!(answer(&lease, "b_2").as_deref(), expected, "{row}");
        }
    }

    #[test]
    fn a_canary_asks_who_is_of_another_version_once_and_never_in_the_way_of_others() {
        let before = "2026-01-01T00:00:05.000000Z";
        let now = "2026-01-01T00:00:10.000000Z";
        for (row, holder, revision, acquired, wanted, expected) in [
            ("another version", "a_1", "old", before, "", true),
            (
                "a version that nobody rolls out",
                "a_1",
                "",
                before,
                "",
                true,
            ),
            ("the same version", "a_1", "new", before, "", false),
            ("nobody has renewed it yet", "a_1", "old", now, "", false),
            ("someone is asked for", "a_1", "old", before, "c_3", false),
            ("it has asked already", "a_1", "old", before, "b_2", false),
            ("nobody holds it", "", "old", before, "", false),
            ("it holds it", "b_2", "", before, "", false),
        ] {
            let mut held = lease(wanted, "", holder);
            held_by(&mut held, Some(revision.to_owned()), None);
            let spec = held.spec.as_mut().unwrap();
            spec.acquire_time = Some(serde_json::from_value(json!(acquired)).unwrap());
            let asked = ask(&held, "b_2", Some("new"));
            assert_eq!(asked.is_some(), expected, "{row}");
            assert_eq!(ask(&held, "b_2", None), None, "{row}, of no version");
            let Some(asked) = asked else { continue };
            let now = "2026-01-01T00:00:12Z".parse().unwrap();
            let decision = decide(&asked, "a_1", now, FRESH);
            assert_eq!(decision, Decision::Yield("b_2".to_owned()), "{row}");
        }
    }

    #[test]
    fn an_answer_is_understood_by_the_holder() {
        let mut asked = lease("b", "", "a_1");
        let text = answer(&asked, "b_2").unwrap();
        say(&mut asked, text);
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        assert_eq!(
            decide(&asked, "a_1", now, FRESH),
            Decision::Yield("b_2".to_owned())
        );
        close(&mut asked, Some("no"));
        assert_eq!(decide(&asked, "a_1", now, FRESH), Decision::Nothing);
        let left = asked.metadata.annotations.unwrap();
        let refused = (
            "agents.proompteng.ai/yield-refused".to_owned(),
            "b: no".to_owned(),
        );
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [refused]);
    }
}
