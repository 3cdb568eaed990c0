//! What is known of a cluster and of what is installed in it. `gather` fills it in, `judge` only reads it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;

use super::values::Values;
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::registration::Hook;
use crate::cluster::Standing;
use crate::kit::tls::Presented;

/// What was looked at, or why it could not be.
pub(crate) type Seen<T> = Result<T, Unseen>;

/// Why something is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unseen {
    /// It is not there.
    #[error("{0} is not there")]
    Absent(String),
    /// Whoever asks may not look.
    #[error("you may not look: {0}")]
    Forbidden(String),
    /// Nobody answered, or not with sense.
    #[error("{0}")]
    Silent(String),
}

/// Everything that checks look at.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The namespace of the release.
    pub(crate) namespace: String,
    /// What the values say, as far as they were given.
    pub(crate) values: Values,
    /// The time by the clock of the API server, or by our own where that is not known.
    pub(crate) now: Timestamp,
    /// Version of Kubernetes.
    pub(crate) version: Seen<String>,
    /// How far the clock of the API server is ahead of ours.
    pub(crate) ahead: Seen<SignedDuration>,
    /// How the API server stands to our kinds.
    pub(crate) kinds: Seen<Vec<(Kind, Standing)>>,
    /// Groups with their versions that the API server has, such as `cert-manager.io/v1`.
    pub(crate) groups: Seen<BTreeSet<String>>,
    /// Labels of the namespaces.
    pub(crate) namespaces: Seen<BTreeMap<String, Labels>>,
    /// What whoever asks lacks to install.
    pub(crate) installer: Seen<Vec<String>>,
    /// The programs that are installed.
    pub(crate) programs: Seen<Vec<Program>>,
    /// What the accounts of the programs lack.
    pub(crate) lacking: BTreeMap<Component, Seen<Vec<String>>>,
    /// The lease of the controllers.
    pub(crate) lease: Seen<Lease>,
    /// Names of the pods in the namespace of the lease.
    pub(crate) pods: Seen<BTreeSet<String>>,
    /// How the API server is told of the webhook.
    pub(crate) registered: Seen<Registered>,
    /// Entries of webhook configurations that are not ours.
    pub(crate) others: Seen<Vec<Other>>,
    /// The certificate that the webhook shows.
    pub(crate) certificate: Seen<Presented>,
    /// Addresses behind the Service of the webhook that are ready.
    pub(crate) endpoints: Seen<usize>,
    /// What became of an object that was sent without being stored.
    pub(crate) probe: Seen<Probe>,
    /// ServiceMonitors and PodMonitors for our metrics.
    pub(crate) monitors: Seen<Vec<Value>>,
    /// All Prometheus objects.
    pub(crate) prometheuses: Seen<Vec<Value>>,
    /// What the sidecars say of themselves.
    pub(crate) sidecars: Seen<Vec<Sidecar>>,
    /// Our Jobs.
    pub(crate) jobs: Seen<Vec<Job>>,
    /// Runs.
    pub(crate) runs: Seen<Vec<AgentRun>>,
}

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// A part of the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Component {
    /// The reconcilers with their sidecar.
    Controllers,
    /// Admission.
    Webhook,
    /// The API.
    ControlPlane,
}

impl Component {
    /// All parts.
    pub(crate) const ALL: [Self; 3] = [Self::Controllers, Self::Webhook, Self::ControlPlane];

    /// The word in the label of its objects.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Controllers => "controllers",
            Self::Webhook => "webhook",
            Self::ControlPlane => "control-plane",
        }
    }
}

/// A Deployment or a Rollout of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Which part it is.
    pub(crate) component: Component,
    /// Its kind.
    pub(crate) kind: String,
    /// Its name.
    pub(crate) name: String,
    /// Pods that are wanted.
    pub(crate) wanted: u64,
    /// Pods that are ready.
    pub(crate) ready: u64,
    /// The version in its labels.
    pub(crate) version: Option<String>,
    /// The account that its pods use.
    pub(crate) account: String,
    /// The variables of its program that are given as plain text.
    pub(crate) variables: BTreeMap<String, String>,
    /// The Secret with its certificate.
    pub(crate) secret: Option<String>,
    /// Whether a sidecar is among its containers.
    pub(crate) has_sidecar: bool,
}

/// Our webhook configurations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Registered {
    /// The one that mutates.
    pub(crate) mutating: Option<MutatingWebhookConfiguration>,
    /// The one that validates.
    pub(crate) validating: Option<ValidatingWebhookConfiguration>,
}

/// An entry of someone else's webhook configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Other {
    /// Name of the configuration.
    pub(crate) configuration: String,
    /// Whether it may change objects.
    pub(crate) mutates: bool,
    /// The entry.
    pub(crate) hook: Hook,
    /// Ready addresses behind its Service; none if it has no Service.
    pub(crate) endpoints: Option<Seen<usize>>,
}

/// What became of an object that was sent without being stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// It came back with the mark of our webhook.
    Marked,
    /// It came back as it was sent.
    Unmarked,
    /// It was refused, with these words.
    Refused(String),
}

/// What the page of a sidecar says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sidecar {
    /// Its pod.
    pub(crate) pod: String,
    /// Seconds since it began; none if its page does not say.
    pub(crate) age: Option<f64>,
    /// Pages that it has written in the forms that scrapers ask for.
    pub(crate) scrapes: u64,
}

impl Facts {
    /// The program that carries a part, if there is one.
    pub(crate) fn program(&self, component: Component) -> Option<&Program> {
        let programs = self.programs.iter().flatten();
        let mut own = programs.filter(|program| program.component == component);
        own.next()
    }
}
