//! What operators can set about runs: what their pods get, and how long everything is kept.

use std::time::Duration;

use k8s_openapi::api::core::v1::SecurityContext;
use serde_json::Value as Json;

use super::admission::Limits;
use super::artifacts::Artifacts;
use super::vcs;
use crate::api::contract::env;
use crate::api::crd::schema::FreeObject;
use crate::api::policy::Defaults;
use crate::kit::config::{self, Invalid, Reader, Setting, Value};

/// What operators can set about runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    /// How long a run waits for something that it refers to; zero for ever.
    pub(crate) grace: Duration,
    /// How long a run is kept after its end; zero for ever.
    pub(crate) retention: Duration,
    /// Whether a run fails whose spec is changed after it has begun, or only warns.
    pub(crate) immutable: bool,
    /// How long Jobs are kept.
    pub(crate) keep: Keep,
    /// What runs may leave behind.
    pub(crate) artifacts: Artifacts,
    /// What pods get.
    pub(crate) runner: Runner,
    /// How many runs there may be.
    pub(crate) limits: Limits,
}

/// How long Jobs are kept once their outcome is stored; zero for as long as their run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    /// One that succeeded.
    pub(crate) succeeded: Duration,
    /// One that failed.
    pub(crate) failed: Duration,
    /// No Job goes sooner, so that people and tools that watch it see its end.
    pub(crate) floor: Duration,
    /// At least so long, so that logs can be read.
    pub(crate) logs: Duration,
}

/// What the operator gives to pods.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Runner {
    /// Image of runs that name none.
    pub(crate) image: Option<String>,
    /// Service account of runs that name none.
    pub(crate) service_account: Option<String>,
    /// Credentials that every run gets.
    pub(crate) auth: Option<Auth>,
    /// How often a Job tries a failed pod again.
    pub(crate) backoff_limit: usize,
    /// How long the runner keeps its log.
    pub(crate) log_retention: Duration,
    /// Settings of pods, by the keys of `runtime.config`, which go over them.
    pub(crate) pod: FreeObject,
    /// Security context of every container. Not one of the settings that runs may go over: it may be what admits their pods.
    pub(crate) container: Option<SecurityContext>,
    /// Version control.
    pub(crate) vcs: vcs::Settings,
    /// How runners sign in to NATS.
    pub(crate) nats: Option<vcs::Nats>,
}

impl Runner {
    /// What the policy counts as if the run had written it.
    pub(crate) fn defaults(&self) -> Defaults {
        let pulled_with = self.pod.get("imagePullSecrets").and_then(Json::as_array);
        let pulled_with = pulled_with.map(|names| {
            let names = names.iter().filter_map(Json::as_str);
            names.map(str::to_owned).collect()
        });
        Defaults {
            image_pull_secrets: pulled_with,
            image: self.image.clone(),
            service_account: self.service_account.clone(),
            auth_secret: self.auth.as_ref().map(|auth| auth.secret.clone()),
        }
    }
}

/// Credentials that every run gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Auth {
    pub(crate) secret: String,
    pub(crate) key: String,
    pub(crate) mount: String,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Runs");
        let grace = reader.value(
            Setting::<Duration>::new(
                env::REFERENCE_GRACE,
                "How long a run waits for something that it refers to and that is not there; 0 waits for ever",
            )
            .or("10m")
            .within("0s", "168h"),
        );
        let retention = reader.value(
            Setting::<Duration>::new(
                env::RUN_RETENTION,
                "How long a run is kept after its end, unless it says so itself; 0 keeps it for ever",
            )
            .or("2592000"),
        );
        let immutable = reader.value(
            Setting::new(
                env::IMMUTABILITY_ENFORCED,
                "A run fails whose spec is changed after it has begun; else it only warns",
            )
            .or("true"),
        );
        let keep = Keep::read(reader);
        let artifacts = Artifacts::read(reader);
        let runner = Runner::read(reader);
        let limits = Limits::read(reader);
        Ok(Self {
            grace: grace?,
            retention: retention?,
            immutable: immutable?,
            keep: keep?,
            artifacts: artifacts?,
            runner: runner?,
            limits: limits?,
        })
    }
}

impl config::Settings for Keep {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let succeeded = reader.value(
            Setting::<Duration>::new(
                env::RUNNER_JOB_TTL,
                "How long a Job is kept once its outcome is stored, at most a week; 0 keeps it as long as its run",
            )
            .or("600"),
        );
        let failed = reader.optional(Setting::<Duration>::new(
            env::RUNNER_FAILED_JOB_TTL,
            "The same for a Job that failed; as for one that succeeded if not set",
        ));
        let floor = reader.value(
            Setting::<Duration>::new(
                env::RUNNER_JOB_TTL_FLOOR,
                "No Job goes sooner after its end, whatever its run says, so that those who watch it see its end; 0 asks for nothing",
            )
            .or("30")
            .within("0s", "168h"),
        );
        let logs = reader.value(
            Setting::<Duration>::new(
                env::RUNNER_JOB_LOG_RETENTION,
                "How long a Job and its pods are kept at least, so that logs can be read; 0 asks for nothing",
            )
            .or("0"),
        );
        let succeeded = succeeded?;
        Ok(Self {
            succeeded,
            failed: failed?.unwrap_or(succeeded),
            floor: floor?,
            logs: logs?,
        })
    }
}

impl config::Settings for Artifacts {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let max = reader.value(
            Setting::<usize>::new(
                env::ARTIFACTS_MAX,
                "How many artifacts a run keeps in its status, the last ones; never more than 50",
            )
            .or("50"),
        );
        let strict = reader.value(
            Setting::new(
                env::ARTIFACTS_STRICT,
                "A run fails whose artifacts break the limits; else they are only cut",
            )
            .or("false"),
        );
        Ok(Self {
            max: max?,
            strict: strict?,
        })
    }
}

impl config::Settings for Runner {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Pods of runs");
        let defaults = Defaults::read(reader);
        let key = reader.value(
            Setting::<String>::new(env::AUTH_SECRET_KEY, "Entry of that Secret").or("auth.json"),
        );
        let mount = reader.value(
            Setting::<String>::new(
                env::AUTH_SECRET_MOUNT_PATH,
                "Folder in the container in which that entry appears",
            )
            .or("/root/.codex"),
        );
        let backoff_limit = reader.value(
            Setting::new(
                env::RUNNER_BACKOFF_LIMIT,
                "How often a Job tries a failed pod again; each try runs the agent once more",
            )
            .or("0")
            .within("0", "1000"),
        );
        let log_retention = reader.value(
            Setting::<Duration>::new(
                env::RUNNER_LOG_RETENTION,
                "How long the runner is told to keep its log",
            )
            .or("604800"),
        );
        let pod = read_pod(reader);
        let container = reader.optional(Setting::<ContainerContext>::new(
            env::RUNNER_CONTAINER_SECURITY_CONTEXT,
            "Security context of the containers of AgentRuns and ToolRuns, as JSON; runs cannot change it",
        ));
        let nats = vcs::Nats::read(reader);
        let vcs = vcs::Settings::read(reader);
        let (key, mount) = (key?, mount?);
        let Defaults {
            image,
            service_account,
            auth_secret,
            image_pull_secrets,
        } = defaults?;
        let mut pod = pod?;
        let pulled_with =
            image_pull_secrets.map(|names| ("imagePullSecrets".to_owned(), names.into()));
        pod.extend(pulled_with);
        Ok(Self {
            image,
            service_account,
            auth: auth_secret.map(|secret| Auth { secret, key, mount }),
            backoff_limit: backoff_limit?,
            log_retention: log_retention?,
            pod,
            container: container?.map(|ContainerContext(context)| context),
            vcs: vcs?,
            nats: nats?,
        })
    }
}

/// Settings of pods that are JSON, with the keys that `runtime.config` has for them.
fn read_pod(reader: &mut Reader<'_>) -> Result<FreeObject, Invalid> {
    let objects = [
        (
            env::RUNNER_NODE_SELECTOR,
            "nodeSelector",
            "Node selector of pods, as JSON",
        ),
        (
            env::RUNNER_AFFINITY,
            "affinity",
            "Affinity of pods, as JSON",
        ),
        (
            env::RUNNER_POD_SECURITY_CONTEXT,
            "podSecurityContext",
            "Security context of pods, as JSON",
        ),
    ]
    .map(|(variable, key, help)| {
        let given = reader.optional(Setting::<JsonObject>::new(variable, help));
        given.map(|given| (key, given.map(|JsonObject(object)| Json::Object(object))))
    });
    let lists = [
        (
            env::RUNNER_TOLERATIONS,
            "tolerations",
            "Tolerations of pods, as JSON",
        ),
        (
            env::RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS,
            "topologySpreadConstraints",
            "Topology spread constraints of pods, as JSON",
        ),
    ]
    .map(|(variable, key, help)| {
        let given = reader.optional(Setting::<JsonList>::new(variable, help));
        given.map(|given| (key, given.map(|JsonList(list)| Json::Array(list))))
    });
    let names = [
        (
            env::RUNNER_PRIORITY_CLASS,
            "priorityClassName",
            "Priority class of pods",
        ),
        (
            env::RUNNER_SCHEDULER_NAME,
            "schedulerName",
            "Scheduler of pods",
        ),
    ]
    .map(|(variable, key, help)| {
        let given = reader.optional(Setting::<String>::new(variable, help));
        given.map(|given| (key, given.map(Json::String)))
    });
    let mut pod = FreeObject::new();
    for given in objects.into_iter().chain(lists).chain(names) {
        let (key, given) = given?;
        if let Some(given) = given {
            pod.insert(key.to_owned(), given);
        }
    }
    Ok(pod)
}

struct JsonObject(FreeObject);

impl Value for JsonObject {
    const EXPECTED: &'static str = "a JSON object such as {\"a\": \"b\"}";

    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }
}

struct ContainerContext(SecurityContext);

impl Value for ContainerContext {
    const EXPECTED: &'static str = "a JSON object with fields of the security context of a container, such as {\"runAsNonRoot\": true}";

    fn parse(text: &str) -> Option<Self> {
        let given: Json = serde_json::from_str(text).ok()?;
        let context: SecurityContext = serde_json::from_value(given.clone()).ok()?;
        // A misspelt field would be left out without a word, and a container be less safe than is meant.
        let whole = serde_json::to_value(&context).is_ok_and(|read| read == given);
        whole.then_some(Self(context))
    }
}

struct JsonList(Vec<Json>);

impl Value for JsonList {
    const EXPECTED: &'static str = "a JSON list such as [\"a\"]";

    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }
}

#[cfg(test)]
mod tests;
