//! How a run signs in at a host: by the entries of Secrets, which are named and never read.

use super::Ask;
use crate::api::condition::{Lifecycle, Reason};
use crate::api::crd::schema::IntOrString;
use crate::api::kinds::agents::version_control_provider::{
    AuthMethod, TokenType, VcsAuth, VersionControlProviderSpec,
};
use crate::api::kinds::shared::SecretRef;
use crate::api::validate::host_auth;
use crate::controller::agent_run::rules;
use crate::controller::runs::told;

/// How a run signs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controller) enum Auth {
    /// Not at all.
    None,
    /// The block of its method lacks this.
    Incomplete(&'static str),
    /// With the token in this entry of a Secret.
    Token { secret: String, key: String },
    /// As an app, whose runner gets itself a token with the key in this entry of a Secret.
    App {
        app: String,
        installation: String,
        ttl: Option<i64>,
        secret: String,
        key: String,
    },
    /// With the key in this entry of a Secret, at hosts that an entry of a ConfigMap lists.
    Ssh {
        secret: String,
        key: String,
        known_hosts: Option<(String, String)>,
    },
}

impl Auth {
    /// Name and entry of the Secret.
    pub(in crate::controller) fn secret(&self) -> Option<(&str, &str)> {
        match self {
            Self::None | Self::Incomplete(_) => None,
            Self::Token { secret, key }
            | Self::App { secret, key, .. }
            | Self::Ssh { secret, key, .. } => Some((secret, key)),
        }
    }

    /// Name and entry of the ConfigMap with the known hosts.
    pub(in crate::controller) fn known_hosts(&self) -> Option<(&str, &str)> {
        match self {
            Self::Ssh { known_hosts, .. } => {
                let (name, key) = known_hosts.as_ref()?;
                Some((name, key))
            }
            Self::None | Self::Incomplete(_) | Self::Token { .. } | Self::App { .. } => None,
        }
    }
}

/// The way to sign in: the one that is named, else the first whose Secret is.
pub(in crate::controller) fn method(auth: &VcsAuth) -> AuthMethod {
    let token = auth
        .token
        .as_ref()
        .and_then(|token| token.secret_ref.as_ref());
    let app = auth
        .app
        .as_ref()
        .and_then(|app| app.private_key_secret_ref.as_ref());
    let ssh = auth
        .ssh
        .as_ref()
        .and_then(|ssh| ssh.private_key_secret_ref.as_ref());
    let given = if named(token).is_some() {
        AuthMethod::Token
    } else if named(app).is_some() {
        AuthMethod::App
    } else if named(ssh).is_some() {
        AuthMethod::Ssh
    } else {
        AuthMethod::None
    };
    auth.method.unwrap_or(given)
}

/// How runs sign in at this host.
pub(in crate::controller) fn auth(spec: &VersionControlProviderSpec) -> Auth {
    let Some(given) = &spec.auth else {
        return Auth::None;
    };
    match method(given) {
        AuthMethod::None => Auth::None,
        AuthMethod::Token => {
            let token = given.token.as_ref();
            match entry(token.and_then(|token| token.secret_ref.as_ref()), "token") {
                Some((secret, key)) => Auth::Token { secret, key },
                None => Auth::Incomplete("token.secretRef"),
            }
        }
        AuthMethod::App => app(given),
        AuthMethod::Ssh => {
            let ssh = given.ssh.as_ref();
            let key = ssh.and_then(|ssh| ssh.private_key_secret_ref.as_ref());
            let Some((secret, key)) = entry(key, "privateKey") else {
                return Auth::Incomplete("ssh.privateKeySecretRef");
            };
            let hosts = ssh.and_then(|ssh| ssh.known_hosts_config_map_ref.as_ref());
            Auth::Ssh {
                secret,
                key,
                known_hosts: hosts.and_then(|hosts| {
                    let name = filled(&hosts.name)?;
                    let key = hosts.key.as_deref().and_then(filled);
                    Some((name.to_owned(), key.unwrap_or("known_hosts").to_owned()))
                }),
            }
        }
    }
}

fn app(given: &VcsAuth) -> Auth {
    let app = given.app.as_ref();
    let key = app.and_then(|app| app.private_key_secret_ref.as_ref());
    let Some((secret, key)) = entry(key, "privateKey") else {
        return Auth::Incomplete("app.privateKeySecretRef");
    };
    let Some(id) = app.and_then(|app| number(app.app_id.as_ref())) else {
        return Auth::Incomplete("app.appId");
    };
    let Some(installation) = app.and_then(|app| number(app.installation_id.as_ref())) else {
        return Auth::Incomplete("app.installationId");
    };
    Auth::App {
        app: id,
        installation,
        ttl: app.and_then(|app| app.token_ttl_seconds),
        secret,
        key,
    }
}

/// Why the host cannot do what the provider asks for, if it cannot.
pub(super) fn unsupported(spec: &VersionControlProviderSpec) -> Option<String> {
    let auth = spec.auth.as_ref()?;
    let host = host_auth(spec.provider);
    let method = method(auth);
    if !host.methods.contains(&method) {
        return Some("the host does not know this way to sign in".to_owned());
    }
    let sort = auth.token.as_ref().and_then(|token| token.type_);
    let sort = sort.filter(|_| method == AuthMethod::Token)?;
    (!host.token_types.contains(&sort))
        .then(|| format!("the host does not know tokens of type {}", token_word(sort)))
}

/// What people should know: a rule that only warns, or a token that the host advises against.
pub(super) fn warning(
    ask: &Ask<'_>,
    spec: &VersionControlProviderSpec,
    auth: &Auth,
) -> Option<(Reason, String)> {
    let (secret, _) = auth.secret()?;
    let verdict = rules::secret(ask.run, ask.found, secret);
    if let Some((reason, message)) = told(&verdict.warned) {
        return Some((reason.into(), message));
    }
    let word = ask.settings.deprecated.advises_against(spec)?;
    let message = format!("the host advises against tokens of type {word}; use another");
    Some((Lifecycle::DeprecatedAuth.into(), message))
}

/// The word for a sort of token.
pub(in crate::controller) const fn token_word(sort: TokenType) -> &'static str {
    match sort {
        TokenType::Pat => "pat",
        TokenType::FineGrained => "fine_grained",
        TokenType::ApiToken => "api_token",
        TokenType::AccessToken => "access_token",
    }
}

fn named(secret: Option<&SecretRef>) -> Option<&str> {
    secret.and_then(|secret| filled(&secret.name))
}

fn entry(secret: Option<&SecretRef>, default: &str) -> Option<(String, String)> {
    let name = named(secret)?;
    let key = secret.and_then(|secret| filled(secret.key.as_deref()?));
    Some((name.to_owned(), key.unwrap_or(default).to_owned()))
}

fn number(given: Option<&IntOrString>) -> Option<String> {
    match given? {
        IntOrString::Int(number) => Some(number.to_string()),
        IntOrString::String(text) => filled(text).map(str::to_owned),
    }
}

fn filled(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}
