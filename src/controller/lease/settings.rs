//! What operators can set about the lease.

use std::path::PathBuf;
use std::time::Duration;

use crate::api::contract::env;
use crate::kit::config::{self, Invalid, Reader, Setting};

/// Least time between the last moment of writing and the moment at which another may begin.
const MARGIN: Duration = Duration::from_secs(1);

/// What operators can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether only the holder of the lease works.
    pub(crate) enabled: bool,
    /// Name of the lease.
    pub(crate) name: String,
    /// Its namespace, if it is not that of the pod.
    pub(crate) namespace: Option<String>,
    /// How long it is held without a renewal.
    pub(crate) duration: Duration,
    /// How long a renewal may take before the holder gives up; less than the duration.
    pub(crate) renew: Duration,
    /// Time between two tries; less than that.
    pub(crate) retry: Duration,
    /// What the pod is told about itself; a canary asks for the lease.
    pub(crate) labels: Option<PathBuf>,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Leader election");
        let enabled = reader.value(
            Setting::new(
                env::LEADER_ELECTION_ENABLED,
                "Only the holder of a lease works; the others wait",
            )
            .or("true"),
        );
        let name = reader.value(
            Setting::<String>::new(env::LEADER_ELECTION_LEASE_NAME, "Name of the lease")
                .or("jangar-controller-leader"),
        );
        let namespace = reader.optional(Setting::<String>::new(
            env::LEADER_ELECTION_LEASE_NAMESPACE,
            "Namespace of the lease; that of the pod if not set",
        ));
        let mut seconds = |variable, help, default: &str| {
            let setting = Setting::<Duration>::new(variable, help);
            reader.value(setting.or(default).within("1s", "1h"))
        };
        let duration = seconds(
            env::LEADER_ELECTION_LEASE_DURATION,
            "How long the lease is held without a renewal",
            "30",
        );
        let renew = seconds(
            env::LEADER_ELECTION_RENEW_DEADLINE,
            "How long a renewal may take before the holder gives up and ends",
            "20",
        );
        let retry = seconds(
            env::LEADER_ELECTION_RETRY_PERIOD,
            "Time between two renewals, and between two tries to take the lease",
            "5",
        );
        let labels = reader.optional(Setting::<PathBuf>::new(
            env::POD_LABELS_FILE,
            "File with the labels of the program's own pod, as the downward API writes it; a canary asks for the lease",
        ));
        let (duration, renew, retry) = (duration?, renew?, retry?);
        // The lease itself holds whole seconds. What is left of it after the last write that may begin is the margin for a
        // write that is on its way.
        let whole = Duration::from_secs(duration.as_secs());
        if !(retry < renew && renew + MARGIN <= whole) {
            return Err(reader.contradiction(
                env::LEADER_ELECTION_RENEW_DEADLINE,
                "must be longer than the retry period and a second shorter than the lease duration",
            ));
        }
        Ok(Self {
            enabled: enabled?,
            name: name?,
            namespace: namespace?,
            duration,
            renew,
            retry,
            labels: labels?,
        })
    }
}
