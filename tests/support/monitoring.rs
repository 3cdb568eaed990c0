//! The kinds of other projects that say what is scraped, which rules hold and which dashboards there are. Only their definitions:
//! nothing of these projects runs in a lab.

use anyhow::Result;
use std::path::PathBuf;

use crate::lab::tools::build::module;

/// The folder of what is pinned.
const RECIPE: &str = "monitoring";
/// Modules, and where the definitions are in each.
const PLACES: [(&str, &str); 2] = [
    (
        "github.com/prometheus-operator/prometheus-operator",
        "example/prometheus-operator-crd",
    ),
    ("github.com/grafana/grafana-operator/v5", "config/crd/bases"),
];

/// The folders with the definitions.
pub async fn definitions() -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for (name, place) in PLACES {
        folders.push(module(RECIPE, name).await?.join(place));
    }
    Ok(folders)
}
