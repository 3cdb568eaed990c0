//! The repository that a turn works on, with which rights and how it signs in. Pure: thirteen questions in a fixed order,
//! each of which can end the run, let it go on without version control, or make it wait for what may come late.
//!
//! [`auth`] is about signing in, [`branch`] about branches, [`shown`] about what the runner and the status are told.

mod auth;
mod branch;
mod settings;
mod shown;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;

use super::rules;
use super::turn;
use super::work::{Found, Lack};
use crate::api::condition::{Hindrance, Lifecycle, Reason};
use crate::api::kinds::agents::agent_run::VcsMode;
use crate::api::kinds::agents::implementation_spec::ImplementationFields;
use crate::api::kinds::agents::version_control_provider::{
    VcsProvider, VersionControlProviderSpec,
};
use crate::api::kinds::{Agent, AgentRun, VersionControlProvider};
use crate::api::policy::Patterns;
use crate::controller::runs::told;

pub(in crate::controller) use auth::{Auth, auth};
pub(super) use branch::minds_others;
pub(crate) use settings::{Deprecated, Nats, Settings};
pub(super) use shown::{Source, document, files, nats, status, variables};

/// What is asked for a turn.
pub(super) struct Ask<'a> {
    pub(super) run: &'a AgentRun,
    pub(super) agent: &'a Agent,
    pub(super) implementation: &'a ImplementationFields,
    pub(super) parameters: &'a BTreeMap<String, String>,
    pub(super) metadata: &'a BTreeMap<String, String>,
    pub(super) found: &'a Found,
    pub(super) settings: &'a Settings,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Resolved {
    /// Nobody asks for version control.
    Unasked,
    /// The turn goes on without.
    Skipped { reason: Reason, message: String },
    /// The turn works on a repository.
    Use(Box<Vcs>),
}

/// A repository that a turn works on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Vcs {
    /// Name of the VersionControlProvider.
    pub(super) name: String,
    pub(super) host: Arc<VersionControlProvider>,
    pub(super) repository: String,
    pub(super) base: Option<String>,
    pub(super) head: Option<String>,
    pub(super) mode: VcsMode,
    pub(super) auth: Auth,
    /// What people should know about it.
    pub(super) warning: Option<(Reason, String)>,
}

impl Resolved {
    /// The repository, if there is one.
    pub(super) fn used(&self) -> Option<&Vcs> {
        match self {
            Self::Use(vcs) => Some(vcs),
            Self::Unasked | Self::Skipped { .. } => None,
        }
    }
}

/// Names of all VersionControlProviders that turns of a run may use.
pub(super) fn names<'a>(run: &'a AgentRun, found: &'a Found) -> BTreeSet<&'a str> {
    let of_run = run.spec.vcs_ref.as_ref();
    if let Some(own) = of_run {
        return BTreeSet::from([own.name.trim()]);
    }
    let inline = run.spec.implementation.iter();
    let of_steps = turn::steps(run)
        .iter()
        .filter_map(|step| step.implementation.as_ref());
    let inline = inline.chain(of_steps).map(|given| &given.inline);
    let stored = found.implementations.values().map(|stored| &stored.spec);
    let work = inline
        .chain(stored)
        .filter_map(|work| work.vcs_ref.as_ref());
    let agent = found
        .agent
        .as_ref()
        .and_then(|agent| agent.spec.vcs_ref.as_ref());
    let names = work.chain(agent).map(|named| named.name.trim());
    names.filter(|name| !name.is_empty()).collect()
}

/// The name of the provider of a turn: what the run says, then its work, then its agent.
fn name<'a>(ask: &Ask<'a>) -> Option<&'a str> {
    let named = ask.run.spec.vcs_ref.as_ref();
    let named = named.or(ask.implementation.vcs_ref.as_ref());
    let named = named.or(ask.agent.spec.vcs_ref.as_ref())?;
    Some(named.name.trim()).filter(|name| !name.is_empty())
}

/// Answers the questions. The numbers are those of the table in `docs/version-control.md`.
///
/// # Errors
///
/// When the run needs version control and cannot have it, or when something may still come.
pub(super) fn resolve(ask: &Ask<'_>) -> Result<Resolved, Lack> {
    match answer(ask) {
        Ok(vcs) => Ok(Resolved::Use(Box::new(vcs))),
        Err(turned) => turned,
    }
}

/// What comes of a question that was not answered well.
type Turned = Result<Resolved, Lack>;

fn answer(ask: &Ask<'_>) -> Result<Vcs, Turned> {
    let policy = ask.run.spec.vcs_policy.clone().unwrap_or_default();
    let mode = policy.mode.unwrap_or(VcsMode::ReadWrite);
    let asked = Asked {
        is_required: policy.required == Some(true) && mode != VcsMode::None,
        is_late: ask.found.is_late,
        mode,
    };
    let (name, host, repository) = place(ask, asked)?;
    let auth = auth(&host.spec);
    let mode = rights(ask, host, &auth, asked)?;
    let (base, head) = branch::of(ask, &host.spec, repository);
    Ok(Vcs {
        name: name.to_owned(),
        host: Arc::clone(host),
        repository: repository.to_owned(),
        base,
        head,
        mode,
        warning: auth::warning(ask, &host.spec, &auth),
        auth,
    })
}

/// Name and object of the provider, and the repository.
type Place<'a> = (&'a str, &'a Arc<VersionControlProvider>, &'a str);

/// Where the repository is: the first six questions.
fn place<'a>(ask: &Ask<'a>, asked: Asked) -> Result<Place<'a>, Turned> {
    // 1
    if !ask.settings.enabled {
        let message = "the operator has switched version control off";
        return Err(skip(Lifecycle::VcsProvidersDisabled, message));
    }
    // 2
    let Some(name) = name(ask) else {
        let message = "neither the run nor its work nor its agent names a VersionControlProvider";
        return Err(match asked.is_required {
            true => Err(wrong(Lifecycle::MissingVcsProvider, message)),
            false => Ok(Resolved::Unasked),
        });
    };
    // 3
    let Some(host) = ask.found.hosts.get(name) else {
        let message = format!("VersionControlProvider {name} does not exist");
        let reason = Hindrance::MissingVcsProvider;
        return Err(asked.awaits(reason, reason.word(), message));
    };
    // 4
    let Some(repository) = ask.metadata.get("repository") else {
        let message = "no repository is given; set parameter repository";
        return Err(asked.without(Lifecycle::MissingRepository, message));
    };
    // 5
    if let Some(message) = not_allowed(&host.spec, ask.settings, repository) {
        return Err(match asked.mode {
            VcsMode::ReadWrite | VcsMode::ReadOnly => {
                Err(wrong(Lifecycle::VcsPolicyDenied, message))
            }
            VcsMode::None => skip(Lifecycle::VcsPolicyDenied, message),
        });
    }
    // 6
    if asked.mode == VcsMode::None {
        let message = "the run asks for no version control";
        return Err(skip(Lifecycle::VcsDisabled, message));
    }
    Ok((name, host, repository))
}

/// What may be done there: the other seven.
fn rights(
    ask: &Ask<'_>,
    host: &VersionControlProvider,
    auth: &Auth,
    asked: Asked,
) -> Result<VcsMode, Turned> {
    let name = host.name_any();
    // 7
    let able = capable(&host.spec, asked.mode);
    if able != asked.mode && asked.is_required {
        let message = format!("VersionControlProvider {name} allows less than the run needs");
        return Err(Err(wrong(Lifecycle::VcsCapabilityDenied, message)));
    }
    // 8 to 11
    if let Some(turned) = sign_in(ask, host, auth, asked) {
        return Err(turned);
    }
    // 12
    let mode = match (able, auth) {
        (VcsMode::ReadWrite, Auth::None) if asked.is_required => {
            let message = format!("VersionControlProvider {name} has no credentials to write with");
            return Err(Err(wrong(Lifecycle::VcsAuthUnavailable, message)));
        }
        (VcsMode::ReadWrite, Auth::None) => VcsMode::ReadOnly,
        (able, _) => able,
    };
    // 13
    if mode == VcsMode::None {
        let message = format!("VersionControlProvider {name} allows neither to read nor to write");
        return Err(skip(Lifecycle::VcsDisabled, message));
    }
    Ok(mode)
}

/// What the run wants of a question that cannot be answered well.
#[derive(Clone, Copy)]
struct Asked {
    is_required: bool,
    is_late: bool,
    mode: VcsMode,
}

impl Asked {
    /// The run ends, or goes on without.
    fn without(self, reason: impl Into<Reason>, message: impl Into<String>) -> Turned {
        match self.is_required {
            true => Err(wrong(reason, message)),
            false => skip(reason, message),
        }
    }

    /// The same, once what is missing had time to come.
    fn awaits(
        self,
        until: Hindrance,
        reason: Lifecycle,
        message: String,
    ) -> Result<Resolved, Lack> {
        match self.is_late {
            true => self.without(reason, message),
            false => Err(Lack::Waits {
                reason: until,
                message: format!("{message} yet"),
            }),
        }
    }
}

fn skip(reason: impl Into<Reason>, message: impl Into<String>) -> Result<Resolved, Lack> {
    Ok(Resolved::Skipped {
        reason: reason.into(),
        message: message.into(),
    })
}

fn wrong(reason: impl Into<Reason>, message: impl Into<String>) -> Lack {
    Lack::Wrong {
        reason: reason.into(),
        message: message.into(),
        contract: None,
    }
}

/// Why a repository may not be used, if it may not. Case counts, as the provider wrote it.
fn not_allowed(
    spec: &VersionControlProviderSpec,
    settings: &Settings,
    repository: &str,
) -> Option<String> {
    let list = |given: Option<&Vec<String>>| -> Patterns {
        let given = given.into_iter().flatten();
        given.map(|pattern| pattern.trim().to_owned()).collect()
    };
    let policy = spec.repository_policy.as_ref();
    let denied = list(policy.and_then(|policy| policy.deny.as_ref()));
    let allowed = list(policy.and_then(|policy| policy.allow.as_ref()));
    let is_off = |list: &Patterns| !list.is_empty() && list.covering(repository).is_none();
    if denied.covering(repository).is_some() || is_off(&allowed) {
        return Some(format!(
            "the VersionControlProvider does not allow repository {repository}"
        ));
    }
    let is_github = spec.provider == VcsProvider::Github;
    (is_github && is_off(&settings.repositories))
        .then(|| format!("the operator does not allow repository {repository}"))
}

/// What the provider lets a run do at most, of what it asks for.
fn capable(spec: &VersionControlProviderSpec, mode: VcsMode) -> VcsMode {
    let able = spec.capabilities.clone().unwrap_or_default();
    let mode = match mode {
        VcsMode::ReadWrite if able.write == Some(false) => VcsMode::ReadOnly,
        VcsMode::ReadWrite | VcsMode::ReadOnly | VcsMode::None => mode,
    };
    match mode {
        VcsMode::ReadOnly if able.read == Some(false) => VcsMode::None,
        VcsMode::ReadWrite | VcsMode::ReadOnly | VcsMode::None => mode,
    }
}

/// Whether the turn can sign in; if not, what follows.
fn sign_in(
    ask: &Ask<'_>,
    host: &VersionControlProvider,
    auth: &Auth,
    asked: Asked,
) -> Option<Turned> {
    // 8
    if let Some(message) = auth::unsupported(&host.spec) {
        return Some(asked.without(Lifecycle::UnsupportedVcsAuth, message));
    }
    // 9
    if let Auth::Incomplete(what) = auth {
        let message = format!("the authentication of the VersionControlProvider lacks {what}");
        return Some(asked.without(Lifecycle::MissingVcsAuth, message));
    }
    let (secret, key) = auth.secret()?;
    // 10
    let verdict = rules::secret(ask.run, ask.found, secret);
    if let Some((reason, message)) = told(&verdict.refused) {
        return Some(asked.without(reason, message));
    }
    // 11
    let absent =
        |until, message: String| Some(asked.awaits(until, Lifecycle::VcsAuthUnavailable, message));
    match ask.found.secrets.get(secret) {
        None => {
            let message = format!("Secret {secret} of the VersionControlProvider does not exist");
            return absent(Hindrance::SecretNotFound, message);
        }
        Some(entries) if !entries.contains(key) => {
            let message = format!("entry {key} of Secret {secret} does not exist");
            return absent(Hindrance::SecretKeyMissing, message);
        }
        Some(_) => {}
    }
    let (map, key) = auth.known_hosts()?;
    match ask.found.config_maps.get(map) {
        None => {
            let message = format!("ConfigMap {map} of the VersionControlProvider does not exist");
            absent(Hindrance::ConfigMapNotFound, message)
        }
        Some(entries) if !entries.contains(key) => {
            let message = format!("entry {key} of ConfigMap {map} does not exist");
            absent(Hindrance::ConfigMapKeyMissing, message)
        }
        Some(_) => None,
    }
}
