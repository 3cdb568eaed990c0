//! What the runner and the status are told of a repository. A credential is named by its Secret and entry, or mounted as
//! a file; no value of one is ever written down.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, SecretKeySelector};
use serde_json::{Value, json};

use super::settings::{Nats, Settings};
use super::{Auth, Vcs};
use crate::api::kinds::AgentRun;
use crate::api::kinds::agents::agent_run::{VcsMode, VcsStatus};
use crate::api::kinds::agents::version_control_provider::{
    CloneProtocol, PullRequestDefaults, VcsDefaults, VcsProvider,
};
use crate::api::validate::host_auth;
use crate::controller::agent_run::rules;
use crate::controller::agent_run::work::Found;

/// Folders in which files appear.
const SSH: &str = "/var/run/secrets/agents/vcs/ssh";
const KNOWN_HOSTS: &str = "/var/run/secrets/agents/vcs/known-hosts";
const APP: &str = "/var/run/secrets/agents/vcs/app";

/// A file that the runner finds: which part of the pod's names its volume gets, where it comes from, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller::agent_run) struct Mounted<'a> {
    pub(in crate::controller::agent_run) part: &'static str,
    pub(in crate::controller::agent_run) folder: &'static str,
    pub(in crate::controller::agent_run) source: Source<'a>,
    pub(in crate::controller::agent_run) key: &'a str,
}

/// Where a file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::controller::agent_run) enum Source<'a> {
    Secret(&'a str),
    ConfigMap(&'a str),
}

/// The files that are mounted to sign in.
pub(in crate::controller::agent_run) fn files(vcs: &Vcs) -> Vec<Mounted<'_>> {
    let mounted = |part, folder, source, key| Mounted {
        part,
        folder,
        source,
        key,
    };
    match &vcs.auth {
        Auth::None | Auth::Incomplete(_) | Auth::Token { .. } => Vec::new(),
        Auth::App { secret, key, .. } => {
            vec![mounted("vcs-app", APP, Source::Secret(secret), key)]
        }
        Auth::Ssh {
            secret,
            key,
            known_hosts,
        } => {
            let hosts = known_hosts.as_ref().map(|(name, key)| {
                mounted("vcs-known-hosts", KNOWN_HOSTS, Source::ConfigMap(name), key)
            });
            let key = mounted("vcs-ssh", SSH, Source::Secret(secret), key);
            [key].into_iter().chain(hosts).collect()
        }
    }
}

/// The variables of the runner, in the order of the reference.
pub(in crate::controller::agent_run) fn variables(vcs: &Vcs, settings: &Settings) -> Vec<EnvVar> {
    let mut variables = sign_in(vcs);
    let spec = &vcs.host.spec;
    let nothing = VcsDefaults::default();
    let defaults = spec.defaults.as_ref().unwrap_or(&nothing);
    let Facts {
        request,
        can_write,
        can_request,
    } = facts(vcs);
    let username = username(vcs);
    let limits = settings.rate_limits.as_ref();
    let limits = limits.map(|limits| Value::Object(limits.clone()).to_string());
    let author = defaults.commit_author_name.clone();
    let email = defaults.commit_author_email.clone();
    let texts = [
        ("VCS_PROVIDER", Some(provider(spec.provider).to_owned())),
        ("VCS_PROVIDER_NAME", Some(vcs.name.clone())),
        ("VCS_API_BASE_URL", spec.api_base_url.clone()),
        ("VCS_CLONE_BASE_URL", spec.clone_base_url.clone()),
        ("VCS_WEB_BASE_URL", spec.web_base_url.clone()),
        ("VCS_REPOSITORY", Some(vcs.repository.clone())),
        ("VCS_BASE_BRANCH", vcs.base.clone()),
        ("VCS_HEAD_BRANCH", vcs.head.clone()),
        ("VCS_CLONE_PROTOCOL", spec.clone_protocol.map(protocol)),
        ("VCS_SSH_HOST", spec.ssh_host.clone()),
        ("VCS_SSH_USER", spec.ssh_user.clone()),
        ("VCS_USERNAME", username.clone()),
        ("GIT_ASKPASS_USERNAME", username),
        ("VCS_BRANCH_TEMPLATE", defaults.branch_template.clone()),
        (
            "VCS_BRANCH_CONFLICT_SUFFIX_TEMPLATE",
            defaults.branch_conflict_suffix_template.clone(),
        ),
        ("VCS_COMMIT_AUTHOR_NAME", author.clone()),
        ("VCS_COMMIT_AUTHOR_EMAIL", email.clone()),
        ("GIT_AUTHOR_NAME", author.clone()),
        ("GIT_COMMITTER_NAME", author),
        ("GIT_AUTHOR_EMAIL", email.clone()),
        ("GIT_COMMITTER_EMAIL", email),
        ("VCS_PR_TITLE_TEMPLATE", request.title_template.clone()),
        ("VCS_PR_BODY_TEMPLATE", request.body_template.clone()),
        ("VCS_PR_RATE_LIMITS", limits),
        (
            "VCS_PR_DRAFT",
            Some((request.draft == Some(true)).to_string()),
        ),
        ("VCS_WRITE_ENABLED", Some(can_write.to_string())),
        ("VCS_PULL_REQUESTS_ENABLED", Some(can_request.to_string())),
        ("VCS_MODE", Some(mode(vcs.mode).to_owned())),
    ];
    let filled = |text: &String| !text.trim().is_empty();
    variables.extend(
        texts
            .into_iter()
            .filter_map(|(name, text)| Some(plain(name, text.filter(filled)?))),
    );
    variables
}

/// How the runner signs in.
fn sign_in(vcs: &Vcs) -> Vec<EnvVar> {
    let file = |folder: &str, key: &str| format!("{folder}/{key}");
    match &vcs.auth {
        Auth::None | Auth::Incomplete(_) => vec![plain("VCS_AUTH_METHOD", "none")],
        Auth::Token { secret, key } => {
            let is_github = vcs.host.spec.provider == VcsProvider::Github;
            let names = ["VCS_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"];
            let names = names.iter().take(if is_github { 3 } else { 1 });
            let tokens = names.map(|name| stored(name, secret, key));
            [plain("VCS_AUTH_METHOD", "token")]
                .into_iter()
                .chain(tokens)
                .collect()
        }
        Auth::App {
            app,
            installation,
            ttl,
            key,
            secret: _,
        } => {
            let ttl = ttl.map(|ttl| plain("VCS_APP_TOKEN_TTL_SECONDS", ttl.to_string()));
            let all = [
                plain("VCS_AUTH_METHOD", "app"),
                plain("VCS_APP_ID", app.clone()),
                plain("VCS_APP_INSTALLATION_ID", installation.clone()),
                plain("VCS_APP_PRIVATE_KEY_PATH", file(APP, key)),
            ];
            all.into_iter().chain(ttl).collect()
        }
        Auth::Ssh {
            key, known_hosts, ..
        } => {
            let hosts = known_hosts.as_ref();
            let hosts =
                hosts.map(|(_, key)| plain("VCS_SSH_KNOWN_HOSTS_PATH", file(KNOWN_HOSTS, key)));
            let all = [
                plain("VCS_AUTH_METHOD", "ssh"),
                plain("VCS_SSH_KEY_PATH", file(SSH, key)),
            ];
            all.into_iter().chain(hosts).collect()
        }
    }
}

/// How runners sign in to NATS, if the run may use the Secret and it is complete; else nothing is said.
pub(in crate::controller::agent_run) fn nats(
    run: &AgentRun,
    found: &Found,
    nats: Option<&Nats>,
) -> Vec<EnvVar> {
    let Some(Nats {
        secret,
        username,
        password,
    }) = nats
    else {
        return Vec::new();
    };
    let entries = found.secrets.get(secret);
    let is_complete =
        entries.is_some_and(|entries| entries.contains(username) && entries.contains(password));
    if !is_complete || !rules::secret(run, found, secret).refused.is_empty() {
        return Vec::new();
    }
    vec![
        stored("NATS_USER", secret, username),
        stored("NATS_PASSWORD", secret, password),
    ]
}

/// The repository as the run's document and templates know it.
pub(in crate::controller::agent_run) fn document(vcs: &Vcs) -> Value {
    let spec = &vcs.host.spec;
    let Facts {
        request,
        can_write,
        can_request,
    } = facts(vcs);
    let all = json!({
        "provider": provider(spec.provider),
        "providerName": vcs.name,
        "apiBaseUrl": spec.api_base_url,
        "cloneBaseUrl": spec.clone_base_url,
        "webBaseUrl": spec.web_base_url,
        "cloneProtocol": spec.clone_protocol.map(protocol),
        "repository": vcs.repository,
        "baseBranch": vcs.base,
        "headBranch": vcs.head,
        "mode": mode(vcs.mode),
        "writeEnabled": can_write,
        "pullRequestsEnabled": can_request,
        "pullRequestDraft": request.draft == Some(true),
    });
    let fields = all.as_object().into_iter().flatten();
    let given = fields.filter(|(_, value)| !value.is_null());
    Value::Object(
        given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// The repository as the status shows it.
pub(in crate::controller::agent_run) fn status(vcs: &Vcs) -> VcsStatus {
    VcsStatus {
        provider: Some(vcs.name.clone()),
        repository: Some(vcs.repository.clone()),
        base_branch: vcs.base.clone(),
        head_branch: vcs.head.clone(),
        mode: Some(vcs.mode),
    }
}

/// What follows from mode, capabilities and defaults.
struct Facts {
    request: PullRequestDefaults,
    can_write: bool,
    can_request: bool,
}

fn facts(vcs: &Vcs) -> Facts {
    let spec = &vcs.host.spec;
    let defaults = spec.defaults.as_ref();
    let request = defaults.and_then(|defaults| defaults.pull_request.clone());
    let request = request.unwrap_or_default();
    let able = spec.capabilities.as_ref();
    let able = able.and_then(|able| able.pull_requests) != Some(false);
    let can_write = vcs.mode == VcsMode::ReadWrite;
    Facts {
        can_request: can_write && able && request.enabled != Some(false),
        can_write,
        request,
    }
}

/// The user that goes with the credentials; one that signs in with a token or as an app always has one.
fn username(vcs: &Vcs) -> Option<String> {
    let spec = &vcs.host.spec;
    let given = spec.auth.as_ref().and_then(|auth| auth.username.clone());
    let given = given.filter(|name| !name.trim().is_empty());
    let default = match vcs.auth {
        Auth::Token { .. } | Auth::App { .. } => Some(host_auth(spec.provider).default_username),
        Auth::None | Auth::Incomplete(_) | Auth::Ssh { .. } => None,
    };
    given.or_else(|| default.map(str::to_owned))
}

fn plain(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.into()),
        value_from: None,
    }
}

/// A variable whose value the node reads from a Secret.
fn stored(name: &str, secret: &str, key: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret.to_owned(),
                key: key.to_owned(),
                optional: None,
            }),
            ..EnvVarSource::default()
        }),
    }
}

fn protocol(protocol: CloneProtocol) -> String {
    match protocol {
        CloneProtocol::Https => "https".to_owned(),
        CloneProtocol::Ssh => "ssh".to_owned(),
    }
}

const fn provider(provider: VcsProvider) -> &'static str {
    match provider {
        VcsProvider::Github => "github",
        VcsProvider::Gitlab => "gitlab",
        VcsProvider::Bitbucket => "bitbucket",
        VcsProvider::Gitea => "gitea",
        VcsProvider::Generic => "generic",
    }
}

const fn mode(mode: VcsMode) -> &'static str {
    match mode {
        VcsMode::ReadWrite => "read-write",
        VcsMode::ReadOnly => "read-only",
        VcsMode::None => "none",
    }
}
