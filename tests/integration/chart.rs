//! The chart: what it renders for which values, and what it refuses. A real `helm` does it; a real cluster takes it.

mod alerts;
mod certificates;
mod copies;
mod delivery;
mod dry_run;
mod errors;
mod gitops;
mod install;
mod matrix;
mod optional;
mod ports;
mod restricted;
mod rights;
mod rungs;
mod twin;
mod upstream;
mod variables;

use anyhow::Result;
use support::helm::Helm;

/// The name of a label of Kubernetes in Prometheus.
pub(crate) fn plain(label: &str) -> String {
    let letter = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '_',
    };
    label.chars().map(letter).collect()
}

#[tokio::test]
async fn the_chart_passes_the_linter_of_both_helms() -> Result<()> {
    for program in ["helm", "helm3"] {
        let helm = Helm::named(program).await?;
        let said = helm.run(&["lint", "--strict", "charts/agents"], "").await?;
        assert_eq!(
            said.code,
            Some(0),
            "{program}: {}{}",
            said.stdout,
            said.stderr
        );
    }
    Ok(())
}
