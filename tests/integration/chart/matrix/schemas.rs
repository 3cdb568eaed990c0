//! Schemas of all kinds that the chart renders, which allow nothing else, and what kubeconform says by them.

use std::{fs, path::Path, process::Stdio};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use support::{
    cert_manager,
    kubectl::Said,
    lab::{self, report::Report, tools::build::programs},
    monitoring, rollouts,
};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command};

/// Schemas in a folder.
pub(super) struct Schemas {
    folder: TempDir,
}

impl Schemas {
    /// What the API server of the lab says of its kinds, and other projects of theirs.
    pub(super) async fn of_lab() -> Result<Self> {
        let folder = TempDir::new()?;
        write_schemas(folder.path()).await?;
        Ok(Self { folder })
    }

    /// Runs kubeconform over some objects.
    pub(super) async fn hold_against(&self, objects: &str) -> Result<Said> {
        let programs = programs(&["kubeconform"], Report::start()).await?;
        let location = format!(
            "{}/{{{{.Group}}}}_{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json",
            self.folder.path().display()
        );
        let mut child = Command::new(programs.path("kubeconform")?)
            .args(["-strict", "-summary", "-schema-location", &location])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdin = child
            .stdin
            .take()
            .context("the input of kubeconform is not ours")?;
        stdin.write_all(objects.as_bytes()).await?;
        drop(stdin);
        Said::of(child.wait_with_output().await?)
    }
}

/// Writes what the API server says of each kind as a schema that allows nothing else.
async fn write_schemas(folder: &Path) -> Result<()> {
    let client = lab::shared().await?.client().await?;
    let request = http::Request::get("/openapi/v2").body(Vec::new())?;
    let document: Value = client.request(request).await?;
    let definitions = document["definitions"]
        .as_object()
        .context("no definitions")?;
    for (name, definition) in definitions {
        for kind in definition["x-kubernetes-group-version-kind"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let part = |key: &str| kind[key].as_str().unwrap_or_default().to_owned();
            // The core group is asked for by its version.
            let group = Some(part("group")).filter(|group| !group.is_empty());
            let group = group.unwrap_or_else(|| part("version"));
            let mut needed = Map::new();
            closed(definitions, name, &mut needed);
            let schema = json!({"$ref": format!("#/definitions/{name}"), "definitions": needed});
            let file = format!(
                "{group}_{}_{}.json",
                part("kind").to_lowercase(),
                part("version")
            );
            fs::write(folder.join(file), schema.to_string())?;
        }
    }
    let mut folders = monitoring::definitions().await?;
    folders.push(cert_manager::definitions().await?);
    folders.push(rollouts::definitions().await?);
    for definitions in folders {
        for file in fs::read_dir(definitions)? {
            let file = file?.path();
            if file.extension().is_some_and(|end| end == "yaml") {
                write_defined(folder, &fs::read_to_string(file)?)?;
            }
        }
    }
    Ok(())
}

/// The same from the definition of a kind.
fn write_defined(folder: &Path, definition: &str) -> Result<()> {
    let definition: Value = serde_saphyr::from_str(definition)?;
    let spec = &definition["spec"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
    for version in spec["versions"].as_array().into_iter().flatten() {
        let mut schema = version["schema"]["openAPIV3Schema"].clone();
        close(&mut schema, &mut Vec::new());
        let (group, kind) = (word(&spec["group"]), word(&spec["names"]["kind"]));
        let file = format!("{group}_{kind}_{}.json", word(&version["name"]));
        fs::write(folder.join(file), schema.to_string())?;
    }
    Ok(())
}

/// A definition and all that it refers to, closed for fields that it does not name.
fn closed(all: &Map<String, Value>, name: &str, found: &mut Map<String, Value>) {
    if found.contains_key(name) {
        return;
    }
    let mut definition = all.get(name).cloned().unwrap_or(Value::Null);
    found.insert(name.to_owned(), Value::Null);
    if name.ends_with(".Quantity") {
        definition = json!({"type": ["string", "number"]});
    }
    let mut references = Vec::new();
    close(&mut definition, &mut references);
    found.insert(name.to_owned(), definition);
    for reference in references {
        closed(all, &reference, found);
    }
}

fn close(schema: &mut Value, references: &mut Vec<String>) {
    let Value::Object(object) = schema else {
        return;
    };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        references.extend(reference.strip_prefix("#/definitions/").map(str::to_owned));
    }
    if object
        .get("format")
        .is_some_and(|format| format == "int-or-string")
    {
        object.remove("type");
    }
    let open = object.get("x-kubernetes-preserve-unknown-fields").is_some();
    if object.contains_key("properties") && !object.contains_key("additionalProperties") && !open {
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    for (key, inner) in object.iter_mut() {
        match (key.as_str(), inner) {
            ("properties", Value::Object(fields)) => {
                fields
                    .values_mut()
                    .for_each(|field| close(field, references));
            }
            ("items" | "additionalProperties", inner) => close(inner, references),
            _ => {}
        }
    }
}

#[tokio::test]
async fn the_check_against_schemas_finds_a_field_that_does_not_exist() -> Result<()> {
    let schemas = Schemas::of_lab().await?;
    for kind in [
        "apiVersion: apps/v1\nkind: Deployment",
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout",
        "apiVersion: cert-manager.io/v1\nkind: Certificate",
        "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor",
        "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor",
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule",
        "apiVersion: grafana.integreatly.org/v1beta1\nkind: GrafanaDashboard",
    ] {
        let wrong = format!("{kind}\nmetadata: {{name: a}}\nspec: {{replica: 1}}\n");
        let said = schemas.hold_against(&wrong).await?;
        assert_eq!(said.code, Some(1), "{kind}");
        assert!(said.stdout.contains("replica"), "{}", said.stdout);
    }
    Ok(())
}
