//! Parameters under the names that agents know them by, and what an implementation asks for.

use std::collections::BTreeMap;

use super::Lack;
use crate::api::condition::Lifecycle;
use crate::api::kinds::agents::agent_run::ContractStatus;
use crate::api::kinds::agents::implementation_spec::{ImplementationFields, WorkSourceProvider};

/// Names under which a parameter may come, and the name under which it is passed on.
const ALIASES: [(&str, &str); 16] = [
    ("repo", "repository"),
    ("issueRepository", "repository"),
    ("issue", "issueNumber"),
    ("issueId", "issueNumber"),
    ("issue_id", "issueNumber"),
    ("issue_number", "issueNumber"),
    ("title", "issueTitle"),
    ("body", "issueBody"),
    ("url", "issueUrl"),
    ("baseBranch", "base"),
    ("base_ref", "base"),
    ("baseRef", "base"),
    ("headBranch", "head"),
    ("head_ref", "head"),
    ("headRef", "head"),
    ("workflowStage", "stage"),
];

/// The parameters, without blank ones, under their own names and those that others know; gaps are filled from the
/// implementation.
pub(super) fn of(
    parameters: Option<&BTreeMap<String, String>>,
    implementation: &ImplementationFields,
) -> BTreeMap<String, String> {
    let mut map = Map::default();
    for (name, value) in parameters.into_iter().flatten() {
        map.fill(name, value);
    }
    for (from, to) in ALIASES.into_iter().chain([("codexStage", "stage")]) {
        map.alias(from, to);
    }
    let contract = implementation.contract.as_ref();
    let mappings = contract.and_then(|contract| contract.mappings.as_ref());
    for mapping in mappings.into_iter().flatten() {
        map.alias(&mapping.from, &mapping.to);
    }
    if let Some(source) = &implementation.source {
        let id = source.external_id.as_deref().unwrap_or_default();
        if source.provider == WorkSourceProvider::Github
            && let Some((repository, number)) = id.split_once('#')
        {
            map.fill("repository", repository);
            map.fill("issueNumber", number);
        }
        map.fill("issueUrl", source.url.as_deref().unwrap_or_default());
        map.fill("url", source.url.as_deref().unwrap_or_default());
    }
    let summary = implementation.summary.as_deref().unwrap_or_default();
    map.fill("issueTitle", summary);
    map.fill("issueBody", &implementation.text);
    map.fill("prompt", &implementation.text);
    map.fill("prompt", summary);
    map.0
}

#[derive(Default)]
struct Map(BTreeMap<String, String>);

impl Map {
    /// Sets a name that is not set yet, unless to nothing.
    fn fill(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if !value.is_empty() && !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    fn alias(&mut self, from: &str, to: &str) {
        if let Some(value) = self.0.get(from).cloned() {
            self.fill(to, &value);
        }
    }
}

/// Whether everything is there that the implementation asks for.
pub(super) fn check(
    implementation: &ImplementationFields,
    metadata: &BTreeMap<String, String>,
) -> Result<(), Lack> {
    let contract = implementation.contract.as_ref();
    let required = contract.and_then(|contract| contract.required_keys.as_ref());
    let mut required: Vec<String> = required
        .into_iter()
        .flatten()
        .map(|key| key.trim().to_owned())
        .collect();
    required.sort_unstable();
    required.dedup();
    let missing: Vec<String> = required
        .iter()
        .filter(|key| !metadata.contains_key(*key))
        .cloned()
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(", ");
    Err(Lack::Wrong {
        reason: Lifecycle::MissingRequiredMetadata.into(),
        message: format!(
            "the implementation asks for parameters that the run does not give: {names}; add them to spec.parameters of a new run"
        ),
        contract: Some(ContractStatus {
            required_keys: Some(required),
            missing_keys: Some(missing),
        }),
    })
}
