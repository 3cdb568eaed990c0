//! Installing the CRDs, and the examples on top of them.

use agents::api::kind::Kind;
use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt};
use std::collections::BTreeMap;
use support::fixtures::repository;
use support::{crds, namespace};

#[tokio::test]
async fn the_crds_install_without_a_warning_and_are_established() -> Result<()> {
    let client = support::own_lab!().client().await?;
    assert_eq!(crds::install_once().await?, "");
    let api: Api<CustomResourceDefinition> = Api::all(client);
    for kind in Kind::ALL {
        let crd = api
            .get(&format!("{}.{}", kind.plural(), kind.group()))
            .await
            .unwrap();
        let status = crd.status.clone().unwrap();
        let conditions: BTreeMap<String, String> = status
            .conditions
            .unwrap()
            .into_iter()
            .map(|condition| (condition.type_, condition.status))
            .collect();
        let expected = [("Established", "True"), ("NamesAccepted", "True")]
            .map(|(type_, status)| (type_.to_owned(), status.to_owned()));
        assert_eq!(conditions, BTreeMap::from(expected), "{}", crd.name_any());
    }
    Ok(())
}

#[tokio::test]
async fn every_example_is_accepted_with_strict_validation_and_no_warning() -> Result<()> {
    support::kinds!();
    let here = namespace("examples").await.unwrap();
    let folder = repository().join("examples");
    let said = here
        .kubectl
        .run(&[
            "apply",
            "--validate=strict",
            "--filename",
            folder.to_str().unwrap(),
        ])
        .await
        .unwrap();
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    for kind in Kind::ALL {
        let resource = format!("{}.{}/", kind.to_string().to_lowercase(), kind.group());
        assert!(
            said.stdout.contains(&resource),
            "no example of {kind} in:\n{}",
            said.stdout
        );
    }
    Ok(())
}
