//! A namespace with a controller of its own, and what tests do in it.

mod any;
pub(super) mod endpoint;
mod looks;

use std::path::Path;
use std::time::Duration;

use agents::api::contract::{annotation, env, label};
use agents::api::kinds::{Agent, AgentProvider, AgentRun};
use anyhow::{Context, Result};
use http::Method;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::{Namespace, crds, events, events::Said, gateway::Gateway, lab, wait};

use crate::kit::process::{Process, product};

/// Nothing takes longer, also where everything else is busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);

/// Nobody waits for the lease of a controller that was killed.
pub(crate) const ALONE: (&str, &str) = ("JANGAR_LEADER_ELECTION_ENABLED", "false");

/// A namespace and what works in it.
pub(crate) struct Scene {
    pub(crate) here: Namespace,
    settings: Vec<(String, String)>,
}

impl Scene {
    /// A namespace in which nobody works yet. The settings hold for every controller that is started in it.
    pub(crate) async fn new(settings: &[(&str, &str)]) -> Result<Self> {
        crds::install_once().await?;
        Ok(Self::at(support::namespace("controller").await?, settings))
    }

    /// The same in a namespace of any cluster that has our kinds.
    pub(crate) fn at(here: Namespace, settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter();
        let own = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self {
            settings: own.collect(),
            here,
        }
    }

    /// Another namespace, in which the same controllers work.
    pub(crate) fn beside(&self, here: Namespace) -> Self {
        Self {
            settings: self.settings.clone(),
            here,
        }
    }

    /// The same, with an Agent and its provider.
    pub(crate) async fn with_agent(settings: &[(&str, &str)]) -> Result<Self> {
        let scene = Self::new(settings).await?;
        scene.make_agent().await?;
        Ok(scene)
    }

    pub(crate) async fn make_agent(&self) -> Result<()> {
        let provider: AgentProvider = serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentProvider",
            "metadata": {"name": "shell"}, "spec": {"binary": "/agent"},
        }))?;
        let agent: Agent = serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "Agent",
            "metadata": {"name": "coder"}, "spec": {"providerRef": {"name": "shell"}},
        }))?;
        self.here
            .api()
            .create(&PostParams::default(), &provider)
            .await?;
        self.here
            .api()
            .create(&PostParams::default(), &agent)
            .await?;
        Ok(())
    }

    /// Starts a controller for this namespace.
    pub(crate) async fn controller(&self) -> Result<Process> {
        self.controller_by(lab::shared().await?.kubeconfig())
    }

    /// The same, with one more setting.
    pub(crate) async fn controller_with(&self, setting: (&str, &str)) -> Result<Process> {
        self.start(lab::shared().await?.kubeconfig(), &[setting])
    }

    /// The same, by another way to the API server.
    pub(crate) fn controller_by(&self, kubeconfig: &Path) -> Result<Process> {
        self.start(kubeconfig, &[])
    }

    /// The same, with more settings.
    pub(crate) fn start(&self, kubeconfig: &Path, more: &[(&str, &str)]) -> Result<Process> {
        let mut environment = vec![
            ("KUBECONFIG", kubeconfig.to_str().context("UTF-8")?),
            ("AGENTS_ADMIN_LISTEN", "127.0.0.1:0"),
            (env::QUEUE_LISTEN, "127.0.0.1:0"),
            (env::NAMESPACES, &self.here.name),
            (env::LEADER_ELECTION_LEASE_NAMESPACE, &self.here.name),
        ];
        let own = self.settings.iter();
        environment.extend(own.map(|(name, value)| (name.as_str(), value.as_str())));
        environment.extend(more);
        Ok(Process::start(
            &product("agents"),
            &["controller"],
            &environment,
        ))
    }

    /// Makes a run with an inline implementation; `more` goes into its spec.
    pub(crate) async fn run(&self, name: &str, more: Value) -> Result<AgentRun> {
        let mut run = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun", "metadata": {"name": name},
            "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
                "runtime": {"type": "job"}, "workload": {"image": "registry.example.com/runner:1"}},
        });
        if let (Some(spec), Some(more)) = (run["spec"].as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        let run = serde_json::from_value(run)?;
        Ok(self.here.api().create(&PostParams::default(), &run).await?)
    }

    /// Makes runs, and waits until each has a pod.
    pub(crate) async fn begin(&self, runs: &[&str]) -> Result<()> {
        for run in runs {
            self.run(run, json!({})).await?;
        }
        for run in runs {
            self.until_phase(run, "Running").await?;
            self.pod(run).await?;
        }
        Ok(())
    }

    /// A scene in which these runs are at work and nobody looks after them any more.
    pub(crate) async fn left_alone(runs: &[&str]) -> Result<Self> {
        let scene = Self::with_agent(&[ALONE]).await?;
        let controller = scene.controller().await?;
        scene.begin(runs).await?;
        controller.kill().await;
        Ok(scene)
    }

    /// Keeps a controller with one worker busy with another run until the way is released. Its watches go on.
    pub(crate) async fn keep_busy(&self, way: &Gateway) -> Result<()> {
        way.hold(|method, path| *method == Method::PATCH && path.contains("/agentruns/busy"));
        let nobody = json!({"agentRef": {"name": "nobody"}});
        self.run("busy", nobody).await?;
        way.until_holding(DEADLINE).await
    }

    /// Waits until a run is in a phase.
    pub(crate) async fn until_phase(&self, name: &str, phase: &str) -> Result<AgentRun> {
        self.until(name, |run| phase_of(run) == phase).await
    }

    /// Waits until a run is as wanted.
    pub(crate) async fn until(
        &self,
        name: &str,
        wanted: impl Fn(&AgentRun) -> bool,
    ) -> Result<AgentRun> {
        wait::until(&self.here.api(), name, DEADLINE, wanted).await
    }

    /// Waits for the one pod of a run.
    pub(crate) async fn pod(&self, run: &str) -> Result<Pod> {
        self.one_pod(&format!("{}={run}", label::AGENT_RUN)).await
    }

    async fn one_pod(&self, labels: &str) -> Result<Pod> {
        let pods = self.here.api::<Pod>();
        let some = |pods: &[Pod]| !pods.is_empty();
        let mut pods = wait::until_listed(&pods, labels, DEADLINE, some).await?;
        anyhow::ensure!(pods.len() == 1, "{} pods", pods.len());
        pods.pop().context("a pod")
    }

    /// Ends the pod of a run, as a node would.
    pub(crate) async fn end_pod(&self, run: &str, code: i32) -> Result<()> {
        let pod = self.pod(run).await?;
        self.end(&pod, code).await
    }

    /// Ends the pod of a Job, as a node would.
    pub(crate) async fn end_job(&self, job: &str, code: i32) -> Result<()> {
        let pod = self.one_pod(&format!("{}={job}", label::JOB_NAME)).await?;
        self.end(&pod, code).await
    }

    async fn end(&self, pod: &Pod, code: i32) -> Result<()> {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let reason = if code == 0 { "Completed" } else { "Error" };
        let status = json!({"status": {"phase": phase, "containerStatuses": [{
            "name": "agent-runner", "image": "x", "imageID": "x", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "reason": reason}},
        }]}});
        let pods = self.here.api::<Pod>();
        let (name, patch) = (pod.name_any(), Patch::Merge(status));
        pods.patch_status(&name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// The Job of a run, when it is as wanted.
    pub(crate) async fn until_job(&self, run: &str, wanted: impl Fn(&Job) -> bool) -> Result<Job> {
        self.until_job_named(&job_name(run), wanted).await
    }

    /// The Job of this name, when it is as wanted.
    pub(crate) async fn until_job_named(
        &self,
        name: &str,
        wanted: impl Fn(&Job) -> bool,
    ) -> Result<Job> {
        wait::until(&self.here.api(), name, DEADLINE, wanted).await
    }

    /// Deletes the Job of a run as someone else, and waits until admission has noted who that was.
    pub(crate) async fn delete_job_as(&self, run: &str, user: &str) -> Result<()> {
        let (job, user) = (job_name(run), format!("--as={user}"));
        let delete = ["delete", "job", &job, "--wait=false", &user];
        let delete = [&delete[..], &["--as-group=system:masters"]].concat();
        self.here.kubectl.run(&delete).await?.ok()?;
        let is_noted = |run: &AgentRun| run.annotations().contains_key(annotation::JOB_DELETED_BY);
        self.until(run, is_noted).await?;
        Ok(())
    }

    /// Waits until nothing that was made for a run is held by a finalizer of ours any more.
    pub(crate) async fn until_free(&self, run: &str) -> Result<()> {
        let labels = format!("{}={run}", label::AGENT_RUN);
        let jobs = self.here.api::<Job>();
        let free = |jobs: &[Job]| !jobs.iter().any(is_held);
        wait::until_listed(&jobs, &labels, DEADLINE, free).await?;
        let pods = self.here.api::<Pod>();
        let free = |pods: &[Pod]| !pods.iter().any(is_held);
        wait::until_listed(&pods, &labels, DEADLINE, free).await?;
        Ok(())
    }

    /// The reasons of the Events about a run, once one of them is there.
    pub(crate) async fn told(&self, run: &AgentRun, last: &str) -> Result<Vec<Said>> {
        events::until(&self.here.client, run, DEADLINE, |said| said.reason == last).await?;
        events::about(&self.here.client, run).await
    }
}

pub(crate) fn job_name(run: &str) -> String {
    format!("{run}-job")
}

pub(crate) fn phase_of(run: &AgentRun) -> &str {
    let status = run.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

/// Status and reason of a condition.
pub(crate) fn condition(run: &AgentRun, type_: &str) -> Option<(String, String)> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == type_)?;
    Some((
        found.status.clone(),
        found.reason.clone().unwrap_or_default(),
    ))
}

/// The same, to compare with.
pub(crate) fn holds(status: &str, reason: &str) -> Option<(String, String)> {
    Some((status.to_owned(), reason.to_owned()))
}

pub(crate) fn is_held<K: kube::Resource>(object: &K) -> bool {
    let finalizers = object.meta().finalizers.as_deref().unwrap_or_default();
    finalizers
        .iter()
        .any(|name| name.starts_with("agents.proompteng.ai/"))
}
