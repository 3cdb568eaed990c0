//! Hosts of repositories: whether their credentials are there, and whether they are of a sort to be given up.

use super::Plain;
use crate::api::condition::Lifecycle;
use crate::api::kinds::agents::version_control_provider::{
    AuthMethod, TokenType, VcsAuth, VcsProvider,
};
use crate::api::kinds::{VersionControlProvider, VersionControlProviderStatus};
use crate::api::validate::host_auth;
use crate::controller::plain::plan::Around;
use crate::controller::stand::Stand;

impl Plain for VersionControlProvider {
    fn secrets(&self) -> Vec<&str> {
        let Some(auth) = &self.spec.auth else {
            return Vec::new();
        };
        let secret = match method(auth) {
            AuthMethod::Token => auth
                .token
                .as_ref()
                .and_then(|token| token.secret_ref.as_ref()),
            AuthMethod::App => auth
                .app
                .as_ref()
                .and_then(|app| app.private_key_secret_ref.as_ref()),
            AuthMethod::Ssh => auth
                .ssh
                .as_ref()
                .and_then(|ssh| ssh.private_key_secret_ref.as_ref()),
            AuthMethod::None => None,
        };
        secret.map(|secret| &*secret.name).into_iter().collect()
    }

    fn config_maps(&self) -> Vec<&str> {
        let auth = self.spec.auth.as_ref();
        let ssh = auth.filter(|auth| method(auth) == AuthMethod::Ssh);
        let hosts = ssh.and_then(|auth| auth.ssh.as_ref()?.known_hosts_config_map_ref.as_ref());
        hosts.map(|hosts| &*hosts.name).into_iter().collect()
    }

    fn stand(&self, _: &Around) -> Stand<VersionControlProviderStatus> {
        let auth = self.spec.auth.as_ref();
        let reason = match auth.map_or(AuthMethod::None, method) {
            AuthMethod::Token | AuthMethod::App | AuthMethod::Ssh => Lifecycle::AuthReady,
            AuthMethod::None => Lifecycle::NoAuth,
        };
        let deprecated = auth.and_then(|auth| deprecated(self.spec.provider, auth));
        let warning = deprecated.map(|word| {
            let message = format!("the host advises against tokens of type {word}; use another");
            (Lifecycle::DeprecatedAuth, message)
        });
        Stand {
            reason: reason.into(),
            warning,
            ..self.valid()
        }
    }
}

/// The sort of token in use, if the host advises against it.
fn deprecated(provider: VcsProvider, auth: &VcsAuth) -> Option<&'static str> {
    let token = auth
        .token
        .as_ref()
        .filter(|_| method(auth) == AuthMethod::Token)?;
    let host = host_auth(provider);
    let sort = token.type_.or(host.default_token_type)?;
    host.deprecated.contains(&sort).then_some(match sort {
        TokenType::Pat => "pat",
        TokenType::FineGrained => "fine_grained",
        TokenType::ApiToken => "api_token",
        TokenType::AccessToken => "access_token",
    })
}

/// The way to sign in: the one that is named, else the one that is given. The rules refuse several without a name.
fn method(auth: &VcsAuth) -> AuthMethod {
    let given = if auth.token.is_some() {
        AuthMethod::Token
    } else if auth.app.is_some() {
        AuthMethod::App
    } else if auth.ssh.is_some() {
        AuthMethod::Ssh
    } else {
        AuthMethod::None
    };
    auth.method.unwrap_or(given)
}
