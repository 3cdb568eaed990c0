//! Objects that the schema refuses, each with a message that names the field.

use agents::api::kind::Kind;
use anyhow::Result;
use support::fixtures::wrong;
use support::namespace;

#[tokio::test]
async fn every_wrong_object_is_refused_with_a_message_that_names_the_field() -> Result<()> {
    support::kinds!();
    let here = namespace("refusals").await.unwrap();
    for kind in Kind::ALL {
        let objects = wrong(kind).unwrap();
        assert!(
            objects.len() >= 3,
            "{kind}: {} wrong objects; three at least",
            objects.len()
        );
        for wrong in objects {
            let create = ["create", "--validate=strict", "--filename", "-"];
            let object = wrong.object.to_string();
            let said = here.kubectl.run_with_input(&create, &object).await.unwrap();
            assert_eq!(said.code, Some(1), "{} was accepted", wrong.file);
            assert!(
                said.stderr.contains(&wrong.expect),
                "{}: `{}` is not in: {}",
                wrong.file,
                wrong.expect,
                said.stderr
            );
        }
    }
    Ok(())
}
