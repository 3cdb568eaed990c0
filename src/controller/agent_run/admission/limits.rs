//! What operators can set about admission.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::api::contract::env;
use crate::kit::config::{self, Invalid, Reader, Setting, Value};

/// What operators can set about admission.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Limits {
    /// Most runs of one agent at a time.
    pub(super) agent: usize,
    /// Most runs of one namespace at a time.
    pub(super) namespace: usize,
    /// Most runs at a time.
    pub(super) cluster: usize,
    /// Most runs of one repository at a time; none if that is not limited.
    pub(super) repositories: Option<Repositories>,
    /// Most runs that wait.
    pub(super) queue: ByScope,
    /// Most runs that begin within the window.
    pub(super) rate: ByScope,
    /// Time within which those are counted.
    pub(super) window: Duration,
    /// How long a key is kept after the end of its run; none if keys mean nothing.
    pub(super) keys: Option<Duration>,
}

/// Limits for repositories; zero is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repositories {
    pub(super) default: usize,
    /// By name in lower case.
    pub(super) overrides: BTreeMap<String, usize>,
}

/// One limit for each scope; zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByScope {
    pub(super) namespace: usize,
    pub(super) repository: usize,
    pub(super) cluster: usize,
}

impl Limits {
    /// How long a key is kept; what becomes of it then is shown by the tests of admission.
    #[cfg(test)]
    pub(in crate::controller::agent_run) fn keys_kept(&self) -> Option<Duration> {
        self.keys
    }

    /// Most runs of a repository at a time.
    pub(super) fn of_repository(&self, name: &str) -> Option<usize> {
        let limits = self.repositories.as_ref()?;
        let own = limits.overrides.get(name).copied();
        Some(own.unwrap_or(limits.default)).filter(|limit| *limit > 0)
    }
}

impl config::Settings for Limits {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Admission of runs");
        let mut at_a_time = |variable, help, default: &str| {
            let setting = Setting::<usize>::new(variable, help).or(default);
            reader.value(setting.within("1", "1000000"))
        };
        let agent = at_a_time(
            env::CONCURRENCY_AGENT,
            "Most runs of one agent at a time",
            "5",
        );
        let namespace = at_a_time(
            env::CONCURRENCY_NAMESPACE,
            "Most runs of one namespace at a time",
            "10",
        );
        let cluster = at_a_time(env::CONCURRENCY_CLUSTER, "Most runs at a time", "100");
        let repositories = Repositories::read(reader);
        let queue = read_queue(reader);
        let rate = read_rate(reader);
        let window = reader.value(
            Setting::<Duration>::new(
                env::RATE_WINDOW,
                "Time within which runs that begin are counted",
            )
            .or("60")
            .within("1s", "24h"),
        );
        let keys = read_keys(reader);
        Ok(Self {
            agent: agent?,
            namespace: namespace?,
            cluster: cluster?,
            repositories: repositories?,
            queue: queue?,
            rate: rate?,
            window: window?,
            keys: keys?,
        })
    }
}

fn read_queue(reader: &mut Reader<'_>) -> Result<ByScope, Invalid> {
    let mut count = |variable, help, default: &str| {
        reader.value(Setting::<usize>::new(variable, help).or(default))
    };
    let namespace = count(
        env::QUEUE_NAMESPACE,
        "Most runs of one namespace that wait; 0 is no limit",
        "200",
    );
    let repository = count(
        env::QUEUE_REPO,
        "Most runs of one repository that wait; 0 is no limit",
        "50",
    );
    let cluster = count(
        env::QUEUE_CLUSTER,
        "Most runs that wait; 0 is no limit",
        "1000",
    );
    Ok(ByScope {
        namespace: namespace?,
        repository: repository?,
        cluster: cluster?,
    })
}

fn read_rate(reader: &mut Reader<'_>) -> Result<ByScope, Invalid> {
    let mut count = |variable, help, default: &str| {
        reader.value(Setting::<usize>::new(variable, help).or(default))
    };
    let namespace = count(
        env::RATE_NAMESPACE,
        "Most runs of one namespace that begin within the window; 0 is no limit",
        "120",
    );
    let repository = count(
        env::RATE_REPO,
        "Most runs of one repository that begin within the window; 0 is no limit",
        "30",
    );
    let cluster = count(
        env::RATE_CLUSTER,
        "Most runs that begin within the window; 0 is no limit",
        "600",
    );
    Ok(ByScope {
        namespace: namespace?,
        repository: repository?,
        cluster: cluster?,
    })
}

impl Repositories {
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Invalid> {
        let enabled = reader.value(
            Setting::<bool>::new(
                env::REPO_CONCURRENCY_ENABLED,
                "Runs of one repository at a time are limited",
            )
            .or("false"),
        );
        let default = reader.value(
            Setting::<usize>::new(
                env::REPO_CONCURRENCY_DEFAULT,
                "Most runs of one repository at a time; 0 is no limit",
            )
            .or("0"),
        );
        let overrides = reader.value(
            Setting::<Counts>::new(
                env::REPO_CONCURRENCY_OVERRIDES,
                "The same for single repositories, as JSON; 0 is no limit",
            )
            .or("{}"),
        );
        let (enabled, default, Counts(overrides)) = (enabled?, default?, overrides?);
        Ok(enabled.then_some(Self { default, overrides }))
    }
}

fn read_keys(reader: &mut Reader<'_>) -> Result<Option<Duration>, Invalid> {
    let enabled = reader.value(
        Setting::<bool>::new(
            env::IDEMPOTENCY_ENABLED,
            "Runs of one agent with the same idempotency key are carried out only once",
        )
        .or("true"),
    );
    let days = reader.value(
        Setting::<usize>::new(
            env::IDEMPOTENCY_RETENTION_DAYS,
            "Days for which a run that has ended keeps its idempotency key, if it is still there",
        )
        .or("30")
        .within("1", "3650"),
    );
    let days = u64::try_from(days?).unwrap_or_default();
    Ok(enabled?.then(|| Duration::from_secs(days * 24 * 3600)))
}

/// A number for each name.
struct Counts(BTreeMap<String, usize>);

impl Value for Counts {
    const EXPECTED: &'static str = "a JSON object such as {\"owner/name\": 2}";

    fn parse(text: &str) -> Option<Self> {
        let counts: BTreeMap<String, usize> = serde_json::from_str(text).ok()?;
        let lower = counts.into_iter();
        let lower = lower.map(|(name, count)| (name.trim().to_lowercase(), count));
        Some(Self(lower.collect()))
    }
}
