//! ImplementationSource.

use crate::api::kinds::ImplementationSourceSpec;
use crate::api::kinds::agents::implementation_source::{TrackerProvider, TrackerScope};
use crate::api::object::cause::{Causes, Path, Reason, quoted};
use crate::api::validate::SPEC;
use crate::api::validate::shared::{check_secret_ref, check_url};

pub(in crate::api::validate) fn check(causes: &mut Causes, spec: &ImplementationSourceSpec) {
    let auth = SPEC.field("auth");
    check_secret_ref(causes, &auth.field("secretRef"), &spec.auth.secret_ref);
    if let Some(sync) = &spec.sync {
        let at = SPEC.field("sync");
        if let Some(url) = &sync.api_base_url {
            check_url(causes, &at.field("apiBaseUrl"), url, &["https", "http"]);
        }
        if let Some(secret) = &sync.secret_ref {
            check_secret_ref(causes, &at.field("secretRef"), secret);
        }
    }
    let nothing = TrackerScope::default();
    let scope = spec.scope.as_ref().unwrap_or(&nothing);
    let at = SPEC.field("scope");
    match spec.provider {
        TrackerProvider::Github => {
            check_repository(causes, &at.field("repository"), scope.repository.as_deref());
            check_absent(
                causes,
                &at,
                "github",
                &[("project", &scope.project), ("team", &scope.team)],
            );
        }
        TrackerProvider::Linear => {
            check_absent(causes, &at, "linear", &[("repository", &scope.repository)]);
        }
    }
}

/// Calls are told apart by repository, so there must be one.
fn check_repository(causes: &mut Causes, at: &Path<'_>, repository: Option<&str>) {
    let Some(repository) = repository
        .map(str::trim)
        .filter(|repository| !repository.is_empty())
    else {
        causes.add(
            at,
            Reason::MissingScope,
            "a source of provider github needs a repository; write owner/name",
        );
        return;
    };
    let parts: Vec<&str> = repository.split('/').collect();
    let is_name = |part: &&str| !part.is_empty() && !part.contains(char::is_whitespace);
    if parts.len() != 2 || !parts.iter().all(is_name) {
        let message = format!(
            "{} is not a repository; write owner/name",
            quoted(repository)
        );
        causes.add(at, Reason::MissingScope, message);
    }
}

/// A filter of another provider would be ignored, and issues would come in that nobody wanted.
fn check_absent(
    causes: &mut Causes,
    at: &Path<'_>,
    provider: &str,
    fields: &[(&str, &Option<String>)],
) {
    for (field, value) in fields {
        if value
            .as_deref()
            .is_some_and(|value| !value.trim().is_empty())
        {
            let message =
                format!("means nothing to provider {provider}; remove it or change the provider");
            causes.add(&at.field(field), Reason::ScopeConflict, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::kind::Kind;
    use crate::api::validate::shared::testing::brief;
    use serde_json::{Value, json};

    #[test]
    fn each_provider_has_its_scope() {
        let source = |provider: &str, scope: Value| json!({"provider": provider, "auth": {"secretRef": {"name": "hook"}}, "scope": scope});
        for (row, spec, expected) in [
            (
                "github",
                source("github", json!({"repository": "o/r", "labels": ["agent"]})),
                vec![],
            ),
            (
                "linear",
                source("linear", json!({"team": "ENG", "project": "p"})),
                vec![],
            ),
            (
                "linear without a scope",
                json!({"provider": "linear", "auth": {"secretRef": {"name": "h"}}}),
                vec![],
            ),
            (
                "github without a repository",
                source("github", json!({})),
                vec!["spec.scope.repository MissingScope"],
            ),
            (
                "half a repository",
                source("github", json!({"repository": "o/"})),
                vec!["spec.scope.repository MissingScope"],
            ),
            (
                "github with a team",
                source(
                    "github",
                    json!({"repository": "o/r", "team": "ENG", "project": ""}),
                ),
                vec!["spec.scope.team ScopeConflict"],
            ),
            (
                "linear with a repository",
                source("linear", json!({"repository": "o/r"})),
                vec!["spec.scope.repository ScopeConflict"],
            ),
            (
                "no secret",
                json!({"provider": "linear", "auth": {"secretRef": {"name": "", "key": " "}}}),
                vec![
                    "spec.auth.secretRef.name Required",
                    "spec.auth.secretRef.key Required",
                ],
            ),
            (
                "a tracker that cannot be read",
                json!({"provider": "linear", "auth": {"secretRef": {"name": "h"}},
                    "sync": {"enabled": true, "apiBaseUrl": "ftp://x", "secretRef": {"name": ""}}}),
                vec![
                    "spec.sync.apiBaseUrl InvalidUrl",
                    "spec.sync.secretRef.name Required",
                ],
            ),
            (
                "unknown provider",
                source("gihub", json!({})),
                vec!["spec.provider Malformed"],
            ),
        ] {
            assert_eq!(brief(Kind::ImplementationSource, spec), expected, "{row}");
        }
    }
}
