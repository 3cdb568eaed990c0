use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::*;

/// A ConfigMap with a version; what stands before the dash of its name is what it belongs to.
fn object(name: &str, version: u64) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.namespace = Some("a".to_owned());
    object.metadata.resource_version = Some(version.to_string());
    object
}

fn shelf() -> Shelf<ConfigMap> {
    Shelf::with_owner(|object| Some(object.name_any().split_once('-')?.0.to_owned()))
}

fn key(name: &str) -> Key {
    Key::new("a", name)
}

fn list(shelf: &Shelf<ConfigMap>, objects: &[(&str, u64)]) -> Listed<ConfigMap> {
    shelf.begin(&Scope::Cluster);
    for (name, version) in objects {
        shelf.stage(&Scope::Cluster, object(name, *version));
    }
    shelf.complete(&Scope::Cluster)
}

/// A live read did not find it.
fn forget(shelf: &Shelf<ConfigMap>, name: &str) -> Option<Change<ConfigMap>> {
    let looked_for = shelf.get(&key(name))?;
    shelf.forget(&key(name), &looked_for)
}

fn told(changes: &[Change<ConfigMap>]) -> Vec<String> {
    let told = changes.iter().map(|change| match change {
        Change::Applied { object, before } => format!(
            "{}{}",
            if before.is_some() { "~" } else { "+" },
            object.name_any()
        ),
        Change::Deleted { object, .. } => format!("-{}", object.name_any()),
    });
    told.collect()
}

#[test]
fn only_the_watch_tells_how_an_object_went() {
    let shelf = shelf();
    list(&shelf, &[("a", 1), ("b", 1), ("c", 1)]);
    let watched = shelf.delete(object("a", 2));
    let listed = list(&shelf, &[("c", 1)]).changes.pop();
    let looked_up = forget(&shelf, "c");
    for (row, change, expected) in [
        ("watched", watched, true),
        ("listed", listed, false),
        ("looked up", looked_up, false),
    ] {
        let Some(Change::Deleted { is_last, .. }) = change else {
            panic!("{row}: {change:?}");
        };
        assert_eq!(is_last, expected, "{row}");
    }
}

#[test]
fn a_list_tells_what_came_what_changed_and_what_went() {
    let shelf = shelf();
    assert_eq!(
        told(&list(&shelf, &[("x", 1), ("y", 2)]).changes),
        ["+x", "+y"]
    );
    assert_eq!(
        told(&list(&shelf, &[("x", 1), ("y", 2)]).changes),
        Vec::<String>::new()
    );
    assert_eq!(
        told(&list(&shelf, &[("y", 5), ("z", 4)]).changes),
        ["-x", "~y", "+z"]
    );
}

#[test]
fn what_we_wrote_is_seen_at_once_and_old_news_does_not_undo_it() {
    let shelf = shelf();
    assert!(shelf.apply(object("x", 1)).is_some());
    shelf.learn(object("x", 7));
    for old in [1, 6, 7] {
        assert!(shelf.apply(object("x", old)).is_none(), "{old}");
    }
    assert!(
        shelf.delete(object("x", 6)).is_none(),
        "the deletion of an earlier one"
    );
    assert!(shelf.apply(object("x", 8)).is_some());
    assert!(shelf.delete(object("x", 9)).is_some());
    assert_eq!(shelf.keys(), []);
}

#[test]
fn what_we_wrote_while_a_list_was_on_its_way_is_doubtful_if_the_list_lacks_it() {
    let shelf = shelf();
    shelf.begin(&Scope::Cluster);
    shelf.learn(object("new", 3));
    let listed = shelf.complete(&Scope::Cluster);
    assert_eq!(told(&listed.changes), Vec::<String>::new());
    assert_eq!(listed.doubtful, [key("new")]);
    assert!(shelf.get(&key("new")).is_some());
    assert!(forget(&shelf, "new").is_some());
    assert!(shelf.get(&key("new")).is_none());
}

#[test]
fn a_list_says_nothing_about_other_scopes() {
    let shelf = shelf();
    shelf.learn(object("x", 1));
    let other = Scope::Namespace("b".to_owned());
    shelf.begin(&other);
    assert_eq!(told(&shelf.complete(&other).changes), Vec::<String>::new());
    assert!(shelf.get(&key("x")).is_some());
}

#[test]
fn objects_are_found_by_what_they_belong_to() {
    let shelf = shelf();
    drop(list(&shelf, &[("run-1", 1), ("run-2", 2), ("other-1", 3)]));
    let names = |owner: &str| {
        let found = shelf.of_owner(&key(owner)).into_iter();
        found.map(|object| object.name_any()).collect::<Vec<_>>()
    };
    assert_eq!(names("run"), ["run-1", "run-2"]);
    assert!(shelf.delete(object("run-1", 4)).is_some());
    assert_eq!(names("run"), ["run-2"]);
    assert_eq!(names("nobody"), Vec::<String>::new());
    let all = shelf.in_namespace("a", |object| object.name_any() != "run-2");
    assert_eq!(all.len(), 1);
}

#[test]
fn what_was_written_for_someone_else_is_told_when_the_watch_brings_it() {
    let shelf = shelf();
    let hear = |version| {
        let change = shelf.apply(object("x", version));
        told(&change.into_iter().collect::<Vec<_>>())
    };
    let nothing = Vec::<String>::new();
    shelf.announce(object("x", 1));
    assert!(shelf.get(&key("x")).is_some(), "seen at once");
    assert_eq!(hear(1), ["+x"], "and told");
    assert_eq!(hear(1), nothing, "once");
    shelf.announce(object("x", 2));
    shelf.learn(object("x", 3));
    assert_eq!(hear(2), ["~x"], "also if who works on it was quicker");
    assert_eq!(hear(3), nothing);
    shelf.announce(object("y", 4));
    assert_eq!(told(&list(&shelf, &[("x", 3), ("y", 4)]).changes), ["+y"]);
    shelf.announce(object("y", 5));
    assert_eq!(hear(3), nothing);
    shelf.unlearn(&key("y"));
    assert_eq!(told(&list(&shelf, &[("x", 3)]).changes), nothing);
}

#[test]
fn what_no_watch_confirms_is_asked_for_once_it_is_overdue() {
    let overdue = |shelf: &Shelf<ConfigMap>| {
        let _just_written = shelf.overdue(&Scope::Cluster);
        shelf.overdue(&Scope::Cluster)
    };
    // The answer to our write comes last.
    let gone = shelf();
    gone.delete(object("a", 2));
    gone.learn(object("a", 1));
    assert_eq!(overdue(&gone), [key("a")], "the watch told that it went");
    assert_eq!(told(&Vec::from_iter(forget(&gone, "a"))), ["-a"]);
    assert_eq!(overdue(&gone), [], "found gone");

    let listed = shelf();
    list(&listed, &[]);
    listed.learn(object("a", 1));
    assert_eq!(overdue(&listed), [key("a")], "a list lacked it");
    let elsewhere = Scope::Namespace("b".to_owned());
    assert_eq!(listed.overdue(&elsewhere), [], "nobody follows it here");

    let there = shelf();
    there.learn(object("a", 2));
    there.apply(object("a", 1));
    assert_eq!(overdue(&there), [key("a")], "old news confirms nothing");
    there.apply(object("a", 2));
    assert_eq!(overdue(&there), [], "told by the watch");
    there.learn(object("a", 3));
    list(&there, &[("a", 3)]);
    assert_eq!(overdue(&there), [], "found by a list");
    there.learn(object("a", 4));
    there.unlearn(&key("a"));
    assert_eq!(overdue(&there), [], "deleted by us");
}

#[test]
fn few_objects_are_asked_for_at_once() {
    let shelf = shelf();
    for number in 0..100 {
        shelf.learn(object(&format!("o{number}"), 1));
    }
    let mut found = 0;
    for _ in 0..100 {
        let overdue = shelf.overdue(&Scope::Cluster);
        assert!(overdue.len() <= OVERDUE_AT_ONCE, "{}", overdue.len());
        found += overdue.len();
        for key in overdue {
            forget(&shelf, &key.name);
        }
    }
    assert_eq!(found, 100);
}

#[test]
fn what_nobody_answers_for_does_not_keep_others_from_their_turn() {
    let shelf = shelf();
    let names = (0..OVERDUE_AT_ONCE * 2).map(|number| format!("o{number}"));
    for name in names.clone() {
        shelf.learn(object(&name, 1));
    }
    let asked: BTreeSet<Key> = (0..4)
        .flat_map(|_| shelf.overdue(&Scope::Cluster))
        .collect();
    assert_eq!(asked, names.map(|name| key(&name)).collect());
}

#[test]
fn what_was_written_anew_while_it_was_looked_for_stays() {
    let shelf = shelf();
    shelf.learn(object("a", 1));
    let looked_for = shelf.get(&key("a")).unwrap();
    shelf.learn(object("a", 5));
    assert!(shelf.forget(&key("a"), &looked_for).is_none());
    assert_eq!(shelf.keys(), [key("a")]);
}
