//! VersionControlProvider, with the table of what each host supports.

use crate::api::crd::schema::IntOrString;
use crate::api::kinds::VersionControlProviderSpec;
use crate::api::kinds::agents::version_control_provider::{
    AppAuth, AuthMethod, RepositoryPolicy, SshAuth, TokenAuth, TokenType, VcsAuth, VcsProvider,
};
use crate::api::kinds::shared::SecretRef;
use crate::api::object::cause::{Causes, Path, Reason, listed, quoted};
use crate::api::text::names::Form;
use crate::api::validate::SPEC;
use crate::api::validate::shared::{
    check_name, check_not_blank, check_not_negative, check_secret_ref, check_url,
};

/// What a host supports and assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAuth {
    /// Ways to sign in.
    pub methods: &'static [AuthMethod],
    /// Sorts of tokens.
    pub token_types: &'static [TokenType],
    /// Sort of token if none is named.
    pub default_token_type: Option<TokenType>,
    /// User name that goes with a token if none is named.
    pub default_username: &'static str,
    /// Sorts of tokens that the host advises against.
    pub deprecated: &'static [TokenType],
}

/// The table of hosts.
pub const fn host_auth(provider: VcsProvider) -> HostAuth {
    use AuthMethod::{App, None as Nothing, Ssh, Token};
    use TokenType::{AccessToken, ApiToken, FineGrained, Pat};
    const COMMON: &[AuthMethod] = &[Token, Ssh, Nothing];
    match provider {
        VcsProvider::Github => HostAuth {
            methods: &[Token, App, Ssh, Nothing],
            token_types: &[Pat, FineGrained, AccessToken],
            default_token_type: Some(FineGrained),
            default_username: "x-access-token",
            deprecated: &[Pat],
        },
        VcsProvider::Gitlab => HostAuth {
            methods: COMMON,
            token_types: &[Pat, AccessToken],
            default_token_type: Some(AccessToken),
            default_username: "oauth2",
            deprecated: &[],
        },
        VcsProvider::Bitbucket => HostAuth {
            methods: COMMON,
            token_types: &[AccessToken],
            default_token_type: Some(AccessToken),
            default_username: "x-token-auth",
            deprecated: &[],
        },
        VcsProvider::Gitea => HostAuth {
            methods: COMMON,
            token_types: &[ApiToken, AccessToken],
            default_token_type: Some(ApiToken),
            default_username: "git",
            deprecated: &[],
        },
        VcsProvider::Generic => HostAuth {
            methods: COMMON,
            token_types: &[Pat, FineGrained, ApiToken, AccessToken],
            default_token_type: None,
            default_username: "git",
            deprecated: &[],
        },
    }
}

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &VersionControlProviderSpec) {
    for (field, url, schemes) in [
        ("apiBaseUrl", &spec.api_base_url, &["https", "http"][..]),
        (
            "cloneBaseUrl",
            &spec.clone_base_url,
            &["https", "http", "ssh"],
        ),
        ("webBaseUrl", &spec.web_base_url, &["https", "http"]),
    ] {
        if let Some(url) = url {
            check_url(causes, &SPEC.field(field), url, schemes);
        }
    }
    if let Some(auth) = &spec.auth {
        check_auth(causes, &SPEC.field("auth"), spec.provider, auth);
    }
    if let Some(policy) = &spec.repository_policy {
        check_repositories(causes, &SPEC.field("repositoryPolicy"), policy);
    }
}

fn check_auth(causes: &mut Causes, at: &Path<'_>, provider: VcsProvider, auth: &VcsAuth) {
    let given = given_blocks(auth);
    let method = match (auth.method, given.as_slice()) {
        (Some(method), _) => method,
        (None, []) => AuthMethod::None,
        (None, [only]) => *only,
        (None, several) => {
            let blocks: Vec<&str> = several.iter().copied().map(method_word).collect();
            let message = format!(
                "several ways to sign in are given: {}; say which one with method",
                listed(&blocks)
            );
            causes.add(&at.field("method"), Reason::AuthConflict, message);
            return;
        }
    };
    let host = host_auth(provider);
    if !host.methods.contains(&method) {
        let allowed: Vec<&str> = host.methods.iter().copied().map(method_word).collect();
        let message = format!(
            "this provider has no {} authentication; allowed: {}",
            quoted(method_word(method)),
            listed(&allowed)
        );
        causes.add(&at.field("method"), Reason::UnsupportedAuth, message);
        return;
    }
    match method {
        AuthMethod::Token => check_token(causes, &at.field("token"), &host, auth.token.as_ref()),
        AuthMethod::App => check_app(causes, &at.field("app"), auth.app.as_ref()),
        AuthMethod::Ssh => check_ssh(causes, &at.field("ssh"), auth.ssh.as_ref()),
        AuthMethod::None => {
            for block in given {
                let word = method_word(block);
                let message = format!(
                    "method is \"none\", but this block is given; remove it or use method {}",
                    quoted(word)
                );
                causes.add(&at.field(word), Reason::AuthConflict, message);
            }
        }
    }
}

fn given_blocks(auth: &VcsAuth) -> Vec<AuthMethod> {
    [
        (AuthMethod::Token, auth.token.is_some()),
        (AuthMethod::App, auth.app.is_some()),
        (AuthMethod::Ssh, auth.ssh.is_some()),
    ]
    .into_iter()
    .filter_map(|(method, given)| given.then_some(method))
    .collect()
}

fn check_token(causes: &mut Causes, at: &Path<'_>, host: &HostAuth, token: Option<&TokenAuth>) {
    let secret = token.and_then(|token| token.secret_ref.as_ref());
    check_secret(
        causes,
        &at.field("secretRef"),
        secret,
        Reason::MissingSecretRef,
    );
    if let Some(type_) = token.and_then(|token| token.type_)
        && !host.token_types.contains(&type_)
    {
        let allowed: Vec<&str> = host.token_types.iter().copied().map(token_word).collect();
        let message = format!(
            "this provider has no {} tokens; allowed: {}",
            quoted(token_word(type_)),
            listed(&allowed)
        );
        causes.add(&at.field("type"), Reason::UnsupportedAuth, message);
    }
}

fn check_app(causes: &mut Causes, at: &Path<'_>, app: Option<&AppAuth>) {
    for (field, id) in [
        ("appId", app.and_then(|app| app.app_id.as_ref())),
        (
            "installationId",
            app.and_then(|app| app.installation_id.as_ref()),
        ),
    ] {
        let blank = match id {
            None => true,
            Some(IntOrString::Int(number)) => *number <= 0,
            Some(IntOrString::String(text)) => text.trim().is_empty(),
        };
        if blank {
            let message =
                format!("method \"app\" needs {field}; copy it from the settings of the app");
            causes.add(&at.field(field), Reason::MissingAppAuth, message);
        }
    }
    let key = app.and_then(|app| app.private_key_secret_ref.as_ref());
    check_secret(
        causes,
        &at.field("privateKeySecretRef"),
        key,
        Reason::MissingAppAuth,
    );
    let ttl = app.and_then(|app| app.token_ttl_seconds);
    check_not_negative(causes, &at.field("tokenTtlSeconds"), ttl);
}

fn check_ssh(causes: &mut Causes, at: &Path<'_>, ssh: Option<&SshAuth>) {
    let key = ssh.and_then(|ssh| ssh.private_key_secret_ref.as_ref());
    check_secret(
        causes,
        &at.field("privateKeySecretRef"),
        key,
        Reason::MissingSecretRef,
    );
    if let Some(hosts) = ssh.and_then(|ssh| ssh.known_hosts_config_map_ref.as_ref()) {
        let at = at.field("knownHostsConfigMapRef");
        check_name(causes, &at.field("name"), &hosts.name, Form::DnsSubdomain);
        check_not_blank(causes, &at.field("key"), hosts.key.as_deref());
    }
}

fn check_secret(causes: &mut Causes, at: &Path<'_>, secret: Option<&SecretRef>, missing: Reason) {
    match secret {
        Some(secret) if !secret.name.trim().is_empty() => check_secret_ref(causes, at, secret),
        Some(_) | None => causes.add(
            at,
            missing,
            "the way to sign in needs a Secret; name it here",
        ),
    }
}

fn check_repositories(causes: &mut Causes, at: &Path<'_>, policy: &RepositoryPolicy) {
    for (field, patterns) in [("allow", &policy.allow), ("deny", &policy.deny)] {
        let list = at.field(field);
        for (index, pattern) in patterns.iter().flatten().enumerate() {
            check_not_blank(causes, &list.index(index), Some(pattern));
        }
    }
}

/// The word of a method; its block has the same name.
pub const fn method_word(method: AuthMethod) -> &'static str {
    match method {
        AuthMethod::Token => "token",
        AuthMethod::App => "app",
        AuthMethod::Ssh => "ssh",
        AuthMethod::None => "none",
    }
}

const fn token_word(type_: TokenType) -> &'static str {
    match type_ {
        TokenType::Pat => "pat",
        TokenType::FineGrained => "fine_grained",
        TokenType::ApiToken => "api_token",
        TokenType::AccessToken => "access_token",
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::{brief, faults, with_spec};
    use serde_json::{Value, json};

    fn provider(provider: &str, auth: Value) -> Value {
        json!({"provider": provider, "auth": auth})
    }

    fn token(type_: &str) -> Value {
        json!({"method": "token", "token": {"secretRef": {"name": "t"}, "type": type_}})
    }

    #[test]
    fn each_host_takes_the_tokens_of_the_table() {
        let all = ["pat", "fine_grained", "api_token", "access_token"];
        for (host, allowed) in [
            ("github", &["pat", "fine_grained", "access_token"][..]),
            ("gitlab", &["pat", "access_token"]),
            ("bitbucket", &["access_token"]),
            ("gitea", &["api_token", "access_token"]),
            ("generic", &all),
        ] {
            for type_ in all {
                let expected: &[&str] = match allowed.contains(&type_) {
                    true => &[],
                    false => &["spec.auth.token.type UnsupportedAuth"],
                };
                let found = brief(Kind::VersionControlProvider, provider(host, token(type_)));
                assert_eq!(found, expected, "{host} {type_}");
            }
        }
    }

    #[test]
    fn apps_are_for_github_only() {
        let app = json!({"method": "app", "app": {
            "appId": 1, "installationId": "2", "privateKeySecretRef": {"name": "k"},
        }});
        for host in ["github", "gitlab", "bitbucket", "gitea", "generic"] {
            let expected: &[&str] = match host {
                "github" => &[],
                _ => &["spec.auth.method UnsupportedAuth"],
            };
            let found = brief(Kind::VersionControlProvider, provider(host, app.clone()));
            assert_eq!(found, expected, "{host}");
        }
    }

    #[test]
    fn each_fault_of_a_sign_in_is_named() {
        for (row, auth, expected) in [
            ("none at all", json!({}), vec![]),
            ("none", json!({"method": "none"}), vec![]),
            (
                "inferred token",
                json!({"token": {"secretRef": {"name": "t"}}}),
                vec![],
            ),
            (
                "ssh with hosts",
                json!({"method": "ssh", "ssh": {
                    "privateKeySecretRef": {"name": "k"}, "knownHostsConfigMapRef": {"name": "h"},
                }}),
                vec![],
            ),
            (
                "ssh for code and a token beside it",
                json!({"method": "ssh", "ssh": {"privateKeySecretRef": {"name": "k"}}, "token": {"secretRef": {"name": "t"}}}),
                vec![],
            ),
            (
                "token without its block",
                json!({"method": "token"}),
                vec!["spec.auth.token.secretRef MissingSecretRef"],
            ),
            (
                "token without a secret",
                json!({"token": {"type": "pat"}}),
                vec!["spec.auth.token.secretRef MissingSecretRef"],
            ),
            (
                "ssh without a key",
                json!({"method": "ssh", "ssh": {}}),
                vec!["spec.auth.ssh.privateKeySecretRef MissingSecretRef"],
            ),
            (
                "an empty app",
                json!({"method": "app", "app": {"appId": " ", "tokenTtlSeconds": -1}}),
                vec![
                    "spec.auth.app.appId MissingAppAuth",
                    "spec.auth.app.installationId MissingAppAuth",
                    "spec.auth.app.privateKeySecretRef MissingAppAuth",
                    "spec.auth.app.tokenTtlSeconds OutOfRange",
                ],
            ),
            (
                "none with a block",
                json!({"method": "none", "token": {"secretRef": {"name": "t"}}}),
                vec!["spec.auth.token AuthConflict"],
            ),
            (
                "two blocks and no word which",
                json!({"token": {"secretRef": {"name": "t"}}, "ssh": {"privateKeySecretRef": {"name": "k"}}}),
                vec!["spec.auth.method AuthConflict"],
            ),
        ] {
            let found = brief(Kind::VersionControlProvider, provider("github", auth));
            assert_eq!(found, expected, "{row}");
        }
    }

    #[test]
    fn addresses_and_patterns_are_checked() {
        let spec = json!({
            "provider": "generic", "apiBaseUrl": "api.example.com", "cloneBaseUrl": "ssh://git@example.com",
            "webBaseUrl": "https://", "repositoryPolicy": {"allow": ["o/*", ""], "deny": [" "]},
        });
        assert_eq!(
            brief(Kind::VersionControlProvider, spec),
            [
                "spec.apiBaseUrl InvalidUrl",
                "spec.webBaseUrl InvalidUrl",
                "spec.repositoryPolicy.allow[1] Required",
                "spec.repositoryPolicy.deny[0] Required",
            ]
        );
    }

    #[test]
    fn a_refusal_says_what_the_host_takes() {
        assert_eq!(
            faults(
                Kind::VersionControlProvider,
                &with_spec(provider("gitea", token("pat")))
            ),
            [
                "spec.auth.token.type UnsupportedAuth: this provider has no \"pat\" tokens; allowed: \"api_token\", \"access_token\""
            ]
        );
    }
}
