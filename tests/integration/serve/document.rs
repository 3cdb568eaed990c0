//! The description of the API.

mod alone;

use agents::serve::openapi;
use anyhow::Result;
use serde_json::Value;

use super::scene::Plane;

#[tokio::test]
async fn the_document_that_is_served_is_the_one_that_is_kept() -> Result<()> {
    support::kinds!();
    let plane = Plane::start(&[]).await?;
    let token = plane.person("someone", &[]).await?;
    let served: Value = plane
        .expect(("GET", "/openapi.json"), &token, None, 200)
        .await?;
    assert_eq!(served, openapi::document());
    Ok(())
}
