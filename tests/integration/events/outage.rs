//! An API server that cannot be reached for a while.

use agents::events::Severity;
use agents::events::metrics::{Failure, Group};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::*;

/// A way to the API server that takes connections but leads nowhere until it is opened.
struct Way {
    entrance: TcpListener,
    server: String,
    client: Client,
}

impl Way {
    async fn new() -> Result<Self> {
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

    /// Lets everything through once it is opened; never ends.
    async fn serve(&self, opened: &Notify) -> Result<()> {
        let mut connections = JoinSet::new();
        opened.notified().await;
        loop {
            let (mut inside, _) = self.entrance.accept().await?;
            let mut outside = TcpStream::connect(&self.server).await?;
            connections.spawn(async move { copy_bidirectional(&mut inside, &mut outside).await });
        }
    }
}

#[tokio::test]
async fn what_happens_while_the_api_server_is_away_is_told_when_it_is_back() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let way = Way::new().await?;
    let opened = Notify::new();
    let mut config = config();
    config.limits.deadline = Duration::from_secs(1);
    let told = tell(&way.client, config, async |emitter, metrics| {
        for name in ["a", "b", "a"] {
            say(emitter, run(&namespace, name), Reason::Failed, "It failed");
        }
        let failures = || async {
            anyhow::ensure!(metrics.errors(Failure::Timeout) >= 2, "{metrics:?}");
            Ok(())
        };
        wait::retry("two tries fail", DEADLINE, failures).await?;
        assert_eq!(stored(&namespace).await?, []);
        opened.notify_one();
        all(&namespace, |list| list.len() == 2).await?;
        Ok(metrics.clone())
    });
    let metrics = tokio::select! {
        told = told => told?,
        broken = way.serve(&opened) => return broken,
    };
    assert_eq!(metrics.emitted(Severity::Warning, Group::Events), 2);
    assert_eq!(
        stored(&namespace).await?,
        [("a".to_owned(), 2), ("b".to_owned(), 1)]
    );
    Ok(())
}
