//! From the definitions of the chart 0.9.1 to ours, with objects of all kinds stored: none is lost, none loses a field.
//!
//! The older definitions are made from the list of their fields, `tests/fixtures/upstream-fields.tsv`.

use std::collections::BTreeMap;

use agents::api::kind::Kind;
use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Map, Value, json};
use support::fixtures::full;
use support::lab::state::Tier;
use support::lab::{Lab, own_name};
use support::{Namespace, namespace_in};

use super::{agents, ended};
use crate::crds::fields::upstream;
use crate::crds::schema::Field;

/// The schema of one field, without what is in it.
fn schema_of(field: &Field) -> Map<String, Value> {
    let mut schema = Map::new();
    let mut set = |name: &str, value: Value| schema.insert(name.to_owned(), value);
    match field.type_.as_str() {
        "int-or-string" => set("x-kubernetes-int-or-string", json!(true)),
        type_ => set("type", json!(type_)),
    };
    if !field.format.is_empty() {
        set("format", json!(field.format));
    }
    if !field.values.is_empty() {
        set("enum", json!(field.values));
    }
    let mut rules = Vec::new();
    for limit in &field.limits {
        match limit.split_once('=') {
            None => drop(set("x-kubernetes-preserve-unknown-fields", json!(true))),
            Some(("cel", rule)) => rules.push(json!({"rule": rule})),
            Some(("map-of", "any")) => {
                let any = json!({"x-kubernetes-preserve-unknown-fields": true});
                set("additionalProperties", any);
            }
            Some(("map-of", type_)) => drop(set("additionalProperties", json!({"type": type_}))),
            Some(("pattern", pattern)) => drop(set("pattern", json!(pattern))),
            Some((name, value)) => {
                let value = serde_json::from_str(value).unwrap_or(Value::Null);
                set(name, value);
            }
        }
    }
    if !rules.is_empty() {
        set("x-kubernetes-validations", json!(rules));
    }
    schema
}

/// The place of a field in the schema of the whole object, made where it is not there yet.
fn place<'a>(whole: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.').fold(whole, |inside, part| {
        let name = part.trim_end_matches("[]");
        let property = &mut inside["properties"][name];
        match part.len() > name.len() {
            true => &mut property["items"],
            false => property,
        }
    })
}

fn schema(crd: &str) -> Result<Value> {
    let mut whole = json!({"type": "object"});
    for ((_, path), field) in upstream().iter().filter(|((of, _), _)| of == crd) {
        let place_of_field = place(&mut whole, path);
        match place_of_field.as_object_mut() {
            Some(known) => known.extend(schema_of(field)),
            None => *place_of_field = Value::Object(schema_of(field)),
        }
        if field.required {
            let (above, name) = path.rsplit_once('.').unwrap_or(("", path));
            let above = match above {
                "" => &mut whole,
                above => place(&mut whole, above),
            };
            let above = above.as_object_mut().context("an object")?;
            let required = above.entry("required").or_insert(json!([]));
            required.as_array_mut().context("a list")?.push(json!(name));
        }
    }
    Ok(whole)
}

/// All definitions as they were, as one list.
fn older() -> Result<Value> {
    let definition = |kind: Kind| -> Result<Value> {
        let name = format!("{}.{}", kind.plural(), kind.group());
        let word = kind.as_str();
        let names = json!({
            "kind": word, "listKind": format!("{word}List"), "plural": kind.plural(), "singular": word.to_lowercase(),
        });
        let version = json!({
            "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema(&name)?},
        });
        Ok(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": kind.group(), "names": names, "scope": "Namespaced", "versions": [version]},
        }))
    };
    let items: Result<Vec<_>> = Kind::ALL.into_iter().map(definition).collect();
    Ok(list(items?))
}

fn list(items: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// As Helm installs them.
async fn install(lab: &Lab) -> Result<()> {
    let apply = [
        "apply",
        "--server-side",
        "--field-manager=helm",
        "--filename",
        "-",
    ];
    let older = older()?.to_string();
    let kubectl = lab.kubectl();
    kubectl.run_with_input(&apply, &older).await?.ok()?;
    let wait = [
        "wait",
        "--for=condition=Established",
        "--timeout=60s",
        "--all",
        "customresourcedefinitions",
    ];
    kubectl.run(&wait).await?.ok().map(drop)
}

/// Objects of all kinds, with everything that the older definitions know; what they do not know is not stored.
async fn store(here: &Namespace) -> Result<()> {
    let mut objects = Vec::new();
    for kind in Kind::ALL {
        objects.extend(full(kind)?);
    }
    let objects = list(objects).to_string();
    let create: &[&str] = &["create", "--validate=ignore", "--filename", "-"];
    let status = [
        "replace",
        "--validate=ignore",
        "--subresource=status",
        "--filename",
        "-",
    ];
    for arguments in [create, &status] {
        let said = here.kubectl.run_with_input(arguments, &objects).await?;
        said.ok()?;
    }
    Ok(())
}

/// Every object that is stored, by kind and name, without the bookkeeping of who wrote what.
async fn stored(here: &Namespace) -> Result<BTreeMap<String, Value>> {
    let kinds = Kind::ALL.map(|kind| format!("{}.{}", kind.plural(), kind.group()));
    let get = ["get", &kinds.join(","), "--output=json"];
    let mut found: Value = serde_json::from_str(&here.kubectl.run(&get).await?.ok()?)?;
    let items = found["items"].as_array_mut().context("a list")?;
    let items = items.drain(..).map(|mut object| {
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        (name, object)
    });
    Ok(items.collect())
}

#[tokio::test]
async fn objects_of_the_chart_0_9_1_stay_as_they_are_and_no_stored_version_is_dropped() -> Result<()>
{
    support::starts_labs!();
    let lab = Lab::start(&own_name("older")?, Tier::ControlPlane).await?;
    install(&lab).await?;
    let here = namespace_in(&lab, "older").await?;
    store(&here).await?;
    let before = stored(&here).await?;
    let full = before.values().filter(|one| one["status"].is_object());
    ensure!(full.count() >= Kind::ALL.len(), "{:?}", before.keys());
    let file = lab.kubeconfig();

    let name = "toolruns.tools.proompteng.ai";
    let definitions: Api<CustomResourceDefinition> = Api::all(lab.client().await?);
    let also = |versions: &[&str]| Patch::Merge(json!({"status": {"storedVersions": versions}}));
    let params = PatchParams::default();
    let claimed = also(&["v1alpha0", "v1alpha1"]);
    definitions.patch_status(name, &params, &claimed).await?;
    let refused = agents(file, &["crds", "apply", "--force-conflicts"]).await?;
    ended(&refused, 1);
    let why = format!("nothing was applied: {name} has objects stored as v1alpha0");
    ensure!(refused.stderr.contains(&why), "{}", refused.stderr);
    definitions
        .patch_status(name, &params, &also(&["v1alpha1"]))
        .await?;

    let conflict = agents(file, &["crds", "apply"]).await?;
    ended(&conflict, 3);
    ensure!(conflict.stderr.contains("\"helm\""), "{}", conflict.stderr);
    let applied = agents(file, &["crds", "apply", "--force-conflicts"]).await?;
    ended(&applied, 0);
    ended(&agents(file, &["crds", "diff"]).await?, 0);
    assert_eq!(stored(&here).await?, before);
    let runs = here.api::<AgentRun>().list(&ListParams::default()).await?;
    ensure!(!runs.items.is_empty(), "our own types read them as well");
    let stored = definitions.get(name).await?.status;
    let stored = stored.and_then(|status| status.stored_versions);
    assert_eq!(stored, Some(vec!["v1alpha1".to_owned()]));
    Ok(())
}
