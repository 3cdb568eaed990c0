//! The copy that decisions look things up in: it follows the objects of a real cluster, says what the cluster lacks, and
//! stays in use while the API server is away.

use std::time::Duration;

use agents::api::kind::Kind;
use agents::api::object::references::references;
use agents::cluster::Namespaces;
use agents::kit::readiness::Readiness;
use agents::kit::shutdown::channel;
use agents_webhook::lookup::{Lookup, Metrics, Settings};
use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use support::{Namespace, builders::smallest, namespace, wait};
use tokio::sync::watch;

use crate::way::Way;

const DEADLINE: Duration = Duration::from_secs(90);

/// A look-up that is kept up to date.
struct Scene {
    lookup: Lookup,
    readiness: Readiness,
    namespace: String,
}

impl Scene {
    /// Waits until the gate is as wanted: its reason if it is closed, its note if it is open.
    async fn gate(&self, what: &str, wanted: impl Fn(bool, &str) -> bool) -> Result<()> {
        let look = || async {
            let gate = self.readiness.gates().remove(0);
            let words = gate.closed.clone().or(gate.note.clone());
            let as_wanted = wanted(gate.closed.is_none(), words.as_deref().unwrap_or_default());
            ensure!(as_wanted, "{gate:?}");
            Ok(())
        };
        wait::retry(what, DEADLINE, look).await
    }

    /// Names that a run refers to and that lead nowhere.
    fn missing(&self, spec: &Value) -> Vec<String> {
        let references = references(Kind::AgentRun, &json!({"spec": spec}));
        let missing = self.lookup.missing(&self.namespace, &references);
        missing
            .into_iter()
            .map(|reference| reference.name)
            .collect()
    }

    async fn until_missing(&self, spec: &Value, expected: &[&str]) -> Result<()> {
        let look = || async {
            let missing = self.missing(spec);
            ensure!(missing == expected, "missing: {missing:?}");
            Ok(())
        };
        wait::retry(&format!("missing are {expected:?}"), DEADLINE, look).await
    }

    /// Secrets that the Agent of a run allows.
    fn allowed(&self, spec: &Value) -> Option<Vec<String>> {
        let run = json!({"metadata": {"namespace": self.namespace}, "spec": spec});
        let around = self.lookup.surroundings(Kind::AgentRun, &run);
        around.agent.map(|agent| agent.secrets.clone())
    }
}

fn settings(namespaces: Namespaces) -> Settings {
    Settings { namespaces }
}

/// A look-up of one namespace that is kept up to date as long as `story`.
async fn follow(
    client: Client,
    namespace: &str,
    story: impl AsyncFnOnce(&Scene) -> Result<()>,
) -> Result<()> {
    let readiness = Readiness::default();
    let settings = settings(Namespaces::Some(vec![namespace.to_owned()]));
    let metrics = Metrics::register(&mut Registry::default());
    let (lookup, follower) =
        Lookup::following(client, &settings, readiness.gate("caches"), metrics);
    let scene = Scene {
        lookup,
        readiness,
        namespace: namespace.to_owned(),
    };
    let (_end, shutdown) = channel();
    tokio::select! {
        ended = follower.run(shutdown) => bail!("the follower ended: {ended:?}"),
        told = story(&scene) => told,
    }
}

async fn apply(namespace: &Namespace, kind: Kind, name: &str, spec: Value) -> Result<()> {
    let manifest = smallest(kind, name).spec(spec).to_string();
    let applied = namespace
        .kubectl
        .run_with_input(&["apply", "--server-side", "--filename", "-"], &manifest)
        .await?;
    applied.ok().map(drop)
}

#[tokio::test]
async fn objects_are_known_as_soon_as_they_are_there_and_forgotten_when_they_go() -> Result<()> {
    support::kinds!();
    let namespace = namespace("lookup").await?;
    apply(&namespace, Kind::Memory, "there", json!({})).await?;
    let spec = json!({"agentRef": {"name": "coder"}, "memoryRef": {"name": "there"}});
    let client = namespace.client.clone();
    follow(client, &namespace.name, async |scene| {
        scene.gate("everything is listed", |open, _| open).await?;
        assert_eq!(scene.missing(&spec), ["coder"]);
        let agent = |secrets: &[&str]| {
            json!({"providerRef": {"name": "p"}, "security": {"allowedSecrets": secrets}})
        };
        apply(&namespace, Kind::Agent, "coder", agent(&["a"])).await?;
        scene.until_missing(&spec, &[]).await?;
        assert_eq!(scene.allowed(&spec), Some(vec!["a".to_owned()]));
        apply(&namespace, Kind::Agent, "coder", agent(&["a", "b"])).await?;
        let look = || async {
            let allowed = scene.allowed(&spec);
            ensure!(allowed.as_ref().is_some_and(|list| list.len() == 2), "{allowed:?}");
            Ok(())
        };
        wait::retry("the change is known", DEADLINE, look).await?;
        let kubectl = &namespace.kubectl;
        kubectl.run(&["delete", "agent", "coder"]).await?.ok()?;
        scene.until_missing(&spec, &["coder"]).await
    })
    .await
}

#[tokio::test]
async fn a_program_without_permissions_ends_with_all_that_it_lacks() -> Result<()> {
    support::kinds!();
    let lab = support::lab::shared().await?;
    let mut config = support::cluster::config(lab.kubeconfig()).await?;
    config.auth_info.impersonate = Some("someone-without-rights".to_owned());
    let readiness = Readiness::default();
    let (_, follower) = Lookup::following(
        Client::try_from(config)?,
        &settings(Namespaces::All),
        readiness.gate("caches"),
        Metrics::register(&mut Registry::default()),
    );
    let (_end, shutdown) = channel();
    let ended = tokio::time::timeout(DEADLINE, follower.run(shutdown)).await?;
    let said = ended.err().context("it should not run")?.to_string();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines.first(),
        Some(&"the cluster is not fit for this program, 10 things are missing:"),
        "{said}"
    );
    assert_eq!(
        lines.get(1),
        Some(
            &"  no permission to list agentproviders.agents.proompteng.ai in all namespaces; \
              add it to the role of this program"
        ),
        "{said}"
    );
    assert_eq!(lines.len(), 11, "{said}");
    Ok(())
}

#[tokio::test]
async fn the_copy_stays_in_use_while_the_api_server_is_away_and_catches_up() -> Result<()> {
    support::kinds!();
    let namespace = namespace("lookup").await?;
    let agent = json!({"providerRef": {"name": "p"}});
    apply(&namespace, Kind::Agent, "old", agent.clone()).await?;
    let way = Way::new().await?;
    let (switch, open) = watch::channel(true);
    let spec = json!({"agentRef": {"name": "old"}, "memoryRef": {"name": "none"}});
    let story = follow(way.client.clone(), &namespace.name, async |scene| {
        scene.gate("everything is listed", |open, _| open).await?;
        assert_eq!(scene.missing(&spec), ["none"]);
        switch.send(false)?;
        let kubectl = &namespace.kubectl;
        kubectl.run(&["delete", "agent", "old"]).await?.ok()?;
        apply(&namespace, Kind::Agent, "new", agent.clone()).await?;
        let new = json!({"agentRef": {"name": "new"}});
        assert_eq!(scene.missing(&spec), ["none"], "the copy is as it was");
        assert_eq!(scene.missing(&new), ["new"], "the copy is as it was");
        scene.gate("the gate stays open", |open, _| open).await?;
        switch.send(true)?;
        scene.until_missing(&new, &[]).await?;
        scene.until_missing(&spec, &["old", "none"]).await?;
        scene
            .gate("nothing is amiss", |open, note| open && note.is_empty())
            .await
    });
    tokio::select! {
        ended = way.serve(open) => bail!("the way ended: {ended:?}"),
        told = story => told,
    }
}
