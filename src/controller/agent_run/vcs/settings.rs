//! What operators can set about version control, and about how runners sign in to NATS.

use std::collections::BTreeMap;

use super::auth::{method, token_word};
use crate::api::contract::env;
use crate::api::crd::schema::FreeObject;
use crate::api::kinds::agents::version_control_provider::{
    AuthMethod, TokenType, VcsProvider, VersionControlProviderSpec,
};
use crate::api::policy::Patterns;
use crate::api::validate::host_auth;
use crate::kit::config::{self, Invalid, Reader, Setting, Value};

/// What operators can set about version control.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Whether runs use it at all.
    pub(crate) enabled: bool,
    /// Sorts of tokens to be given up.
    pub(crate) deprecated: Deprecated,
    /// Handed to runners as it is.
    pub(crate) rate_limits: Option<FreeObject>,
    /// Repositories on GitHub that runs may use; all if empty.
    pub(crate) repositories: Patterns,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            deprecated: Deprecated::default(),
            rate_limits: None,
            repositories: Patterns::default(),
        }
    }
}

/// Sorts of tokens that are advised against, for the hosts for which the operator replaces what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deprecated(Vec<(VcsProvider, Vec<TokenType>)>);

impl Deprecated {
    /// The sort of token in use, if it is one to be given up.
    pub(crate) fn advises_against(
        &self,
        spec: &VersionControlProviderSpec,
    ) -> Option<&'static str> {
        let auth = spec.auth.as_ref()?;
        let token = auth.token.as_ref();
        let token = token.filter(|_| method(auth) == AuthMethod::Token)?;
        let host = host_auth(spec.provider);
        let sort = token.type_.or(host.default_token_type)?;
        let own = self
            .0
            .iter()
            .find(|(provider, _)| *provider == spec.provider);
        let list = own.map_or(host.deprecated, |(_, list)| list);
        list.contains(&sort).then(|| token_word(sort))
    }
}

impl Value for Deprecated {
    const EXPECTED: &'static str =
        "a JSON object of hosts with lists of token types, such as {\"github\": [\"pat\"]}";

    fn parse(text: &str) -> Option<Self> {
        let given: BTreeMap<String, Vec<TokenType>> = serde_json::from_str(text).ok()?;
        let pairs = given.into_iter().map(|(host, list)| {
            let host = serde_json::from_value(serde_json::Value::String(host)).ok()?;
            Some((host, list))
        });
        pairs.collect::<Option<_>>().map(Self)
    }
}

struct JsonObject(FreeObject);

impl Value for JsonObject {
    const EXPECTED: &'static str = "a JSON object such as {\"perHour\": 10}";

    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Version control");
        let enabled = reader.value(
            Setting::<bool>::new(
                env::VCS_PROVIDERS_ENABLED,
                "Whether runs use version control; if not, all go on without",
            )
            .or("true"),
        );
        let deprecated = reader.optional(Setting::<Deprecated>::new(
            env::VCS_DEPRECATED_TOKEN_TYPES,
            "Token types that are warned of, as JSON by host; replaces what is known of each host that it names",
        ));
        let rate_limits = reader.optional(Setting::<JsonObject>::new(
            env::VCS_PR_RATE_LIMITS,
            "Limits of pull requests, a JSON object that is handed to runners as it is",
        ));
        let repositories = reader.optional(Setting::<Vec<String>>::new(
            env::GITHUB_REPOS_ALLOWED,
            "The only repositories on GitHub that runs may use, as patterns with *; all if empty",
        ));
        Ok(Self {
            enabled: enabled?,
            deprecated: deprecated?.unwrap_or_default(),
            rate_limits: rate_limits?.map(|JsonObject(limits)| limits),
            repositories: repositories?.unwrap_or_default().into_iter().collect(),
        })
    }
}

/// The Secret with which runners sign in to NATS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nats {
    pub(crate) secret: String,
    pub(crate) username: String,
    pub(crate) password: String,
}

impl Nats {
    /// The settings; none if no Secret is named.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Invalid> {
        let secret = reader.optional(Setting::<String>::new(
            env::RUNNER_NATS_AUTH_SECRET_NAME,
            "Name of the Secret with which runners sign in to NATS; given to runs that may use it and in whose namespace it is complete",
        ));
        let username = reader.value(
            Setting::<String>::new(
                env::RUNNER_NATS_AUTH_USERNAME_KEY,
                "Entry of that Secret with the user",
            )
            .or("username"),
        );
        let password = reader.value(
            Setting::<String>::new(
                env::RUNNER_NATS_AUTH_PASSWORD_KEY,
                "Entry of that Secret with the password",
            )
            .or("password"),
        );
        let (secret, username, password) = (secret?, username?, password?);
        Ok(secret.map(|secret| Self {
            secret,
            username,
            password,
        }))
    }
}
