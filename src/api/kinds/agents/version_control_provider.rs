//! VersionControlProvider: a host of repositories, how to sign in, and which repositories runs may use.

use crate::api::condition::Condition;
use crate::api::crd::schema::{self, IntOrString};
use crate::api::kinds::shared::{ConfigMapRef, SecretRef};
use jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Where the host is, how to sign in, and what runs may do there.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agents.proompteng.ai",
    version = "v1alpha1",
    kind = "VersionControlProvider",
    doc = "A host of repositories, how to sign in, and which repositories runs may use.",
    namespaced,
    status = "VersionControlProviderStatus",
    shortname = "vcp",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct VersionControlProviderSpec {
    /// Software of the host.
    pub provider: VcsProvider,
    /// Address of the API.
    #[schemars(url)]
    pub api_base_url: Option<String>,
    /// Address that repositories are cloned from.
    #[schemars(url)]
    pub clone_base_url: Option<String>,
    /// Address of the pages for people.
    #[schemars(url)]
    pub web_base_url: Option<String>,
    /// How repositories are cloned.
    pub clone_protocol: Option<CloneProtocol>,
    /// Host name for cloning over SSH.
    pub ssh_host: Option<String>,
    /// User name for cloning over SSH.
    pub ssh_user: Option<String>,
    /// How to sign in.
    pub auth: Option<VcsAuth>,
    /// Which repositories runs may use.
    pub repository_policy: Option<RepositoryPolicy>,
    /// What runs may do; what is left out is allowed.
    pub capabilities: Option<VcsCapabilities>,
    /// Values for runs that leave them out.
    pub defaults: Option<VcsDefaults>,
}

/// Software of a host of repositories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VcsProvider {
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Bitbucket.
    Bitbucket,
    /// Gitea.
    Gitea,
    /// Any Git server.
    #[default]
    Generic,
}

/// How repositories are cloned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CloneProtocol {
    /// Over HTTPS.
    Https,
    /// Over SSH.
    Ssh,
}

/// How to sign in to a host.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VcsAuth {
    /// Which of the blocks below is used.
    pub method: Option<AuthMethod>,
    /// User name that goes with a token.
    pub username: Option<String>,
    /// Sign in with a token.
    pub token: Option<TokenAuth>,
    /// Sign in as an app that is installed at the host.
    pub app: Option<AppAuth>,
    /// Sign in with an SSH key.
    pub ssh: Option<SshAuth>,
}

/// Ways to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuthMethod {
    /// With a token.
    Token,
    /// As an installed app.
    App,
    /// With an SSH key.
    Ssh,
    /// Not at all.
    None,
}

/// Sign in with a token.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenAuth {
    /// Secret with the token; the entry is token unless named.
    pub secret_ref: Option<SecretRef>,
    /// What sort of token it is.
    #[serde(rename = "type")]
    pub type_: Option<TokenType>,
}

/// Sorts of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenType {
    /// Personal access token.
    Pat,
    /// Personal access token for single repositories.
    FineGrained,
    /// API token.
    ApiToken,
    /// Access token of a project or group.
    AccessToken,
}

/// Sign in as an installed app.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppAuth {
    /// Number of the app.
    pub app_id: Option<IntOrString>,
    /// Number of the installation.
    pub installation_id: Option<IntOrString>,
    /// Secret with the key of the app; the entry is privateKey unless named.
    pub private_key_secret_ref: Option<SecretRef>,
    /// Seconds that an issued token lives.
    #[schemars(range(min = 0))]
    #[schemars(extend("format" = "int32"))]
    pub token_ttl_seconds: Option<i64>,
}

/// Sign in with an SSH key.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SshAuth {
    /// Secret with the key; the entry is privateKey unless named.
    pub private_key_secret_ref: Option<SecretRef>,
    /// ConfigMap with the known hosts; the entry is known_hosts unless named.
    pub known_hosts_config_map_ref: Option<ConfigMapRef>,
}

/// Which repositories runs may use, as patterns in which * stands for any text.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryPolicy {
    /// Repositories that may be used; all if absent or empty.
    #[schemars(length(max = 200))]
    pub allow: Option<Vec<String>>,
    /// Repositories that may not be used, even if allowed.
    #[schemars(length(max = 200))]
    pub deny: Option<Vec<String>>,
}

/// What runs may do at a host; what is left out is allowed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VcsCapabilities {
    /// Clone and fetch.
    pub read: Option<bool>,
    /// Push.
    pub write: Option<bool>,
    /// Open pull requests.
    pub pull_requests: Option<bool>,
}

/// Values for runs that leave them out.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VcsDefaults {
    /// Branch that work starts from.
    pub base_branch: Option<String>,
    /// Template of the name of the branch with the work.
    pub branch_template: Option<String>,
    /// Template of what is appended when that branch exists.
    pub branch_conflict_suffix_template: Option<String>,
    /// Name of the author of commits.
    pub commit_author_name: Option<String>,
    /// Mail address of the author of commits.
    pub commit_author_email: Option<String>,
    /// Whether and how a pull request is opened.
    pub pull_request: Option<PullRequestDefaults>,
}

/// Whether and how a pull request is opened.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestDefaults {
    /// Open one; yes if left out.
    pub enabled: Option<bool>,
    /// Open it as a draft; no if left out.
    pub draft: Option<bool>,
    /// Template of the title.
    pub title_template: Option<String>,
    /// Template of the text.
    pub body_template: Option<String>,
}

/// What is known about a VersionControlProvider.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionControlProviderStatus {
    /// When the settings were last looked at.
    pub last_validated_at: Option<Timestamp>,
    /// Observations, one per type.
    #[serde(default)]
    #[schemars(schema_with = "schema::strict_conditions")]
    pub conditions: Option<Vec<Condition>>,
    /// When the status last changed.
    pub updated_at: Option<Timestamp>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
}
