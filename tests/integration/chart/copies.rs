//! Helm reads only what is inside the chart, so the chart has copies; `make generate` makes them.

use std::{collections::BTreeMap, fs, path::Path};
use support::fixtures::repository;

/// The files of a folder by name; none if it is not there.
fn files(folder: &Path, end: &str) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeMap::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let wanted = paths.filter(|path| path.extension().is_some_and(|found| found == end));
    wanted
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn the_definitions_and_dashboards_of_the_chart_are_those_of_the_repository() {
    for (folder, end) in [("crds", "yaml"), ("dashboards", "json")] {
        let [ours, charts] = [folder.to_owned(), format!("charts/agents/{folder}")]
            .map(|folder| files(&repository().join(folder), end));
        let names = |files: &BTreeMap<String, _>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            names(&ours),
            names(&charts),
            "{folder}: run `make generate`"
        );
        for (name, bytes) in ours {
            assert!(
                charts[&name] == bytes,
                "{folder}/{name}: run `make generate`"
            );
        }
    }
}
