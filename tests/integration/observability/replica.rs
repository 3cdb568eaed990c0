//! What is in a pod of the controllers: the controller, and the sidecar beside it.

use std::{net::SocketAddr, path::Path};

use agents::{
    api::contract::{env, queue},
    kit::args::variable as common,
};
use agents_sidecar::args::variable as sidecar;
use anyhow::{Context, Result};
use support::{Namespace, lab, ports::free_addresses};

use crate::{
    controller::scene::Scene,
    kit::process::{Process, product},
};

/// A sidecar that follows a queue and looks after Jobs, and what has a controller push to it.
pub(super) struct Beside {
    /// Where it shows its page.
    pub(super) page: SocketAddr,
    pub(super) process: Process,
    grpc: SocketAddr,
    stream: SocketAddr,
}

impl Beside {
    /// One for the Jobs of this namespace.
    pub(super) fn start(namespace: &str, kubeconfig: &Path) -> Result<Self> {
        let [page, grpc, stream] = free_addresses()?;
        let streams = format!("controller=http://{stream}{}", queue::STREAM);
        let process = Process::start(
            &product("agents-sidecar"),
            &[],
            &[
                ("KUBECONFIG", kubeconfig.to_str().context("UTF-8")?),
                (env::NAMESPACES, namespace),
                (common::ADMIN_LISTEN, &page.to_string()),
                (sidecar::OTLP_GRPC_LISTEN, &grpc.to_string()),
                (sidecar::QUEUE_STREAMS, &streams),
            ],
        );
        Ok(Self {
            page,
            process,
            grpc,
            stream,
        })
    }

    /// The settings of the controller that it is beside.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            (
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                format!("http://{}", self.grpc),
            ),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1000".to_owned()),
            (env::QUEUE_LISTEN, self.stream.to_string()),
        ]
    }
}

/// What is in a pod of the controllers, and the namespace that it works in.
pub(super) struct Replica {
    pub(super) scene: Scene,
    /// Where the sidecar shows its page.
    pub(super) page: SocketAddr,
    pub(super) sidecar: Process,
    pub(super) controller: Process,
}

impl Replica {
    /// The controller pushes to the sidecar, which follows its queue and looks after its Jobs. One run at a time.
    pub(super) async fn start(here: Namespace) -> Result<Self> {
        let kubeconfig = lab::shared().await?.kubeconfig();
        Self::start_by(here, kubeconfig, &[(env::CONCURRENCY_AGENT, "1")]).await
    }

    /// The same by another way to the API server, and with other settings of the controller.
    pub(super) async fn start_by(
        here: Namespace,
        kubeconfig: &Path,
        more: &[(&str, &str)],
    ) -> Result<Self> {
        let beside = Beside::start(&here.name, kubeconfig)?;
        let own = beside.settings();
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let settings: Vec<_> = own.chain(more.iter().copied()).collect();
        let scene = Scene::at(here, &settings);
        scene.make_agent().await?;
        Ok(Self {
            controller: scene.controller_by(kubeconfig)?,
            page: beside.page,
            sidecar: beside.process,
            scene,
        })
    }
}
