//! What goes in comes out equal: a full-blown object of each kind loses no field.

use agents::api::kind::Kind;
use anyhow::Result;
use serde_json::Value;
use support::fixtures::full;
use support::{Namespace, namespace};

#[tokio::test]
async fn a_full_object_of_each_kind_comes_back_as_it_was_sent() -> Result<()> {
    support::kinds!();
    for kind in Kind::ALL {
        for sent in full(kind).unwrap() {
            let here = namespace("round-trip").await.unwrap();
            let got = stored(&here, kind, &sent).await;
            assert_eq!(got["spec"], sent["spec"], "spec of {kind}");
            assert_eq!(got["status"], sent["status"], "status of {kind}");
        }
    }
    Ok(())
}

/// Creates the object, writes its status, and reads it back.
async fn stored(here: &Namespace, kind: Kind, sent: &Value) -> Value {
    let object = sent.to_string();
    let create: &[&str] = &["create", "--validate=strict", "--filename", "-"];
    let write_status = &[
        "replace",
        "--validate=strict",
        "--subresource=status",
        "--filename",
        "-",
    ];
    for arguments in [create, write_status] {
        let said = here
            .kubectl
            .run_with_input(arguments, &object)
            .await
            .unwrap();
        said.ok().unwrap();
    }
    let resource = format!("{}.{}", kind.plural(), kind.group());
    let name = sent["metadata"]["name"].as_str().unwrap();
    let read = ["get", &resource, name, "--output", "json"];
    let said = here.kubectl.run(&read).await.unwrap();
    serde_json::from_str(&said.ok().unwrap()).unwrap()
}
