//! A way to the API server that a test can cut, for what happens while the server is away.

use anyhow::{Context, Result};
use kube::Client;
use serde_json::json;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// A way to the API server that can be cut and opened again.
pub(crate) struct Way {
    entrance: TcpListener,
    server: String,
    /// A client that goes this way.
    pub(crate) client: Client,
    kubeconfig: PathBuf,
    _folder: TempDir,
}

impl Way {
    pub(crate) async fn new() -> Result<Self> {
        let lab = support::lab::shared().await?;
        let entrance = TcpListener::bind("127.0.0.1:0").await?;
        let mut config = support::cluster::config(lab.kubeconfig()).await?;
        let server = config
            .cluster_url
            .authority()
            .context("an address")?
            .to_string();
        let url = format!("https://{}", entrance.local_addr()?);
        let text = std::fs::read_to_string(lab.kubeconfig())?;
        let mut own: serde_json::Value = serde_saphyr::from_str(&text)?;
        own["clusters"][0]["cluster"]["server"] = json!(url);
        own["clusters"][0]["cluster"]["tls-server-name"] = json!("127.0.0.1");
        let folder = TempDir::new()?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, own.to_string())?;
        config.cluster_url = url.parse()?;
        config.tls_server_name = Some("127.0.0.1".to_owned());
        let client = Client::try_from(config)?;
        Ok(Self {
            entrance,
            server,
            client,
            kubeconfig,
            _folder: folder,
        })
    }

    /// How a program goes this way.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Lets connections through while it is open and cuts them all when it is not; never ends.
    pub(crate) async fn serve(&self, mut open: watch::Receiver<bool>) -> Result<()> {
        loop {
            open.wait_for(|open| *open).await?;
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    changed = open.wait_for(|open| !*open) => {
                        changed?;
                        break;
                    }
                    accepted = self.entrance.accept() => {
                        let (mut inside, _) = accepted?;
                        let mut outside = TcpStream::connect(&self.server).await?;
                        connections.spawn(async move { copy_bidirectional(&mut inside, &mut outside).await });
                    }
                }
            }
        }
    }
}
