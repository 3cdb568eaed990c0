//! The trace context on stored objects: written with a spec, kept with everything else, the user's own left alone.

use agents::api::{contract::annotation, kind::Kind};
use anyhow::{Context, Result};
use kube::{Api, ResourceExt, api::DynamicObject};
use serde_json::{Value, json};
use support::{Namespace, builders::smallest};

use super::{cases::resource, hook};

const PINNED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn disk(size: &str, metadata: &Value) -> String {
    let mut disk = smallest(Kind::Workspace, "disk")
        .spec(json!({"size": size}))
        .json();
    for (name, value) in metadata.as_object().into_iter().flatten() {
        disk["metadata"][name] = value.clone();
    }
    disk.to_string()
}

/// Applies it, and returns what is stored then: version and trace context.
async fn applied(here: &Namespace, more: &[&str], input: &str) -> Result<(String, String)> {
    let apply = [&["apply", "--filename", "-"], more].concat();
    here.kubectl.run_with_input(&apply, input).await?.ok()?;
    let client = here.client.clone();
    let disks: Api<DynamicObject> =
        Api::namespaced_with(client, &here.name, &resource("Workspace")?);
    let disk = disks.get("disk").await?;
    let trace = disk.annotations().get(annotation::TRACEPARENT);
    Ok((
        disk.resource_version().context("a version")?,
        trace.context("a trace context")?.clone(),
    ))
}

#[tokio::test]
async fn a_trace_is_stored_with_a_spec_and_moves_only_with_it() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("trace").await?;
    let none = json!({});
    let (version, first) = applied(&here, &[], &disk("1Gi", &none)).await?;
    let parts: Vec<usize> = first.split('-').map(str::len).collect();
    assert_eq!(parts, [2, 32, 16, 2], "{first}");
    let again = applied(&here, &[], &disk("1Gi", &none)).await?;
    assert_eq!(again, (version, first.clone()), "the same again");
    let labelled = json!({"labels": {"team": "x"}});
    let (_, kept) = applied(&here, &[], &disk("1Gi", &labelled)).await?;
    assert_eq!(kept, first, "another label");
    let (_, moved) = applied(&here, &[], &disk("2Gi", &labelled)).await?;
    assert_ne!(moved, first, "another spec");
    Ok(())
}

#[tokio::test]
async fn a_pinned_trace_is_never_fought_over() -> Result<()> {
    support::own_lab!();
    let server_side = ["--server-side", "--field-manager=tests"];
    for (area, more) in [("pinned", &[][..]), ("pinned-ssa", &server_side)] {
        let here = hook::calm_namespace(area).await?;
        let pinned = json!({"annotations": {annotation::TRACEPARENT: PINNED}});
        for size in ["1Gi", "2Gi", "3Gi"] {
            let input = disk(size, &pinned);
            let (version, trace) = applied(&here, more, &input).await?;
            assert_eq!(trace, PINNED, "{area} {size}");
            // Were it replaced, this would be the write that wins it back.
            let again = applied(&here, more, &input).await?;
            assert_eq!(again, (version, trace), "{area} {size}");
        }
        let (_, ours) = applied(&here, more, &disk("4Gi", &json!({}))).await?;
        assert_ne!(ours, PINNED, "{area}: not pinned any more");
    }
    Ok(())
}

#[tokio::test]
async fn the_trace_of_whoever_asks_goes_on_in_the_object() -> Result<()> {
    support::own_lab!();
    let here = hook::calm_namespace("trace-header").await?;
    let kind = resource("Workspace")?;
    let path = format!(
        "/apis/{}/namespaces/{}/{}",
        kind.api_version, here.name, kind.plural
    );
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .header("traceparent", PINNED)
        .body(disk("1Gi", &json!({})).into_bytes())?;
    let stored: Value = here.client.request(request).await?;
    let trace = stored["metadata"]["annotations"][annotation::TRACEPARENT].as_str();
    let trace = trace.context("a trace context")?;
    assert_eq!(trace.split('-').nth(1), PINNED.split('-').nth(1), "{trace}");
    Ok(())
}
