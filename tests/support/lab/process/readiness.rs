//! Waits for the milestones of a start, each with a deadline and the last thing seen.

use super::Readiness;
use crate::{cluster, wait};
use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::Api;
use std::{path::Path, time::Duration};
use tokio::net::UnixStream;

const DEADLINE: Duration = Duration::from_secs(120);

/// Waits, and says what was reached.
pub(super) async fn reached(what: &Readiness) -> Result<&'static str> {
    match what {
        Readiness::Socket(path) => {
            wait::retry("containerd", DEADLINE, || async {
                UnixStream::connect(path).await?;
                Ok(())
            })
            .await?;
            Ok("containerd listens")
        }
        Readiness::ApiServer(kubeconfig) => {
            wait::retry("API server", DEADLINE, || answers_ready(kubeconfig)).await?;
            Ok("API server is ready")
        }
        Readiness::Usable(kubeconfig) => {
            let client = cluster::client(kubeconfig).await?;
            let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
            wait::until(&accounts, "default", DEADLINE, |_| true).await?;
            Ok("default service account is there, pods can be made")
        }
        Readiness::Node(kubeconfig) => {
            let client = cluster::client(kubeconfig).await?;
            wait::until_listed(&Api::all(client), "", DEADLINE, |nodes: &[Node]| {
                nodes.iter().any(takes_pods)
            })
            .await?;
            Ok("node is ready")
        }
    }
}

async fn answers_ready(kubeconfig: &Path) -> Result<()> {
    let client = cluster::client(kubeconfig).await?;
    let request = http::Request::get("/readyz").body(Vec::new())?;
    client.request_text(request).await?;
    Ok(())
}

fn takes_pods(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let ready = conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|one| one.type_ == "Ready" && one.status == "True")
    });
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    ready && taints.is_none_or(Vec::is_empty)
}
