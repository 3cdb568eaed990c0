//! What an object brings in that the policy judges: every way in which an image, a secret or a service account can
//! enter, each with the place it enters by.
//!
//! Collects only; `rules` judges. A kind without a function here brings nothing in.

mod orchestration;
mod run;

use crate::api::cause::{FieldPath, Path};
use crate::api::kinds::agents::version_control_provider::{AuthMethod, VcsAuth};
use crate::api::kinds::shared::{SystemPromptKind, SystemPromptRef, Workload};
use crate::api::kinds::{
    Agent, ImplementationSource, Memory, SecretBinding, Tool, VersionControlProvider,
};
use crate::api::schema::FreeObject;
use crate::api::validate::{auth_secrets, method_word};

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
    /// It holds the credentials that the operator gives to every run.
    OperatorCredentials,
    /// It checks the calls of an issue tracker.
    Tracker,
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
    pub declared_secrets: Option<&'a [String]>,
    /// Secrets that the Agent allows, if it restricts them.
    pub allowed_secrets: Option<&'a [String]>,
    /// Service accounts that the Agent allows, if it restricts them.
    pub allowed_service_accounts: Option<&'a [String]>,
    /// Agent that would use the secrets.
    pub agent_name: Option<&'a str>,
    /// Namespace of the object.
    pub namespace: Option<&'a str>,
    /// SecretBindings of the namespace.
    pub bindings: &'a [SecretBinding],
}

/// The objects that a run refers to, as far as they exist.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// The Agent.
    pub agent: Option<&'a Agent>,
    /// The Memory, chosen by the run, by the Agent or as the default of the namespace.
    pub memory: Option<&'a Memory>,
    /// The VersionControlProvider, chosen by the run, its implementation or the Agent.
    pub vcs: Option<&'a VersionControlProvider>,
    /// SecretBindings of the namespace.
    pub bindings: &'a [SecretBinding],
}

const SPEC: Path<'static> = Path::root("spec");

impl<'a> Intake<'a> {
    /// An Agent brings in the secret of its default system prompt.
    pub fn of_agent(agent: &'a Agent) -> Self {
        let mut intake = Self::default();
        intake.restrict_by(agent);
        let defaults = agent.spec.defaults.as_ref();
        if let Some(prompt) = defaults.and_then(|defaults| defaults.system_prompt_ref.as_ref()) {
            let at = SPEC.field("defaults");
            intake.add_prompt(&at.field("systemPromptRef").field("name"), prompt);
        }
        intake
    }

    /// A Memory brings in the secret of its connection.
    pub fn of_memory(memory: &Memory) -> Self {
        let mut intake = Self::default();
        let connection = SPEC.field("connection");
        let secret = connection.field("secretRef");
        let name = &memory.spec.connection.secret_ref.name;
        intake.add_secret(&secret.field("name"), name, SecretWay::Memory);
        intake
    }

    /// A VersionControlProvider brings in the secrets of its authentication.
    pub fn of_version_control_provider(provider: &VersionControlProvider) -> Self {
        let mut intake = Self::default();
        let auth = SPEC.field("auth");
        for (block, field, name) in provider.spec.auth.iter().flat_map(named_auth_secrets) {
            let block = auth.field(block);
            let secret = block.field(field);
            let way = SecretWay::VersionControl { required: true };
            intake.add_secret(&secret.field("name"), name, way);
        }
        intake
    }

    /// An ImplementationSource brings in the secret that checks its calls.
    pub fn of_implementation_source(source: &ImplementationSource) -> Self {
        let mut intake = Self::default();
        let auth = SPEC.field("auth");
        let secret = auth.field("secretRef");
        let name = &source.spec.auth.secret_ref.name;
        intake.add_secret(&secret.field("name"), name, SecretWay::Tracker);
        intake
    }

    /// A Tool brings in its image and service account.
    pub fn of_tool(tool: &Tool) -> Self {
        let mut intake = Self::default();
        intake.add_image(&SPEC.field("image"), tool.spec.image.as_deref());
        if let Some(account) = &tool.spec.service_account {
            intake.add_service_account(&SPEC.field("serviceAccount"), account);
        }
        intake
    }

    fn restrict_by(&mut self, agent: &'a Agent) {
        let security = agent.spec.security.as_ref();
        let list =
            |list: Option<&'a Vec<String>>| list.map(Vec::as_slice).filter(|list| !list.is_empty());
        self.allowed_secrets =
            list(security.and_then(|security| security.allowed_secrets.as_ref()));
        self.allowed_service_accounts =
            list(security.and_then(|security| security.allowed_service_accounts.as_ref()));
    }

    fn add_image(&mut self, at: &Path<'_>, image: Option<&str>) {
        if let Some(image) = image.map(str::trim).filter(|image| !image.is_empty()) {
            self.images.push(Entry {
                at: at.into(),
                value: image.to_owned(),
            });
        }
    }

    fn add_secret(&mut self, at: &Path<'_>, name: &str, way: SecretWay) {
        self.secrets.push(SecretEntry {
            at: at.into(),
            name: name.to_owned(),
            way,
        });
    }

    fn add_service_account(&mut self, at: &Path<'_>, account: &str) {
        self.service_accounts.push(Entry {
            at: at.into(),
            value: account.to_owned(),
        });
    }

    fn add_prompt(&mut self, at: &Path<'_>, prompt: &SystemPromptRef) {
        match prompt.kind {
            SystemPromptKind::Secret => self.add_secret(at, &prompt.name, SecretWay::SystemPrompt),
            SystemPromptKind::ConfigMap => {}
        }
    }

    fn add_volumes(&mut self, at: &Path<'_>, workload: &Workload) {
        let volumes = at.field("volumes");
        for (index, volume) in workload.volumes.iter().flatten().enumerate() {
            if let Some(name) = &volume.secret_name {
                let volume = volumes.index(index);
                self.add_secret(&volume.field("secretName"), name, SecretWay::Volume);
            }
        }
    }

    /// Pull secrets are given as names or as objects with a name.
    fn add_pull_secrets(&mut self, config_at: &Path<'_>, config: &FreeObject) {
        let at = config_at.field("imagePullSecrets");
        let list = config
            .get("imagePullSecrets")
            .and_then(|list| list.as_array());
        for (index, entry) in list.into_iter().flatten().enumerate() {
            let at = at.index(index);
            if let Some(name) = entry.as_str() {
                self.add_secret(&at, name, SecretWay::ImagePull);
            } else if let Some(name) = entry.get("name").and_then(|name| name.as_str()) {
                self.add_secret(&at.field("name"), name, SecretWay::ImagePull);
            }
        }
    }
}

/// The secrets of an authentication: block, field and name. Every block counts, whatever the method: the method can
/// change later without the secret being looked at again.
fn named_auth_secrets(auth: &VcsAuth) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
    auth_secrets(auth)
        .into_iter()
        .filter_map(|(method, secret)| {
            let field = match method {
                AuthMethod::Token => "secretRef",
                AuthMethod::App | AuthMethod::Ssh => "privateKeySecretRef",
                AuthMethod::None => return None,
            };
            Some((method_word(method), field, secret?.name.as_str()))
        })
}
