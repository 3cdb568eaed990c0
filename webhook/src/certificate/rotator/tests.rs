use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::mint::changed;
use super::plan::{Change, Plan, Seen, Terms, Trust, plan};
use super::stored::{Certificate, Data, Stored, bundle, key};
use super::*;

const TERMS: Terms = Terms {
    certificate: SignedDuration::from_hours(900),
    authority: SignedDuration::from_hours(9000),
    settle: SignedDuration::from_secs(60),
};

fn start() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

fn after(hours: i64) -> Timestamp {
    start()
        .checked_add(SignedDuration::from_hours(hours))
        .unwrap()
}

fn names() -> Vec<String> {
    vec!["agents-webhook.agents.svc".to_owned()]
}

/// A cluster as far as the rotator sees it: a Secret, and two entries that trust someone.
#[derive(Clone)]
struct World {
    data: Data,
    trusted: Vec<Certificate>,
    names: Vec<String>,
}

impl World {
    fn empty() -> Self {
        Self {
            data: BTreeMap::new(),
            trusted: Vec::new(),
            names: names(),
        }
    }

    /// One in which everything has come to rest.
    fn settled() -> Self {
        let mut world = Self::empty();
        world.rest(start());
        world
    }

    fn seen(&self) -> Seen {
        Seen {
            stored: Stored::read(&self.data),
            trust: Trust::Of(vec![self.trusted.clone(); 2]),
            names: self.names.clone(),
        }
    }

    fn plan(&self, now: Timestamp) -> Plan {
        plan(&self.seen(), &TERMS, now)
    }

    /// Does what is planned, as the rotator does it.
    fn step(&mut self, now: Timestamp) -> Plan {
        let planned = self.plan(now);
        if !planned.trusted.is_empty() {
            self.trusted.clone_from(&planned.trusted);
        }
        if let Some(change) = &planned.change {
            self.data = changed(&self.data, change, &self.names, &TERMS, now).unwrap();
        }
        planned
    }

    /// Steps until there is nothing to do at this time, and says which steps these were.
    fn rest(&mut self, now: Timestamp) -> Vec<&'static str> {
        let mut steps = Vec::new();
        for _ in 0..10 {
            let before = self.trusted.clone();
            let Some(change) = self.step(now).change else {
                if self.trusted == before {
                    return steps;
                }
                continue;
            };
            steps.push(Step::from(&change).as_str());
        }
        panic!("no rest after {steps:?}");
    }

    fn certificate(&self) -> Certificate {
        Stored::read(&self.data).certificate.unwrap()
    }

    fn authority(&self) -> Certificate {
        Stored::read(&self.data).authority.unwrap().certificate
    }
}

/// An authority that is not ours.
fn stranger(now: Timestamp) -> Certificate {
    let begin = Change::Begin { keep: Vec::new() };
    let made = changed(&Data::new(), &begin, &names(), &TERMS, now).unwrap();
    Certificate::read_first(&made[key::NEXT]).unwrap()
}

#[test]
fn from_nothing_to_a_certificate_that_is_trusted_before_it_is_shown() {
    let mut world = World::empty();
    let first = world.step(start());
    assert_eq!(first.change, Some(Change::Begin { keep: vec![] }));
    assert!(!first.shows && first.trusted.is_empty());
    assert_eq!(world.rest(start()), ["promote"]);
    let end = world.plan(start());
    assert!(end.shows);
    assert_eq!(end.trusted, [world.authority()]);
    assert!(world.certificate().is_for(&names()));
    assert!(world.certificate().is_of(&world.authority()));
    // Where nobody trusts it yet it is not shown.
    let mut unknown = world.seen();
    unknown.trust = Trust::Of(vec![vec![world.authority()], vec![]]);
    assert!(!plan(&unknown, &TERMS, start()).shows);
    // Where there is no configuration nobody calls, and where we may not look someone else sees to it.
    for trust in [Trust::Of(vec![]), Trust::Unseen] {
        unknown.trust = trust;
        assert!(plan(&unknown, &TERMS, start()).shows);
    }
}

#[test]
fn a_certificate_is_renewed_when_a_third_is_left_and_nobody_need_trust_another() {
    let mut world = World::settled();
    assert_eq!(world.rest(after(590)), Vec::<&str>::new());
    let (authority, old) = (world.authority(), world.certificate());
    assert_eq!(world.rest(after(610)), ["renew"]);
    assert_ne!(world.certificate(), old);
    assert_eq!(world.trusted, [authority]);
    assert!(world.plan(after(610)).shows);
}

#[test]
fn an_authority_hands_over_in_order() {
    let mut world = World::settled();
    // Certificates are renewed all along, so that only the authority is due.
    for hours in (0..6000).step_by(400) {
        world.rest(after(hours));
    }
    let (old, now) = (world.authority(), after(6010));
    let shown = world.certificate();
    assert_eq!(world.rest(now), ["begin", "announce"]);
    let next = Stored::read(&world.data).next.unwrap();
    assert_eq!(world.trusted, [old.clone(), next.clone()]);
    assert_eq!(world.certificate(), shown, "the old one is still shown");
    let almost = now.checked_add(SignedDuration::from_secs(59)).unwrap();
    assert_eq!(world.rest(almost), Vec::<&str>::new());
    let settled = now.checked_add(SignedDuration::from_secs(60)).unwrap();
    assert_eq!(world.rest(settled), ["promote"]);
    assert_eq!(world.authority(), next);
    assert!(world.certificate().is_of(&next) && world.plan(settled).shows);
    assert_eq!(world.trusted, [next.clone(), old.clone()]);
    // The old one stays as long as a certificate of it could be shown.
    let end = shown.not_after;
    let before = end.checked_sub(SignedDuration::from_secs(1)).unwrap();
    world.rest(before);
    assert!(world.trusted.contains(&old));
    assert!(world.rest(end).contains(&"forget"));
    assert_eq!(world.trusted, [world.authority()]);
}

#[test]
fn what_is_not_announced_everywhere_does_not_take_over() {
    let mut world = World::settled();
    world.data.remove(key::AUTHORITY_KEY);
    world.step(start());
    let mut seen = world.seen();
    let next = seen.stored.next.clone().unwrap();
    for trust in [
        Trust::Of(vec![vec![next.clone()], vec![]]),
        Trust::Of(vec![vec![], vec![next.clone()]]),
        Trust::Unseen,
    ] {
        seen.trust = trust;
        assert_eq!(plan(&seen, &TERMS, after(1)).change, None);
    }
}

#[test]
fn whatever_is_broken_in_the_secret_is_mended_in_order() {
    type Break = fn(&mut Data);
    let garbage = |data: &mut Data, key: &str| drop(data.insert(key.to_owned(), b"\xff?".to_vec()));
    let cases: [(&str, Break, &[&str]); 8] = [
        (
            "no key of the authority",
            |data| drop(data.remove(key::AUTHORITY_KEY)),
            &["begin", "announce"],
        ),
        (
            "another key of the authority",
            |data| {
                let other = data[key::KEY].clone();
                data.insert(key::AUTHORITY_KEY.to_owned(), other);
            },
            &["begin", "announce"],
        ),
        (
            "no certificate",
            |data| drop(data.remove(key::CERTIFICATE)),
            &["renew"],
        ),
        (
            "the key of another certificate",
            |data| {
                let other = data[key::AUTHORITY_KEY].clone();
                data.insert(key::KEY.to_owned(), other);
            },
            &["renew"],
        ),
        (
            "a certificate of nobody",
            |data| {
                let other = World::settled().data;
                data.extend(
                    [key::CERTIFICATE, key::KEY].map(|key| (key.to_owned(), other[key].clone())),
                );
            },
            &["renew"],
        ),
        (
            "no authority",
            |data| drop(data.remove(key::AUTHORITY)),
            &["begin", "announce"],
        ),
        (
            "a certificate that is no authority",
            |data| {
                let other = data[key::CERTIFICATE].clone();
                data.insert(key::AUTHORITY.to_owned(), other);
            },
            &["begin", "announce"],
        ),
        ("nothing", BTreeMap::clear, &["begin", "announce"]),
    ];
    for (name, damage, expected) in cases {
        let mut world = World::settled();
        let old = world.authority();
        damage(&mut world.data);
        assert_eq!(world.rest(after(1)), expected, "{name}");
        assert!(
            world.trusted.contains(&old),
            "{name}: replicas still show what it signed"
        );
        world.rest(after(2));
        assert!(world.plan(after(2)).shows, "{name}");
        assert!(world.trusted.contains(&world.authority()), "{name}");
    }
    for key in [
        key::NEXT,
        key::NEXT_SINCE,
        key::PREVIOUS,
        key::PREVIOUS_UNTIL,
    ] {
        let mut world = World::settled();
        garbage(&mut world.data, key);
        assert_eq!(world.rest(after(1)), Vec::<&str>::new(), "{key}");
        assert!(world.plan(after(1)).shows, "{key}");
    }
}

#[test]
fn what_others_had_the_api_servers_trust_goes_when_it_is_no_longer_needed() {
    // Such as cert-manager, whose certificate the pods of the release before still show.
    let other = stranger(start());
    let mut world = World::empty();
    world.trusted = vec![other.clone()];
    assert_eq!(world.rest(start()), ["begin", "announce"]);
    assert!(world.trusted.contains(&other));
    assert_eq!(world.rest(after(1)), ["promote"]);
    assert!(
        world.trusted.contains(&other),
        "kept for as long as a certificate lasts"
    );
    assert!(world.rest(after(910)).contains(&"forget"));
    assert_eq!(world.trusted, [world.authority()]);
    // Later nobody else has a say, and nobody can have an ended one kept.
    world.trusted.push(other);
    world.step(after(911));
    assert_eq!(world.trusted, [world.authority()]);
    let mut late = World::empty();
    late.trusted = vec![stranger(start())];
    let planned = late.plan(after(9100));
    assert_eq!(planned.change, Some(Change::Begin { keep: vec![] }));
}

#[test]
fn a_clock_that_jumps_breaks_nothing() {
    let world = World::settled();
    // Back by less than clocks may differ: nothing happens.
    let back = start().checked_sub(SignedDuration::from_mins(50)).unwrap();
    let planned = world.plan(back);
    assert!(planned.shows && planned.change.is_none() && planned.early.is_none());
    // Back by more: nothing is made with a clock that is wrong, and that is told.
    let planned = world.plan(after(-5));
    assert!(planned.change.is_none() && planned.early.is_some());
    assert_eq!(planned.trusted, [world.authority()]);
    // Ahead, then right again: a certificate of the future is replaced.
    let mut ahead = World::settled();
    assert_eq!(ahead.rest(after(700)), ["renew"]);
    assert!(!ahead.plan(after(2)).shows);
    assert_eq!(ahead.rest(after(2)), ["renew"]);
    assert!(ahead.plan(after(2)).shows);
    // An announcement of the future is made again.
    let mut early = World::settled();
    early.data.remove(key::AUTHORITY_KEY);
    early.rest(after(100));
    early.data.insert(
        key::NEXT_SINCE.to_owned(),
        after(500).to_string().into_bytes(),
    );
    assert_eq!(early.rest(after(100)), ["announce"]);
    assert_eq!(early.rest(after(101)), ["promote"]);
}

#[test]
fn after_a_long_sleep_everything_is_made_anew() {
    let mut world = World::settled();
    let now = after(20_000);
    assert!(!world.plan(now).shows);
    assert_eq!(world.rest(now), ["begin", "promote"]);
    assert!(world.plan(now).shows);
}

#[test]
fn another_name_is_another_certificate_of_the_same_authority() {
    let mut world = World::settled();
    let authority = world.authority();
    world.names = vec!["127.0.0.1".to_owned(), "other.svc".to_owned()];
    assert_eq!(world.rest(after(1)), ["renew"]);
    assert!(world.certificate().is_for(&world.names));
    assert_eq!(world.authority(), authority);
}

#[test]
fn a_certificate_never_outlives_its_authority() {
    let mut world = World::settled();
    // Nobody trusts the next one, so that the old one signs to its end.
    let authority = world.authority();
    for hours in (0..8990).step_by(50) {
        let now = after(hours);
        if let Some(Change::Renew) = world.plan(now).change {
            world.data = changed(&world.data, &Change::Renew, &names(), &TERMS, now).unwrap();
            assert_ne!(
                world.plan(now).change,
                Some(Change::Renew),
                "once is enough"
            );
        }
        assert!(world.certificate().not_after <= authority.not_after);
        assert!(world.certificate().is_valid(now), "{hours}");
    }
}

#[test]
fn a_bundle_is_read_as_it_was_written() {
    let all: Vec<_> = (0..3).map(|hour| stranger(after(hour))).collect();
    assert_eq!(Certificate::read_all(bundle(&all).as_bytes()), all);
    assert_eq!(Certificate::read_all(b"no certificate"), []);
    let broken = format!("{}-----BEGIN CERTIFICATE-----\n!\n", bundle(&all[..1]));
    assert_eq!(Certificate::read_all(broken.as_bytes()), all[..1]);
}

#[test]
fn files_are_replaced_at_once_and_only_we_may_read_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tls.key");
    for content in ["one", "two", "two"] {
        put(&file, content.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
