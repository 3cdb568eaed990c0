//! The chart on a cluster with real pods. One cluster serves all tests of it, and they take turns: a webhook is registered for
//! the whole cluster.

use std::{collections::BTreeMap, fs, net::SocketAddr, time::Duration};

use agents::api::kinds::{Agent, AgentProvider, AgentRun};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Secret, Service};
use kube::{ResourceExt, api::PostParams};
use serde_json::{Value, json};
use support::{
    Namespace,
    helm::Helm,
    image,
    kubectl::Said,
    lab::{
        Lab, own_name,
        pki::{Authority, Subject},
        relay::Relay,
        report::Report,
        state::Tier,
    },
    namespace_in, wait,
};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use crate::chart::variables::merge;
use crate::controller::scene::phase_of;

/// Nothing takes longer, also where everything else is busy.
pub(super) const DEADLINE: Duration = Duration::from_secs(120);
/// Every release is called so, as in the documents.
const RELEASE: &str = "agents";
/// Labels that the API server is told to delete by.
const OURS: &str = "app.kubernetes.io/part-of=agents";
/// The image of the webhook, and tags under which the same is there.
const WEBHOOK: &str = "localhost/agents-webhook:lab";
pub(super) const NEXT: [&str; 2] = ["next", "later"];
/// Stands in for an agent.
const PROBE: &str = "localhost/probe:lab";

/// A namespace for one release, and the cluster for oneself.
pub(super) struct Stage {
    pub(super) lab: &'static Lab,
    pub(super) here: Namespace,
    /// How Helm waits.
    pub(super) wait: &'static str,
    helm: Helm,
    ca: String,
    _home: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    /// Waits for its turn; nothing is installed yet.
    pub(super) async fn enter() -> Result<Self> {
        static LAB: OnceCell<Lab> = OnceCell::const_new();
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let lab = LAB.get_or_try_init(start).await?;
        // A test that failed, or whose namespace went without an uninstall, has left them behind.
        let of_the_cluster = "mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings";
        let clear = ["delete", of_the_cluster, "--selector", OURS];
        lab.kubectl().run(&clear).await?.ok()?;
        let here = namespace_in(lab, "chart").await?;
        let home = TempDir::new()?;
        let mut environment = lab.environment();
        for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            environment.push((variable, home.path().join(variable)));
        }
        Ok(Self {
            lab,
            wait: "--wait",
            helm: Helm::new().await?.at(environment),
            ca: certificate(&here).await?,
            here,
            _home: home,
            _turn: turn,
        })
    }

    /// Values for images that are only on the node, and more.
    pub(super) fn values(&self, more: &Value) -> Value {
        let image = |name: &str| json!({"repository": format!("localhost/{name}"), "tag": "lab", "pullPolicy": "Never"});
        let mut values = json!({
            "image": image("agents"),
            "sidecar": {"image": image("agents-sidecar")},
            "webhook": {
                "image": image("agents-webhook"),
                "tls": {"source": "secret", "secretName": "own-tls", "caBundle": self.ca},
            },
            "controllers": {"env": {"vars": {"OTEL_METRIC_EXPORT_INTERVAL": 1000}}},
            "readinessProbe": {"periodSeconds": 1},
        });
        merge(&mut values, more);
        values
    }

    /// Runs `helm` about the release with some values, to its end, which must be good.
    async fn helm(&self, verb: &str, words: &[&str], values: &str) -> Result<Said> {
        let place = ["--namespace", &self.here.name, self.wait, "--timeout=180s"];
        let words = [&[verb, RELEASE], words, &place].concat();
        let said = self.helm.run(&words, values).await?;
        ensure!(said.code == Some(0), "{}{}", said.stdout, said.stderr);
        Ok(said)
    }

    /// Installs the release or, with `upgrade`, changes it.
    pub(super) async fn put(&self, verb: &str, more: &Value) -> Result<Said> {
        let values = self.values(more).to_string();
        self.helm(verb, &["charts/agents", "--values", "-"], &values)
            .await
    }

    pub(super) async fn uninstall(&self) -> Result<()> {
        self.helm("uninstall", &[], "").await.map(drop)
    }

    /// What the chart would be rendered to.
    pub(super) async fn rendered(&self, more: &Value) -> Result<support::helm::Rendered> {
        let words = ["charts/agents", "--values", "-"];
        let place = ["--namespace", &self.here.name];
        let words = [&["template", RELEASE], &words[..], &place].concat();
        let said = self
            .helm
            .run(&words, &self.values(more).to_string())
            .await?;
        ensure!(said.code == Some(0), "{}", said.stderr);
        support::helm::Rendered::read(&said.stdout)
    }

    /// A way to a Service of the namespace.
    pub(super) async fn service(&self, name: &str, port: u16) -> Result<Relay> {
        let service = self.here.api::<Service>().get(name).await?;
        let spec = service.spec.context("a Service has a spec")?;
        let address = spec.cluster_ip.context("a Service has an address")?;
        self.lab.reach(SocketAddr::new(address.parse()?, port))
    }

    /// One of the two webhook configurations of the release.
    pub(super) async fn configuration(&self, kind: &str) -> Result<Value> {
        let get = ["get", kind, "agents-webhook", "--output=json"];
        let found = self.lab.kubectl().run(&get).await?.ok()?;
        Ok(serde_json::from_str(&found)?)
    }

    /// Makes an Agent in a namespace whose runs work until they are stopped.
    pub(super) async fn make_agent(&self, there: &Namespace) -> Result<()> {
        let provider: AgentProvider = serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentProvider", "metadata": {"name": "probe"},
            "spec": {"binary": "/probe", "argsTemplate": ["agent", "wait"]},
        }))?;
        let agent: Agent = serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "Agent", "metadata": {"name": "worker"},
            "spec": {"providerRef": {"name": "probe"}},
        }))?;
        let params = PostParams::default();
        there.api().create(&params, &provider).await?;
        there.api().create(&params, &agent).await?;
        Ok(())
    }

    /// Starts a run of that Agent and waits until its pod works.
    pub(super) async fn start_run(&self, there: &Namespace, name: &str) -> Result<()> {
        let run = run(&json!({"name": name}))?;
        let runs = there.api::<AgentRun>();
        runs.create(&PostParams::default(), &run).await?;
        let is_running = |run: &AgentRun| phase_of(run) == "Running";
        wait::until(&runs, name, DEADLINE, is_running).await?;
        works(&there.api(), name).await.map(drop)
    }
}

/// A run of that Agent, under a name or the start of one.
pub(super) fn run(metadata: &Value) -> Result<AgentRun> {
    let run = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "metadata": metadata,
        "spec": {"agentRef": {"name": "worker"}, "implementation": {"inline": {"text": "Do it."}},
            "runtime": {"type": "job"}, "workload": {"image": PROBE}},
    });
    Ok(serde_json::from_value(run)?)
}

/// The pod of a run, once its container works.
pub(super) async fn works(pods: &kube::Api<Pod>, run: &str) -> Result<String> {
    let labels = format!("{}={run}", agents::api::contract::label::AGENT_RUN);
    let is_running = |pod: &Pod| {
        let status = pod.status.as_ref();
        status.and_then(|status| status.phase.as_deref()) == Some("Running")
    };
    let any = |pods: &[Pod]| pods.iter().any(is_running);
    let found = wait::until_listed(pods, &labels, DEADLINE, any).await?;
    let pod = found.into_iter().find(is_running).context("a pod")?;
    Ok(pod.name_any())
}

/// A cluster with our images on its node.
async fn start() -> Result<Lab> {
    let own = image::build_static(Report::start()).await?;
    let lab = Lab::start(&own_name("chart")?, Tier::Node).await?;
    let mut images = own.product_images()?;
    images.push(own.image("probe")?);
    // Versions to come, which are told apart by their names alone.
    let webhook = images.iter().find(|image| image.name() == WEBHOOK);
    let webhook = webhook.context("the image of the webhook")?;
    let versions = NEXT.map(|tag| webhook.named(&WEBHOOK.replace("lab", tag)));
    images.extend(versions);
    for image in images {
        lab.import(&image).await?;
    }
    Ok(lab)
}

/// Makes the certificate of the webhook by hand and returns who issued it, in PEM.
async fn certificate(here: &Namespace) -> Result<String> {
    let folder = TempDir::new()?;
    let authority = Authority::make(folder.path())?;
    let host = format!("{RELEASE}-webhook.{}.svc", here.name);
    let canary = format!("{RELEASE}-webhook-canary.{}.svc", here.name);
    let subject = Subject {
        name: &host,
        group: "",
        hosts: &[&host, &canary],
    };
    authority.issue("tls", subject)?;
    let mut data = BTreeMap::new();
    for file in ["tls.crt", "tls.key"] {
        let text = fs::read_to_string(folder.path().join(file))?;
        data.insert(file.to_owned(), text);
    }
    let mut secret = Secret {
        string_data: Some(data),
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    };
    secret.metadata.name = Some("own-tls".to_owned());
    let secrets = here.api::<Secret>();
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(fs::read_to_string(authority.certificate())?)
}
