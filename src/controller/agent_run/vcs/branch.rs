//! The branches of a turn: where work starts from, and where it goes.

use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::Ask;
use crate::api::kinds::agents::version_control_provider::{
    VcsDefaults, VersionControlProviderSpec,
};
use crate::controller::agent_run::job::template::render;

/// Base and head. A head that another run works on gets a suffix, if the provider has one for that.
pub(super) fn of(
    ask: &Ask<'_>,
    spec: &VersionControlProviderSpec,
    repository: &str,
) -> (Option<String>, Option<String>) {
    let nothing = VcsDefaults::default();
    let defaults = spec.defaults.as_ref().unwrap_or(&nothing);
    let base = ask.metadata.get("base").cloned();
    let base = base.or_else(|| filled(defaults.base_branch.clone()?));
    let mut scope = scope(ask);
    let head = ask.metadata.get("head").cloned().or_else(|| {
        let template = defaults.branch_template.as_deref()?;
        filled(render(template, &Value::Object(scope.clone())))
    });
    let Some(head) = head else {
        return (base, None);
    };
    let Some(template) = &defaults.branch_conflict_suffix_template else {
        return (base, Some(head));
    };
    for name in ["branch", "headBranch"] {
        scope.insert(name.to_owned(), json!(head));
    }
    let other = with_suffix(&head, &render(template, &Value::Object(scope)));
    // What was said once stays: the runner of an earlier pass or step may have pushed there.
    let said = ask
        .run
        .status
        .as_ref()
        .and_then(|status| status.vcs.as_ref());
    let said = said.filter(|said| said.repository.as_deref() == Some(repository));
    let said = said.and_then(|said| said.head_branch.as_deref());
    let is_taken = match said {
        Some(said) if said == head => false,
        Some(said) if said == other => true,
        Some(_) | None => {
            let taken = (repository.to_lowercase(), head.clone());
            ask.found.heads.contains(&taken)
        }
    };
    (base, Some(if is_taken { other } else { head }))
}

/// Whether it matters which branches other runs work on.
pub(in crate::controller::agent_run) fn minds_others(spec: &VersionControlProviderSpec) -> bool {
    let defaults = spec.defaults.as_ref();
    defaults.is_some_and(|defaults| defaults.branch_conflict_suffix_template.is_some())
}

fn with_suffix(branch: &str, suffix: &str) -> String {
    let suffix = suffix.trim().trim_start_matches(['-', '/']);
    let gap = if branch.ends_with(['-', '/']) {
        ""
    } else {
        "-"
    };
    match suffix.is_empty() {
        true => branch.to_owned(),
        false => format!("{branch}{gap}{suffix}"),
    }
}

/// What templates of branches can refer to.
fn scope(ask: &Ask<'_>) -> Map<String, Value> {
    let given = ask.metadata.iter().chain(ask.parameters);
    let mut scope: Map<String, Value> = given
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let run = json!({"name": ask.run.name_any(), "namespace": ask.run.namespace()});
    scope.insert("agentRun".to_owned(), run);
    scope.insert("parameters".to_owned(), json!(ask.parameters));
    scope.insert("metadata".to_owned(), json!(ask.metadata));
    scope.insert("event".to_owned(), json!(ask.metadata));
    scope
}

fn filled(text: String) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
