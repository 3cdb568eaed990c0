//! Whether anyone reads the metrics: monitors, Prometheus objects, and what the sidecars say.

use futures::io::{AsyncBufReadExt, AsyncReadExt};
use futures::stream::StreamExt;
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::time::timeout;

use super::{DEADLINE, Place, get, list};
use crate::api::contract::{GROUP, path, port, sidecar_metric};
use crate::cli::doctor::facts::{Component, Program, Seen, Sidecar, Unseen};

/// Pods whose sidecar is asked.
const PODS: usize = 10;

/// Bytes of a page that are read.
const PAGE: u64 = 256 * 1024 * 1024;

/// The form that people get; scrapers ask for others.
const PLAIN: &str = "text-0.0.4";

/// Monitors for our metrics, and all Prometheus objects.
pub(super) async fn monitors(place: &Place) -> (Seen<Vec<Value>>, Seen<Vec<Value>>) {
    let client = &place.client;
    let of = |kind: &str| format!("/apis/monitoring.coreos.com/v1/{kind}?limit=500");
    let (services, pods, prometheuses) =
        (of("servicemonitors"), of("podmonitors"), of("prometheuses"));
    let (services, pods, prometheuses) = tokio::join!(
        get::<Value>(client, "the kind ServiceMonitor", &services),
        get::<Value>(client, "the kind PodMonitor", &pods),
        get::<Value>(client, "the kind Prometheus", &prometheuses),
    );
    let monitors = services.map(|services| {
        let mut found = ours(&services, "ServiceMonitor", &place.namespace);
        if let Ok(pods) = &pods {
            found.extend(ours(pods, "PodMonitor", &place.namespace));
        }
        found
    });
    let prometheuses = prometheuses.map(|answer| items(&answer));
    (monitors, prometheuses)
}

fn items(answer: &Value) -> Vec<Value> {
    answer["items"].as_array().cloned().unwrap_or_default()
}

/// Those that are for the programs of this namespace.
fn ours(answer: &Value, kind: &str, namespace: &str) -> Vec<Value> {
    let metrics = format!("{GROUP}/metrics");
    let mut found = items(answer);
    found.retain(|monitor| {
        let spec = &monitor["spec"];
        let places = spec["namespaceSelector"]["matchNames"].as_array();
        let here = places.is_some_and(|names| names.iter().any(|name| name == namespace));
        let labels = &spec["selector"]["matchLabels"];
        let part_of = &monitor["metadata"]["labels"]["app.kubernetes.io/component"];
        here && (labels.get(&metrics).is_some() || part_of == "metrics")
    });
    for monitor in &mut found {
        monitor["kind"] = kind.into(); // entries of a list do not say it
    }
    found
}

/// What the sidecars beside the controllers say of themselves.
pub(super) async fn sidecars(place: &Place, programs: &Seen<Vec<Program>>) -> Seen<Vec<Sidecar>> {
    let mut programs = programs.iter().flatten();
    let installed = programs.any(|program| program.component == Component::Controllers);
    if !installed {
        return Err(Unseen::Absent("a controller".to_owned()));
    }
    let pods: Api<Pod> = Api::namespaced(place.client.clone(), &place.namespace);
    let pods = list("pods", &pods, "app.kubernetes.io/component=controllers").await?;
    let mut found = Vec::new();
    let running = pods.iter().filter(|pod| {
        let status = pod.status.as_ref();
        status.and_then(|status| status.phase.as_deref()) == Some("Running")
    });
    for pod in running.take(PODS) {
        let name = pod.name_any();
        let read = timeout(DEADLINE, page(&place.client, &place.namespace, &name)).await;
        let read = read.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        let what = |why| Unseen::Silent(format!("the page of the sidecar of {name}: {why}"));
        found.push(read.map_err(what)?);
    }
    Ok(found)
}

/// What stands on the page of one.
async fn page(client: &Client, namespace: &str, pod: &str) -> Result<Sidecar, String> {
    let (port, path) = (port::SIDECAR_ADMIN, path::METRICS);
    let uri = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}");
    let request = Request::get(uri).body(Vec::new());
    let request = request.map_err(|error| error.to_string())?;
    let stream = client.request_stream(request).await;
    let stream = stream.map_err(|error| error.to_string())?;
    let mut lines = Box::pin(stream).take(PAGE).lines();
    let mut seen = Sidecar {
        pod: pod.to_owned(),
        age: None,
        scrapes: 0,
    };
    while let Some(line) = lines.next().await {
        take(
            &mut seen,
            &line.map_err(|error| error.to_string())?,
            Timestamp::now(),
        );
    }
    Ok(seen)
}

/// Notes what one line says.
fn take(seen: &mut Sidecar, line: &str, now: Timestamp) {
    let Some((series, value)) = line.rsplit_once(' ') else {
        return;
    };
    let Ok(value) = value.parse::<f64>() else {
        return;
    };
    if series == "process_start_time_seconds" {
        seen.age = Some(now.as_duration().as_secs_f64() - value);
    } else if series.starts_with(sidecar_metric::PAGES) && !series.contains(PLAIN) && value >= 1.0 {
        seen.scrapes += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_for_scrapers_count_as_scrapes() {
        let now = Timestamp::from_second(1_000).unwrap();
        let mut seen = Sidecar {
            pod: "a".to_owned(),
            age: None,
            scrapes: 0,
        };
        for line in [
            "# HELP x y",
            "process_start_time_seconds 900.0",
            "agents_sidecar_pages_total{format=\"text-0.0.4\"} 7",
            "agents_sidecar_pages_total{format=\"protobuf\"} 0",
        ] {
            take(&mut seen, line, now);
        }
        assert_eq!((seen.age, seen.scrapes), (Some(100.0), 0));
        take(
            &mut seen,
            "agents_sidecar_pages_total{format=\"protobuf\"} 3",
            now,
        );
        assert_eq!(seen.scrapes, 1);
    }
}
