//! Clients for a cluster that a kubeconfig describes.

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use std::path::Path;

/// A client for the cluster and user of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

/// The configuration behind such a client, to change before use.
pub async fn config(kubeconfig: &Path) -> Result<Config> {
    let read = Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("could not read {}", kubeconfig.display()))?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    // Whatever proxy the environment names, a lab is on this machine.
    if config.cluster_url.host() == Some("127.0.0.1") {
        config.proxy_url = None;
    }
    Ok(config)
}
