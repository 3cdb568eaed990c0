//! What goes in comes out equal: a full-blown object of each kind loses no field.

use super::{fixtures, yaml};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use support::{crds, namespace};

#[tokio::test]
async fn a_full_object_of_each_kind_comes_back_as_it_was_sent() {
    crds::install_once().await.unwrap();
    let here = namespace("round-trip").await.unwrap();
    let mut kinds = BTreeSet::new();
    for file in fixtures("full") {
        let text = fs::read_to_string(&file).unwrap();
        let sent = yaml(&text);
        let create = ["create", "--validate=strict", "--filename", "-"];
        here.kubectl
            .run_with_input(&create, &text)
            .await
            .unwrap()
            .ok()
            .unwrap();
        let status = [
            "apply",
            "--server-side",
            "--validate=strict",
            "--subresource=status",
            "--filename",
            "-",
        ];
        here.kubectl
            .run_with_input(&status, &text)
            .await
            .unwrap()
            .ok()
            .unwrap();
        let get = ["get", "--filename", file.to_str().unwrap(), "--output", "json"];
        let got: Value =
            serde_json::from_str(&here.kubectl.run(&get).await.unwrap().ok().unwrap()).unwrap();
        assert_eq!(got["spec"], sent["spec"], "spec of {}", file.display());
        assert_eq!(got["status"], sent["status"], "status of {}", file.display());
        kinds.insert(sent["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds.len(), 19, "{kinds:?}");
}
