//! A pod of controllers that ends: its sidecar was there before them and is there after them, until it was scraped once more.

use std::net::SocketAddr;

use agents::api::contract::port;
use agents::kit::args::variable;
use anyhow::{Context, Result, ensure};
use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, LogParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use support::{metrics::Page, wait};
use tokio::time::timeout;

use super::stage::{DEADLINE, Stage};

/// Keeps what the kubelet says of the pod at its end.
const KEEP: &str = "agents.proompteng.ai/test";

/// Values for a sidecar that waits for its last scrape, as the chart sets it beside a monitor.
pub(super) fn lingering() -> Value {
    json!({"sidecar": {"env": {"vars": {variable::SHUTDOWN_LINGER: "25s"}}}})
}

/// A pod whose end is looked at.
pub(super) struct Ending {
    pods: Api<Pod>,
    name: String,
    page: SocketAddr,
}

impl Ending {
    /// The pod of the controllers, while it works.
    pub(super) async fn of_controllers(stage: &Stage) -> Result<Self> {
        let pods = stage.here.api::<Pod>();
        let ours = ListParams::default().labels("app.kubernetes.io/component=controllers");
        let pod = pods.list(&ours).await?.items.pop().context("a pod")?;
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        let address = address.context("an address")?.parse()?;
        let ending = Self {
            pods,
            name: pod.name_any(),
            page: SocketAddr::new(address, port::SIDECAR_ADMIN),
        };
        ending.keep(&[KEEP]).await?;
        Ok(ending)
    }

    async fn keep(&self, finalizers: &[&str]) -> Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        let params = PatchParams::default();
        self.pods.patch(&self.name, &params, &patch).await?;
        Ok(())
    }

    /// When a container says something for the first time, by the clock of its node.
    async fn says(&self, container: &str, message: &str) -> Result<String> {
        let params = LogParams {
            container: Some(container.to_owned()),
            follow: true,
            timestamps: true,
            ..LogParams::default()
        };
        let mut lines = self.pods.log_stream(&self.name, &params).await?.lines();
        let message = format!("\"{message}\"");
        while let Some(line) = timeout(DEADLINE, lines.try_next()).await?? {
            if let Some((when, _)) = line.split_once(' ')
                && line.contains(&message)
            {
                return Ok(when.to_owned());
            }
        }
        anyhow::bail!("{container} never said {message}")
    }

    /// Follows the pod to its end, which someone else brings about.
    pub(super) async fn is_in_order(&self, stage: &Stage) -> Result<()> {
        let (controllers, sidecar) = tokio::try_join!(
            self.says("controllers", "Ended"),
            self.says("sidecar", "Shutdown announced"),
        )?;
        ensure!(controllers < sidecar, "{controllers}, then {sidecar}");
        let relay = stage.lab.reach(self.page)?;
        let page = Page::scrape(&relay.address().to_string()).await;
        let page = page.context("a scrape after the controllers have ended")?;
        let runs = page.series("agents_runs_total");
        let succeeded = runs.iter().any(|(series, count)| {
            series.labels.get("phase").map(String::as_str) == Some("Succeeded") && *count > 0.0
        });
        ensure!(succeeded, "the last values are lost: {runs:?}");
        let over = |pod: &Pod| ended(pod).is_some();
        let pod = wait::until(&self.pods, &self.name, DEADLINE, over).await?;
        let (controllers, sidecar) = ended(&pod).context("both have ended")?;
        for container in [controllers, sidecar] {
            ensure!(container.exit_code == 0, "{container:?}");
        }
        ensure!(
            sidecar.started_at <= controllers.started_at
                && controllers.finished_at <= sidecar.finished_at,
            "{controllers:#?}, {sidecar:#?}"
        );
        self.keep(&[]).await
    }
}

/// What the kubelet says of controllers and sidecar once both have ended.
fn ended(pod: &Pod) -> Option<(&ContainerStateTerminated, &ContainerStateTerminated)> {
    let status = pod.status.as_ref()?;
    let controllers = status.container_statuses.as_deref()?.first()?;
    let sidecar = status.init_container_statuses.as_deref()?.first()?;
    Some((
        controllers.state.as_ref()?.terminated.as_ref()?,
        sidecar.state.as_ref()?.terminated.as_ref()?,
    ))
}
