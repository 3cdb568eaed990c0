//! No object sends a controller to the API server: nobody is called before it is known where its machines are.

use std::net::SocketAddr;

use agents::api::kinds::AgentRun;
use anyhow::{Context, Result, ensure};
use http::Method;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use support::{gateway::Gateway, lab};

use super::scene::endpoint::{Endpoint, LOOPBACK, said};
use super::scene::{DEADLINE, Scene, condition, holds};

const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

fn is_look(_: &Method, path: &str) -> bool {
    path == SLICE
}

fn looks(way: &Gateway) -> usize {
    way.reads().iter().filter(|path| *path == SLICE).count()
}

/// What a run needs whose endpoint is there.
fn at(url: &str) -> Value {
    json!({"runtime": {"type": "custom", "config": {"endpoint": url}}})
}

async fn open_way() -> Result<Gateway> {
    Gateway::open(lab::shared().await?.kubeconfig(), None).await
}

/// Waits until a run says that a look failed, and how.
async fn until_told(scene: &Scene, run: &AgentRun) -> Result<String> {
    let told = scene.told(run, "ReconcileFailed").await?;
    let failed = told
        .into_iter()
        .find(|said| said.reason == "ReconcileFailed");
    let note = failed.context("the Event")?.note;
    let look = "could not look up the machines of the API server before a call to the outside: ";
    let why = note.strip_prefix(look).with_context(|| note.clone())?;
    Ok(why.to_owned())
}

#[tokio::test]
async fn nobody_is_called_while_a_look_has_no_answer() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[LOOPBACK]).await?;
    let server = Endpoint::start(|_| said(200, &[], &json!({"status": "succeeded"}))).await?;
    let way = open_way().await?;
    way.hold(is_look);
    let _controller = scene.controller_by(way.kubeconfig())?;
    let mut runs = Vec::new();
    for name in ["one", "other"] {
        runs.push(scene.run(name, at(&server.url("/"))).await?);
    }
    way.until_holding(DEADLINE).await?;
    for run in &runs {
        assert_eq!(until_told(&scene, run).await?, "no answer within 5 s");
    }
    assert_eq!((server.asked().len(), looks(&way)), (0, 0));
    way.release();
    for name in ["one", "other"] {
        scene.until_phase(name, "Succeeded").await?;
    }
    assert_eq!(
        (server.asked().len(), looks(&way)),
        (2, 1),
        "one look for all"
    );
    Ok(())
}

#[tokio::test]
async fn nobody_is_called_while_looks_fail_and_they_are_taken_again() -> Result<()> {
    support::kinds!();
    let scene = Scene::with_agent(&[LOOPBACK]).await?;
    let server = Endpoint::start(|_| said(200, &[], &json!({"status": "succeeded"}))).await?;
    let way = open_way().await?;
    way.cut(is_look);
    let _controller = scene.controller_by(way.kubeconfig())?;
    let run = scene.run("far", at(&server.url("/"))).await?;
    until_told(&scene, &run).await?;
    way.until_stopped(3, DEADLINE).await?;
    assert_eq!((server.asked().len(), looks(&way)), (0, 0));
    way.release();
    scene.until_phase("far", "Succeeded").await?;
    assert_eq!((server.asked().len(), looks(&way)), (1, 1));
    Ok(())
}

/// Where the machines of the API server are. A control plane without nodes does not list itself; the operator of one that
/// has the list switched off writes it so.
async fn machines() -> Result<Vec<SocketAddr>> {
    let lab = lab::shared().await?;
    let client = support::cluster::client(lab.kubeconfig()).await?;
    let slices: Api<EndpointSlice> = Api::namespaced(client, "default");
    let slice = match slices.get_opt("kubernetes").await? {
        Some(slice) => slice,
        None => {
            lab.ensure_ours()?;
            let slice = serde_json::from_value(json!({
                "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
                "addressType": "IPv4", "endpoints": [{"addresses": ["198.51.100.1"]}],
                "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
            }))?;
            slices.create(&PostParams::default(), &slice).await?
        }
    };
    let mut ports = slice.ports.iter().flatten().filter_map(|port| port.port);
    let port = u16::try_from(ports.next().context("a port")?)?;
    let addresses = slice.endpoints.iter();
    let addresses = addresses.flat_map(|endpoint| &endpoint.addresses);
    let machines = addresses.map(|address| Ok(SocketAddr::new(address.parse()?, port)));
    machines.collect()
}

/// They are known by a look only: the controller has the way for its API server.
#[tokio::test]
async fn machines_of_the_api_server_are_refused_even_where_they_are_allowed() -> Result<()> {
    support::kinds!();
    let machines = machines().await?;
    ensure!(!machines.is_empty(), "nobody is listed");
    let allowed: Vec<_> = machines.iter().map(|at| at.ip().to_string()).collect();
    let scene = Scene::with_agent(&[("AGENTS_EGRESS_ALLOWED", &allowed.join(","))]).await?;
    let way = open_way().await?;
    let _controller = scene.controller_by(way.kubeconfig())?;
    for (number, machine) in machines.iter().enumerate() {
        let name = format!("machine-{number}");
        let run = scene
            .run(&name, at(&format!("https://{machine}/api")))
            .await?;
        let failed = scene.until_phase(&name, "Failed").await?;
        assert_eq!(condition(&failed, "Failed"), holds("True", "EgressDenied"));
        let told = scene.told(&run, "EgressDenied").await?;
        let denied = told.iter().find(|said| said.reason == "EgressDenied");
        let note = &denied.context("the Event")?.note;
        ensure!(note.contains("it leads to the API server"), "{note}");
    }
    assert_eq!(looks(&way), 1);
    Ok(())
}
