//! The generated definitions, without a cluster: the files are up to date and promise what operators rely on.

pub(crate) mod fields;
mod objects;
pub(crate) mod schema;

use agents::api::crd;
use agents::api::kind::Kind;
use std::fs;
use support::fixtures::repository;

#[test]
fn the_files_are_what_the_types_generate() {
    for kind in Kind::ALL {
        let path = repository().join("crds").join(crd::file_name(kind));
        let stored = fs::read_to_string(&path).unwrap_or_default();
        let generated = crd::to_yaml(&crd::definition(kind)).unwrap();
        assert!(
            stored == generated,
            "{} is out of date: run `make generate`",
            path.display()
        );
    }
}

#[test]
fn there_is_no_file_without_a_kind() {
    let mut found: Vec<_> = fs::read_dir(repository().join("crds"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let mut wanted = Kind::ALL.map(crd::file_name);
    wanted.sort();
    assert_eq!(found, wanted);
}
