//! The pod of a run: one container, its variables and resources. [`mounts`] is what it may read, [`settings`] where it
//! is placed.

mod mounts;
mod settings;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvFromSource, EnvVar, PodSpec, ResourceRequirements, SecretEnvSource,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use serde_json::Value;

use super::{CONTAINER, documents, scope, template};
use crate::api::contract::annotation;
use crate::controller::agent_run::settings::Runner;
use crate::controller::agent_run::vcs;
use crate::controller::agent_run::work::{Prompt, Work};
use crate::kit::telemetry::propagation::from_traceparent;
use mounts::Mounts;
use settings::Settings;

/// Where a stored system prompt appears.
const PROMPT_FOLDER: &str = "/workspace/.codex";
const PROMPT_FILE: &str = "system-prompt.txt";

/// The pod that does the work.
///
/// # Errors
///
/// A sentence for people, when its settings cannot be read.
pub(super) fn spec(work: &Work<'_>, runner: &Runner) -> Result<PodSpec, String> {
    let settings = Settings::of(work, runner)?;
    let mut mounts = Mounts::default();
    mounts.add_workload(work);
    mounts.add_documents(work);
    mounts.add_prompt(work);
    mounts.add_auth(work, runner);
    mounts.add_vcs(work);
    let Mounts { volumes, mounts } = mounts;
    let scope = scope(work);
    let args = work.provider.spec.args_template.as_deref();
    let args = args.unwrap_or_default().iter();
    let secrets = work.run.spec.secrets.as_deref().unwrap_or_default().iter();
    let container = Container {
        name: CONTAINER.to_owned(),
        image: Some(work.image.to_owned()),
        command: Some(vec![binary(work)]),
        args: Some(args.map(|arg| template::render(arg, &scope)).collect()),
        env: Some(environment(work, runner, &scope)),
        env_from: filled(secrets.map(|name| from_secret(name)).collect()),
        resources: Some(resources(work)),
        volume_mounts: filled(mounts),
        security_context: runner.container.clone(),
        ..Container::default()
    };
    let pull_secrets = settings.pull_secrets();
    let account = settings.service_account.filter(|name| !name.is_empty());
    Ok(PodSpec {
        service_account_name: account.or_else(|| runner.service_account.clone()),
        restart_policy: Some("Never".to_owned()),
        containers: vec![container],
        volumes: filled(volumes),
        node_selector: settings.node_selector.filter(|labels| !labels.is_empty()),
        affinity: settings
            .affinity
            .filter(|affinity| *affinity != Affinity::default()),
        security_context: settings.pod_security_context,
        tolerations: settings.tolerations.and_then(filled),
        topology_spread_constraints: settings.topology_spread_constraints.and_then(filled),
        image_pull_secrets: pull_secrets,
        priority_class_name: settings.priority_class_name.filter(|name| !name.is_empty()),
        scheduler_name: settings.scheduler_name.filter(|name| !name.is_empty()),
        ..PodSpec::default()
    })
}

fn filled<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

fn binary(work: &Work<'_>) -> String {
    let binary = work.provider.spec.binary.trim();
    let binary = if binary.is_empty() {
        "/usr/local/bin/agent-runner"
    } else {
        binary
    };
    binary.to_owned()
}

/// Every entry of a Secret as a variable, by reference: the value is read by the node, never by us.
fn from_secret(name: &str) -> EnvFromSource {
    EnvFromSource {
        secret_ref: Some(SecretEnvSource {
            name: name.trim().to_owned(),
            optional: None,
        }),
        ..EnvFromSource::default()
    }
}

/// The variables in the order in which later ones may refer to earlier ones.
fn environment(work: &Work<'_>, runner: &Runner, scope: &Value) -> Vec<EnvVar> {
    let mut all = vec![
        plain("AGENT_RUN_SPEC", documents::RUN),
        plain("AGENT_RUNNER_SPEC_PATH", documents::RUNNER),
    ];
    if let Some(auth) = &runner.auth {
        let file = format!("{}/{}", auth.mount.trim_end_matches('/'), auth.key);
        all.push(plain("CODEX_HOME", auth.mount.clone()));
        all.push(plain("CODEX_AUTH", file));
    }
    for variable in work.agent.spec.env.iter().flatten() {
        all.push(plain(&variable.name, variable.value.clone()));
    }
    for (name, template) in work.provider.spec.env_template.iter().flatten() {
        all.push(plain(name, template::render(template, scope)));
    }
    all.push(plain("AGENT_PROVIDER", work.provider.name_any()));
    if let Some(vcs) = work.vcs.used() {
        all.extend(vcs::variables(vcs, &runner.vcs));
    }
    for variable in vcs::nats(work.run, work.found, runner.nats.as_ref()) {
        // What the agent or its provider set themselves counts more.
        if all.iter().all(|set| set.name != variable.name) {
            all.push(variable);
        }
    }
    if let Prompt::Stored(_) = work.prompt {
        let file = format!("{PROMPT_FOLDER}/{PROMPT_FILE}");
        all.push(plain("CODEX_SYSTEM_PROMPT_PATH", file));
    }
    let trace = work.run.annotations().get(annotation::TRACEPARENT);
    if let Some(trace) = trace.filter(|trace| from_traceparent(trace).is_some()) {
        all.push(plain("TRACEPARENT", trace.clone()));
    }
    all
}

fn plain(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.into()),
        value_from: None,
    }
}

fn resources(work: &Work<'_>) -> ResourceRequirements {
    let given = work.workload;
    let given = given.and_then(|workload| workload.resources.as_ref());
    let amounts = |given: Option<&BTreeMap<String, String>>| {
        let given = given.filter(|given| !given.is_empty())?;
        let amount = |(name, amount): (&String, &String)| (name.clone(), Quantity(amount.clone()));
        Some(given.iter().map(amount).collect())
    };
    ResourceRequirements {
        requests: amounts(given.and_then(|given| given.requests.as_ref())),
        limits: amounts(given.and_then(|given| given.limits.as_ref())),
        claims: None,
    }
}
