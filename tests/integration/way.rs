//! A way to the API server that a test can cut, for what happens while the server is away.

use anyhow::{Context, Result};
use kube::Client;
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
        config.cluster_url = format!("https://{}", entrance.local_addr()?).parse()?;
        config.tls_server_name = Some("127.0.0.1".to_owned());
        let client = Client::try_from(config)?;
        Ok(Self {
            entrance,
            server,
            client,
        })
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
