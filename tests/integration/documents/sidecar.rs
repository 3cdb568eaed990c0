//! The part of `docs/sidecar.md` that is made from the sources.

use super::{bind_parts, metrics::table};

#[tokio::test]
async fn the_sidecar_document_shows_every_metric_of_its_own() -> anyhow::Result<()> {
    support::kinds!();
    let metrics = table("agents-sidecar", "agents_sidecar_").await;
    bind_parts("docs/sidecar.md", &[("metrics", metrics)]);
    Ok(())
}
