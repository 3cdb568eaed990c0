//! The overlay of `examples/argocd`: what a real kustomize makes of the chart is what Helm makes of it, in every namespace.

use std::{collections::BTreeSet, fs};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::{
    fixtures::repository,
    helm::{Helm, Rendered},
    kubectl::Kubectl,
    lab::{report::Report, tools::build::programs},
};
use tempfile::TempDir;

const OVERLAY: &str = "examples/argocd/overlay";

/// What a file of the overlay says.
fn read(file: &str) -> Result<Value> {
    let path = repository().join(OVERLAY).join(file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// What kustomize builds from a folder. It is the one in kubectl, and calls Helm 3: it knows the flags of no other.
async fn built(folder: &str) -> Result<Rendered> {
    let programs = programs(&["kubectl", "helm3"], Report::start()).await?;
    let helm = programs.path("helm3")?.to_str().context("UTF-8")?;
    let build = ["kustomize", "--enable-helm", "--helm-command", helm];
    let build = [&build[..], &["--load-restrictor", "LoadRestrictionsNone"]].concat();
    let kubectl = Kubectl::new(programs.path("kubectl")?, Vec::new());
    let said = kubectl.run(&[&build[..], &[folder]].concat()).await?;
    Rendered::read(&said.ok()?)
}

/// Every object, told apart by its whole text, in an order that is the same for both.
fn sorted(rendered: Rendered) -> Vec<Value> {
    let mut objects = rendered.objects;
    objects.sort_by_key(Value::to_string);
    objects
}

/// Both render the same. The texts of two dozen definitions are long, so the first difference is shown alone.
async fn is_as_helm_renders(folder: &str, values: &Value) -> Result<Rendered> {
    let built = built(folder).await?;
    let helm = Helm::named("helm3").await?;
    let rendered = helm.render(values, &["--include-crds"]).await?;
    let (ours, theirs) = (sorted(rendered), sorted(built.clone()));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{values}");
    }
    assert_eq!(ours.len(), theirs.len(), "{values}");
    Ok(built)
}

#[tokio::test]
async fn kustomize_builds_the_overlay_as_helm_renders_the_chart() -> Result<()> {
    let folder = repository().join(OVERLAY);
    let folder = folder.to_str().context("UTF-8")?;
    let built = is_as_helm_renders(folder, &read("values.yaml")?).await?;
    assert_eq!(built.all("CustomResourceDefinition").count(), 19);
    assert!(built.get("ServiceMonitor/agents").is_ok());
    Ok(())
}

/// An overlay that names a namespace for all moves every object there: Roles of several namespaces would be one.
#[tokio::test]
async fn objects_of_other_namespaces_stay_there() -> Result<()> {
    let mut overlay = read("kustomization.yaml")?;
    assert_eq!(overlay["namespace"], Value::Null);
    overlay["helmGlobals"]["chartHome"] = json!(repository().join("charts"));
    let mut values = read("values.yaml")?;
    let several = json!({"controller": {"namespaces": ["agents", "team-a"]}});
    let all = json!({"controller": {"namespaces": ["*"]}, "rbac": {"clusterScoped": true}});
    for (more, elsewhere) in [
        (several, ["agents", "team-a"]),
        (all, ["agents", "default"]),
    ] {
        super::variables::merge(&mut values, &more);
        let folder = TempDir::new()?;
        fs::write(
            folder.path().join("kustomization.yaml"),
            overlay.to_string(),
        )?;
        fs::write(folder.path().join("values.yaml"), values.to_string())?;
        let path = folder.path().to_str().context("UTF-8")?;
        let built = is_as_helm_renders(path, &values).await?;
        let places = built.all("Role").map(|role| &role["metadata"]["namespace"]);
        let places: BTreeSet<_> = places.filter_map(Value::as_str).collect();
        assert_eq!(places, elsewhere.into(), "{more}");
    }
    Ok(())
}
