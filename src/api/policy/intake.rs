//! What an object brings in that the policy judges: every way in which an image, a secret or a service account can
//! enter, each with the place it enters by.
//!
//! Collects only; `rules` judges. Reads the object as it was sent, so that one wrong field does not hide the rest.

mod orchestration;
mod run;
#[cfg(test)]
mod tests;
mod tool;

use std::sync::Arc;

use serde_json::Value;

use super::Defaults;
use super::facts::{AgentFacts, BindingFacts, Surroundings, auth_secrets, prompt_secret};
use super::read::{at, filled, list, text, texts};
use crate::api::kind::Kind;
use crate::api::object::cause::{FieldPath, Path};
use crate::api::object::tree::Json;

/// A value and the place it enters by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The place.
    pub at: FieldPath,
    /// The value.
    pub value: String,
}

/// A secret and the way it enters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretEntry {
    /// The place.
    pub at: FieldPath,
    /// Name of the Secret.
    pub name: String,
    /// What it is used for.
    pub way: SecretWay,
}

/// What a secret is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretWay {
    /// Its entries become environment variables.
    Environment,
    /// It is mounted.
    Volume,
    /// It pulls images.
    ImagePull,
    /// It connects to a Memory.
    Memory,
    /// It signs in to a host of repositories.
    VersionControl {
        /// Whether the run fails without.
        required: bool,
    },
    /// It holds the system prompt.
    SystemPrompt,
    /// It holds credentials that the operator gives to runs, whether or not they name them.
    OperatorCredentials,
    /// It checks the calls of an issue tracker.
    Tracker,
    /// It is given to Agents.
    Binding,
}

/// Who brings something in.
#[derive(Clone, Debug, Default)]
pub struct Bearer<'a> {
    /// Its labels.
    pub labels: Vec<(&'a str, &'a str)>,
    /// Its namespace.
    pub namespace: Option<&'a str>,
}

/// What an object brings in, and what its Agent and the bindings say about that.
#[derive(Clone, Debug, Default)]
pub struct Intake<'a> {
    /// Labels, where the rules about labels apply.
    pub labels: Option<Vec<(&'a str, &'a str)>>,
    /// Images.
    pub images: Vec<Entry>,
    /// Secrets.
    pub secrets: Vec<SecretEntry>,
    /// Service accounts.
    pub service_accounts: Vec<Entry>,
    /// Secrets that a run names in `spec.secrets`.
    pub declared_secrets: Option<Vec<&'a str>>,
    /// Secrets that the Agent allows; all if empty.
    pub allowed_secrets: Vec<&'a str>,
    /// Service accounts that the Agent allows; all if empty.
    pub allowed_service_accounts: Vec<&'a str>,
    /// Agent that would use the secrets.
    pub agent_name: Option<&'a str>,
    /// Namespace of the object.
    pub namespace: Option<&'a str>,
    /// What the SecretBindings of the namespace give; none where nobody looked.
    pub bindings: Option<&'a [Arc<BindingFacts>]>,
    /// There is more than anyone can judge; the rest is left out.
    pub is_beyond: bool,
}

/// Images, secrets and service accounts of one object that are judged. A workflow of hundreds of steps has fewer, and the
/// largest object that the API server takes could name a million.
const MOST: usize = 10_000;

const SPEC: Path<'static> = Path::root("spec");

/// The field of `runtime.config` that names what pulls images.
const PULL_SECRETS: &str = "imagePullSecrets";

impl<'a> Intake<'a> {
    /// What an object brings in by itself, through the objects that it refers to, and through what the operator adds.
    pub fn of(
        kind: Kind,
        object: &'a Value,
        around: &'a Surroundings,
        defaults: &Defaults,
    ) -> Self {
        let labels = at(object, &["metadata", "labels"]).and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let bearer = Bearer {
            labels: labels
                .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
                .collect(),
            namespace: at(object, &["metadata", "namespace"]).and_then(Value::as_str),
        };
        object
            .get("spec")
            .map(|spec| Self::of_spec(kind, bearer, spec, around, defaults))
            .unwrap_or_default()
    }

    /// The same for an object in parts.
    pub fn of_spec<J: Json>(
        kind: Kind,
        bearer: Bearer<'a>,
        spec: &'a J,
        around: &'a Surroundings,
        defaults: &Defaults,
    ) -> Self {
        let mut intake = Self::default();
        match kind {
            Kind::Agent => intake.add_agent(spec),
            Kind::AgentRun => intake.add_run(bearer, spec, around, defaults),
            Kind::ImplementationSource => {
                // The second one is sent to a host that the object itself names.
                for block in ["auth", "sync"] {
                    let (secret, block) = (at(spec, &[block, "secretRef"]), SPEC.field(block));
                    intake.add_named(&block.field("secretRef"), secret, SecretWay::Tracker);
                }
            }
            Kind::VersionControlProvider => intake.add_provider(spec),
            Kind::Memory => {
                let secret = at(spec, &["connection", "secretRef"]);
                let connection = SPEC.field("connection");
                intake.add_named(&connection.field("secretRef"), secret, SecretWay::Memory);
            }
            Kind::Orchestration => intake.add_steps(spec),
            Kind::Tool => intake.add_tool(spec),
            Kind::ToolRun => intake.add_tool_run(spec, around),
            Kind::SecretBinding => {
                intake.add_secrets(&SPEC, spec, "allowedSecrets", SecretWay::Binding);
            }
            // Text for a model or a binary to start, but never an image, a secret or a service account.
            Kind::AgentProvider | Kind::ImplementationSpec => {}
            // The runs that these start are judged when they are made.
            Kind::OrchestrationRun | Kind::Schedule | Kind::SignalDelivery => {}
            Kind::ApprovalPolicy
            | Kind::Budget
            | Kind::Signal
            | Kind::Artifact
            | Kind::Workspace => {}
        }
        intake
    }

    /// An Agent brings in the secret of its default system prompt; its own list counts for that.
    fn add_agent<J: Json>(&mut self, spec: &'a J) {
        if let Some(security) = spec.field("security") {
            self.allowed_secrets = texts(security, "allowedSecrets").collect();
            self.allowed_service_accounts = texts(security, "allowedServiceAccounts").collect();
        }
        let defaults = SPEC.field("defaults");
        let prompt = at(spec, &["defaults", "systemPromptRef"]);
        self.add_prompt(&defaults.field("systemPromptRef"), prompt);
    }

    fn add_provider(&mut self, spec: &impl Json) {
        let auth = SPEC.field("auth");
        for (block, field, name) in spec.field("auth").into_iter().flat_map(auth_secrets) {
            let block = auth.field(block);
            let secret = block.field(field);
            let way = SecretWay::VersionControl { required: true };
            self.add_secret(&secret.field("name"), name, way);
        }
    }

    fn restrict_by(&mut self, agent: &'a AgentFacts) {
        let listed = |names: &'a [String]| names.iter().map(String::as_str).collect();
        self.allowed_secrets = listed(&agent.secrets);
        self.allowed_service_accounts = listed(&agent.service_accounts);
    }

    /// Whether one more can be judged.
    fn has_room(&mut self) -> bool {
        let count = self.images.len() + self.secrets.len() + self.service_accounts.len();
        self.is_beyond = self.is_beyond || count >= MOST;
        !self.is_beyond
    }

    fn add_image(&mut self, at: &Path<'_>, image: Option<&str>) {
        if let Some(image) = image.filter(|_| self.has_room()) {
            self.images.push(Entry {
                at: at.into(),
                value: image.to_owned(),
            });
        }
    }

    fn add_secret(&mut self, at: impl Into<FieldPath>, name: &str, way: SecretWay) {
        if self.has_room() {
            self.secrets.push(SecretEntry {
                at: at.into(),
                name: name.to_owned(),
                way,
            });
        }
    }

    /// A reference to a secret: an object with a name.
    fn add_named(&mut self, at: &Path<'_>, reference: Option<&impl Json>, way: SecretWay) {
        if let Some(name) = reference.and_then(|reference| text(reference, "name")) {
            self.add_secret(&at.field("name"), name, way);
        }
    }

    /// A field that lists secrets by name.
    fn add_secrets(&mut self, owner_at: &Path<'_>, owner: &impl Json, field: &str, way: SecretWay) {
        let at = owner_at.field(field);
        for (index, name) in list(owner, field).iter().enumerate() {
            if let Some(name) = filled(name) {
                self.add_secret(&at.index(index), name, way);
            }
        }
    }

    fn add_service_account(&mut self, at: &Path<'_>, account: &str) {
        if self.has_room() {
            self.service_accounts.push(Entry {
                at: at.into(),
                value: account.to_owned(),
            });
        }
    }

    fn add_prompt(&mut self, at: &Path<'_>, reference: Option<&impl Json>) {
        if let Some(name) = reference.and_then(prompt_secret) {
            self.add_secret(&at.field("name"), name, SecretWay::SystemPrompt);
        }
    }

    fn add_volumes(&mut self, workload_at: &Path<'_>, workload: &impl Json) {
        let at = workload_at.field("volumes");
        for (index, volume) in list(workload, "volumes").iter().enumerate() {
            if let Some(name) = text(volume, "secretName") {
                let at = at.index(index);
                self.add_secret(&at.field("secretName"), name, SecretWay::Volume);
            }
        }
    }

    /// Pull secrets are given as names or as objects with a name.
    fn add_pull_secrets(&mut self, config_at: &Path<'_>, config: &impl Json) {
        let at = config_at.field(PULL_SECRETS);
        for (index, entry) in list(config, PULL_SECRETS).iter().enumerate() {
            let at = at.index(index);
            if let Some(name) = filled(entry) {
                self.add_secret(&at, name, SecretWay::ImagePull);
            } else if let Some(name) = text(entry, "name") {
                self.add_secret(&at.field("name"), name, SecretWay::ImagePull);
            }
        }
    }

    /// Pull secrets and service account of a `runtime.config` that need not be complete.
    fn add_config(&mut self, owner_at: &Path<'_>, owner: &impl Json) {
        let Some(config) = at(owner, &["runtime", "config"]) else {
            return;
        };
        let runtime = owner_at.field("runtime");
        let config_at = runtime.field("config");
        self.add_pull_secrets(&config_at, config);
        if let Some(account) = text(config, "serviceAccount") {
            self.add_service_account(&config_at.field("serviceAccount"), account);
        }
    }
}
