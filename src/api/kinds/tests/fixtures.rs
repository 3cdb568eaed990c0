//! The objects in the files of this repository, for tests.

use std::path::Path;

use serde_json::Value;

use crate::api::kind::Kind;

/// An object of one of our kinds, and what the first line of its file says.
pub(crate) struct Fixture {
    pub(crate) first_line: String,
    pub(crate) kind: Kind,
    pub(crate) object: Value,
}

/// The objects of our kinds in the YAML files of a folder; folders in it are passed over.
pub(crate) fn objects(folder: &str) -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let first_line = text.lines().next().unwrap_or_default();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for object in documents {
            let kind = Kind::ALL
                .into_iter()
                .find(|kind| object["kind"] == kind.as_str());
            found.extend(kind.map(|kind| Fixture {
                first_line: first_line.to_owned(),
                kind,
                object,
            }));
        }
    }
    assert!(!found.is_empty(), "{} holds no object", folder.display());
    found
}
