//! Looks up what a run refers to: copies of the kinds that are followed, the API server for Secrets, ConfigMaps and
//! claims. Of a Secret only its name and the names of its entries are ever kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use kube::{Api, ResourceExt};
use serde_json::Value;

use super::AgentRuns;
use super::settings::Runner;
use super::status::phase;
use super::turn;
use super::vcs;
use super::work::{Found, Prompt, memory_name, prompt};
use crate::api::contract::annotation;
use crate::api::kinds::agents::agent_run::{RuntimeType, VcsMode};
use crate::api::kinds::shared::{SystemPromptKind, Volume};
use crate::api::kinds::{Agent, AgentRun};
use crate::controller::cache::Key;
use crate::controller::context::Thing;
use crate::controller::driver::fault::Fault;

const LOOK: &str = "look up what the run refers to";

impl AgentRuns {
    /// What the run refers to, as far as it is there.
    pub(super) async fn find(&self, run: &AgentRun, now: Timestamp) -> Result<Found, Fault> {
        let namespace = run.namespace().unwrap_or_default();
        let mut found = self.find_followed(run, &namespace);
        found.is_late = is_late(run, self.settings.grace, now);
        let agent = found.agent.clone();
        let mut secrets = secrets(run, &self.settings.runner);
        if let Prompt::Stored(stored) = prompt(run, agent.as_deref()) {
            match stored.kind {
                SystemPromptKind::Secret => secrets.push(&stored.name),
                SystemPromptKind::ConfigMap => {
                    match self.read_config_map(&namespace, &stored.name).await? {
                        Some(entries) => found.prompt = entry(entries, &stored.key),
                        None => found.absent_config_maps.push(stored.name.clone()),
                    }
                }
            }
        }
        found.absent_secrets = self.absent::<Secret>(&namespace, secrets).await?;
        let claims = volumes(run).filter_map(|volume| volume.claim_name.as_deref());
        let claims = claims.collect();
        found.absent_claims = self
            .absent::<PersistentVolumeClaim>(&namespace, claims)
            .await?;
        self.find_entries(run, &namespace, &mut found).await?;
        Ok(found)
    }

    /// What is followed.
    fn find_followed(&self, run: &AgentRun, namespace: &str) -> Found {
        let shelves = &self.shelves;
        let at = |name: &str| Key::new(namespace, name);
        let spec = &run.spec;
        let agent = shelves.agents.get(&at(&spec.agent_ref.name));
        let provider = agent
            .as_ref()
            .and_then(|agent| shelves.providers.get(&at(&agent.spec.provider_ref.name)));
        let steps = turn::steps(run).iter();
        let own = steps.filter_map(|step| step.implementation_spec_ref.as_ref());
        let named = spec.implementation_spec_ref.iter().chain(own);
        let implementations = named.filter_map(|reference| {
            let stored = shelves.implementations.get(&at(&reference.name))?;
            Some((reference.name.clone(), stored))
        });
        let memory = match memory_name(run, agent.as_deref()) {
            Some(name) => shelves.memories.get(&at(name)),
            None => shelves
                .memories
                .in_namespace(namespace, |memory| memory.spec.default)
                .into_iter()
                .next(),
        };
        let budgets = budgets(run, agent.as_deref()).into_iter();
        let mut found = Found {
            implementations: implementations.collect(),
            budgets: budgets
                .map(|name| {
                    let budget = shelves.budgets.get(&at(&name));
                    (name, budget)
                })
                .collect(),
            bindings: shelves.bindings.in_namespace(namespace, |_| true),
            policy: self.context.rules.current(),
            agent,
            provider,
            memory,
            ..Found::default()
        };
        if self.settings.runner.vcs.enabled {
            let names = vcs::names(run, &found);
            let hosts = names.iter().filter_map(|name| {
                let host = shelves.hosts.get(&at(name))?;
                Some(((*name).to_owned(), host))
            });
            found.hosts = hosts.collect();
            // All runs of the namespace are looked at, so only where it matters.
            if found
                .hosts
                .values()
                .any(|host| vcs::minds_others(&host.spec))
            {
                found.heads = self.heads(run, namespace);
            }
        }
        found
    }

    /// Repositories and branches that other runs of the namespace work on.
    fn heads(&self, run: &AgentRun, namespace: &str) -> BTreeSet<(String, String)> {
        let is_other = |other: &AgentRun| {
            other.metadata.uid != run.metadata.uid && !phase(other).is_terminal()
        };
        let others = self.shelves.runs.in_namespace(namespace, is_other);
        let heads = others.iter().filter_map(|other| {
            let vcs = other.status.as_ref()?.vcs.as_ref()?;
            let repository = vcs.repository.as_ref()?.to_lowercase();
            Some((repository, vcs.head_branch.clone()?))
        });
        heads.collect()
    }

    /// Which entries there are of the Secrets and ConfigMaps that sign in somewhere.
    async fn find_entries(
        &self,
        run: &AgentRun,
        namespace: &str,
        found: &mut Found,
    ) -> Result<(), Fault> {
        let policy = run.spec.vcs_policy.as_ref();
        let is_unused = policy.and_then(|policy| policy.mode) == Some(VcsMode::None);
        let hosts = found.hosts.values().filter(|_| !is_unused);
        let (mut secrets, mut maps) = (BTreeSet::new(), BTreeSet::new());
        for host in hosts {
            let auth = vcs::auth(&host.spec);
            secrets.extend(auth.secret().map(|(name, _)| name.to_owned()));
            maps.extend(auth.known_hosts().map(|(name, _)| name.to_owned()));
        }
        let nats = self.settings.runner.nats.as_ref();
        secrets.extend(nats.map(|nats| nats.secret.clone()));
        for name in secrets {
            let entries = self.context.entries::<Secret>(LOOK, namespace, &name);
            if let Some(entries) = entries.await? {
                found.secrets.insert(name, entries);
            }
        }
        for name in maps {
            let entries = self.context.entries::<ConfigMap>(LOOK, namespace, &name);
            if let Some(entries) = entries.await? {
                found.config_maps.insert(name, entries);
            }
        }
        Ok(())
    }

    /// What is in a ConfigMap, if it is there.
    async fn read_config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, Fault> {
        if name.is_empty() {
            return Ok(None);
        }
        let found: Option<ConfigMap> = self.context.look_up(LOOK, namespace, name).await?;
        Ok(found.map(|found| found.data.unwrap_or_default()))
    }

    /// Those of the names that lead nowhere. Asks for metadata only, so that no secret is ever read.
    async fn absent<K: Thing>(
        &self,
        namespace: &str,
        mut names: Vec<&str>,
    ) -> Result<Vec<String>, Fault> {
        // A blank name is for the rules to refuse, not for the API server.
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        let api: Api<K> = self.context.api(namespace);
        let mut absent = Vec::new();
        for name in names {
            match api.get_metadata_opt(name).await {
                Ok(Some(_)) => {}
                Ok(None) => absent.push(name.to_owned()),
                Err(error) => return Err(Fault::of(LOOK, &error)),
            }
        }
        Ok(absent)
    }
}

/// A text in a ConfigMap; a blank one is none.
fn entry(mut entries: BTreeMap<String, String>, key: &str) -> Option<String> {
    entries.remove(key).filter(|text| !text.trim().is_empty())
}

/// Volumes of the run and of its steps.
fn volumes(run: &AgentRun) -> impl Iterator<Item = &Volume> {
    let steps = turn::steps(run).iter();
    let own = steps.filter_map(|step| step.workload.as_ref());
    let workloads = run.spec.workload.iter().chain(own);
    workloads.flat_map(|workload| workload.volumes.iter().flatten())
}

/// Secrets without which pods of the run do not start, the system prompt's aside. What the operator lists for pulling
/// images is not among them: it need not be in every namespace.
fn secrets<'a>(run: &'a AgentRun, runner: &'a Runner) -> Vec<&'a str> {
    let mut secrets: Vec<&str> = run
        .spec
        .secrets
        .iter()
        .flatten()
        .map(|name| name.trim())
        .collect();
    let starts_pods = match run.spec.runtime.type_ {
        RuntimeType::Job | RuntimeType::Workflow => true,
        RuntimeType::Temporal | RuntimeType::Custom => false,
    };
    if !starts_pods {
        return secrets;
    }
    let of_volumes = volumes(run).filter_map(|volume| volume.secret_name.as_deref());
    secrets.extend(of_volumes.map(str::trim));
    let config = run.spec.runtime.config.as_ref();
    let pull = config.and_then(|config| config.get("imagePullSecrets")?.as_array());
    let name = |entry: &'a Value| entry.as_str().or_else(|| entry.get("name")?.as_str());
    secrets.extend(pull.into_iter().flatten().filter_map(name).map(str::trim));
    secrets.extend(runner.auth.as_ref().map(|auth| auth.secret.as_str()));
    secrets
}

/// The Budgets that a run is held to: its own and that of its agent, which it cannot choose.
fn budgets(run: &AgentRun, agent: Option<&Agent>) -> BTreeSet<String> {
    let own = run.annotations().get(annotation::BUDGET);
    let agents = agent.and_then(|agent| agent.annotations().get(annotation::BUDGET));
    let names = own.into_iter().chain(agents).map(|name| name.trim());
    names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether what may come late had its time since the run was made; never where waits have no end.
fn is_late(run: &AgentRun, grace: Duration, now: Timestamp) -> bool {
    let made = run.creation_timestamp().map(|made| made.0);
    let over = made.and_then(|made| made.checked_add(grace).ok());
    !grace.is_zero() && over.is_some_and(|over| over <= now)
}
