//! Objects that the schema refuses, each with a message that names the field.

use super::{fixtures, yaml};
use agents::api::kind::Kind;
use std::collections::BTreeMap;
use std::fs;
use support::{crds, namespace};

#[tokio::test]
async fn every_wrong_object_is_refused_with_a_message_that_names_the_field() {
    crds::install_once().await.unwrap();
    let here = namespace("refusals").await.unwrap();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for file in fixtures("wrong").iter().flat_map(|folder| {
        let name = folder.file_name().unwrap().to_str().unwrap();
        fixtures(&format!("wrong/{name}"))
    }) {
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap();
        let expected = first
            .strip_prefix("# expect: ")
            .unwrap_or_else(|| panic!("{}: the first line is not `# expect: ...`", file.display()));
        let said = here
            .kubectl
            .run_with_input(&["create", "--validate=strict", "--filename", "-"], &text)
            .await
            .unwrap();
        assert_eq!(said.code, Some(1), "{} was accepted", file.display());
        assert!(
            said.stderr.contains(expected),
            "{}: `{expected}` is not in: {}",
            file.display(),
            said.stderr
        );
        let kind = yaml(&text)["kind"].as_str().unwrap().to_owned();
        *refused.entry(kind).or_default() += 1;
    }
    for kind in Kind::ALL {
        let count = refused.get(kind.as_str()).copied().unwrap_or_default();
        assert!(count >= 3, "{kind}: {count} wrong objects; three at least");
    }
}
