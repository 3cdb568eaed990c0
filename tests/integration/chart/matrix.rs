//! Many sets of values, and what must hold whatever the values are.

mod schemas;

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use support::{
    fixtures::repository,
    helm::{Helm, Rendered},
};

use super::variables::starts;
use schemas::Schemas;

/// Files with values that we give to people.
const OWN_FILES: &[&str] = &[
    "charts/agents/values-ha.yaml",
    "charts/agents/values-minimal.yaml",
    "charts/agents/values-openshift.yaml",
    "examples/argocd/overlay/values.yaml",
];

fn sets() -> Result<BTreeMap<String, Value>> {
    let read = |file: &str| fs::read_to_string(repository().join(file)).context(file.to_owned());
    let text = read("tests/fixtures/chart/matrix.yaml")?;
    let mut sets: BTreeMap<String, Value> = serde_saphyr::from_str(&text)?;
    for file in OWN_FILES {
        sets.insert((*file).to_owned(), serde_saphyr::from_str(&read(file)?)?);
    }
    Ok(sets)
}

fn pods(rendered: &Rendered) -> impl Iterator<Item = &Value> {
    let workloads = rendered.all("Deployment").chain(rendered.all("Rollout"));
    workloads.map(|workload| &workload["spec"]["template"])
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers"];
    lists
        .into_iter()
        .filter_map(|list| pod["spec"][list].as_array())
        .flatten()
}

/// The level `restricted` of Pod Security.
fn is_restricted(pod: &Value) -> bool {
    let context = &pod["spec"]["securityContext"];
    let whole = context["runAsNonRoot"] == true
        && context["seccompProfile"]["type"] == "RuntimeDefault"
        && pod["spec"]["hostNetwork"].is_null();
    whole
        && containers(pod).all(|container| {
            let context = &container["securityContext"];
            context["allowPrivilegeEscalation"] == false
                && context["capabilities"] == json!({"drop": ["ALL"]})
                && context["readOnlyRootFilesystem"] == true
        })
}

fn includes(labels: &Value, selector: &Value) -> bool {
    let selector = selector.as_object();
    selector.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value))
}

/// What must hold for one set.
fn check(rendered: &Rendered) -> Result<()> {
    let mut names = BTreeMap::new();
    for object in &rendered.objects {
        let metadata = &object["metadata"];
        let key = format!(
            "{} {} {}",
            object["kind"], metadata["namespace"], metadata["name"]
        );
        if names.insert(key.clone(), ()).is_some() {
            bail!("{key} is there twice");
        }
        if metadata["name"].as_str().is_none_or(|name| name.len() > 63) {
            bail!("{key} has no name that fits");
        }
        if !object["metadata"]["annotations"]["helm.sh/hook"].is_null() {
            bail!("{key} is a hook");
        }
    }
    for workload in rendered.all("Deployment").chain(rendered.all("Rollout")) {
        let labels = &workload["spec"]["template"]["metadata"]["labels"];
        if !includes(labels, &workload["spec"]["selector"]["matchLabels"]) {
            bail!(
                "{} does not select its own pods",
                workload["metadata"]["name"]
            );
        }
    }
    for service in rendered.all("Service") {
        let selector = &service["spec"]["selector"];
        let own = pods(rendered).filter(|pod| includes(&pod["metadata"]["labels"], selector));
        let port = &service["spec"]["ports"][0]["targetPort"];
        let has_port = |pod: &Value| {
            let mut ports = containers(pod)
                .filter_map(|one| one["ports"].as_array())
                .flatten();
            ports.any(|found| found["name"] == *port)
        };
        let mut own = own.peekable();
        if own.peek().is_none() || !own.all(has_port) {
            bail!("{} leads to no port", service["metadata"]["name"]);
        }
    }
    if let Some(pod) = pods(rendered).find(|pod| !is_restricted(pod)) {
        bail!("{pod} is not restricted");
    }
    starts::<agents::controller::Config>(rendered, "controllers")?;
    starts::<agents_sidecar::Config>(rendered, "sidecar")?;
    if rendered.container("control-plane").is_ok() {
        starts::<agents::serve::Config>(rendered, "control-plane")?;
    }
    if rendered.container("webhook").is_ok() {
        starts::<agents_webhook::Config>(rendered, "webhook")?;
    }
    let sidecar = rendered.container("sidecar")?;
    if sidecar["restartPolicy"] != "Always" || !sidecar["readinessProbe"].is_null() {
        bail!("the sidecar is no native sidecar without a say in readiness");
    }
    Ok(())
}

#[tokio::test]
async fn every_set_of_values_renders_objects_that_the_api_server_knows() -> Result<()> {
    support::kinds!();
    let helm = Helm::new().await?;
    let sets = sets()?;
    assert!(sets.len() >= 40, "there are only {} sets", sets.len());
    let mut texts = String::new();
    for (name, values) in sets {
        let rendered = helm
            .render(&values, &[])
            .await
            .with_context(|| name.clone())?;
        check(&rendered).with_context(|| name)?;
        texts += &rendered.text;
    }
    let said = Schemas::of_lab().await?.hold_against(&texts).await?;
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    Ok(())
}

#[tokio::test]
async fn both_helms_render_the_same() -> Result<()> {
    let helms = [Helm::new().await?, Helm::named("helm3").await?];
    let sets = sets()?;
    for name in [
        "defaults",
        "all namespaces",
        "rollouts",
        "variables",
        "network policies",
    ] {
        let mut rendered = Vec::new();
        for helm in &helms {
            let mut objects = helm.render(&sets[name], &[]).await?.objects;
            // Each has its own order of kinds.
            objects.sort_by_key(Value::to_string);
            rendered.push(objects);
        }
        assert_eq!(rendered[0], rendered[1], "{name}");
    }
    Ok(())
}
