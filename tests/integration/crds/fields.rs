//! The fields that operators already use: each is there, unchanged, and nothing is demanded that was not before.
//!
//! Upstream is the API whose manifests exist in the wild; `tests/fixtures/upstream-fields.tsv` lists its fields, one per line.

use super::schema::{self, Field};
use agents::api::kind::Kind;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use support::fixtures::repository;

/// The fields of `upstream-fields.tsv`, by definition and path.
pub(crate) fn upstream() -> BTreeMap<(String, String), Field> {
    let text = fs::read_to_string(repository().join("tests/fixtures/upstream-fields.tsv")).unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            let [crd, path, type_, format, required, values, other] = columns[..] else {
                panic!("a line has seven columns: {line}");
            };
            let set = |text: &str, separator: &str| -> BTreeSet<String> {
                text.split(separator)
                    .filter(|part| !part.is_empty())
                    .map(|part| part.replace("default=False", "default=false"))
                    .collect()
            };
            let mut limits = set(other, "; ");
            // The list leaves this limit out; the text beside it has it.
            if path.ends_with("parameters") && crd == "agentruns.agents.proompteng.ai" {
                limits.insert("maxProperties=100".to_owned());
            }
            let field = Field {
                type_: type_.to_owned(),
                format: format.to_owned(),
                required: required == "yes",
                values: set(values, "|"),
                limits,
            };
            ((crd.to_owned(), path.to_owned()), field)
        })
        .collect()
}

/// The fields of `crds/`, by definition and path.
fn ours() -> BTreeMap<(String, String), Field> {
    Kind::ALL
        .into_iter()
        .flat_map(|kind| {
            let crd = format!("{}.{}", kind.plural(), kind.group());
            schema::fields(&schema::of(kind))
                .into_iter()
                .map(move |(path, field)| ((crd.clone(), path), field))
        })
        .collect()
}

#[test]
fn every_upstream_field_is_there_with_the_same_type_values_and_limits() {
    let (upstream, ours) = (upstream(), ours());
    assert_eq!(upstream.len(), 646);
    let differences: Vec<_> = upstream
        .iter()
        .filter(|(path, field)| ours.get(path) != Some(field))
        .map(|(path, field)| {
            format!(
                "{path:?}\n  upstream {field:?}\n  ours     {:?}",
                ours.get(path)
            )
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn what_is_added_is_optional_and_is_exactly_this() {
    let upstream = upstream();
    let added: BTreeMap<_, _> = ours()
        .into_iter()
        .filter(|(path, _)| !upstream.contains_key(path))
        .collect();
    // Within something that is added and may be left out, a part may be demanded.
    let is_demanded = |(crd, path): &(String, String)| {
        let whole = path.rsplit_once('.').map(|(whole, _)| whole.to_owned());
        let whole = whole.and_then(|whole| added.get(&(crd.clone(), whole)));
        whole.is_none_or(|whole| whole.required)
    };
    let required = added.iter().filter(|(_, field)| field.required);
    let demanded: Vec<_> = required.filter(|(path, _)| is_demanded(path)).collect();
    assert!(demanded.is_empty(), "{demanded:?}");
    let paths: Vec<_> = added
        .keys()
        .map(|(crd, path)| format!("{} {path}", crd.split('.').next().unwrap_or_default()))
        .collect();
    assert_eq!(
        paths,
        [
            "agentruns spec.cancel",
            "agentruns spec.workflow.steps[].idempotent",
            "agentruns spec.workflow.steps[].loop",
            "agentruns spec.workflow.steps[].loop.maxIterations",
            "agentruns status.jobRef",
            "agentruns status.jobRef.deletion",
            "agentruns status.jobRef.deletion.deletedAt",
            "agentruns status.jobRef.deletion.finalizers",
            "agentruns status.jobRef.deletion.finalizers[]",
            "agentruns status.jobRef.missing",
            "agentruns status.jobRef.missing.actor",
            "agentruns status.jobRef.missing.certainty",
            "agentruns status.jobRef.missing.class",
            "agentruns status.jobRef.missing.noticedAt",
            "agentruns status.jobRef.missing.recovered",
            "agentruns status.jobRef.name",
            "agentruns status.jobRef.namespace",
            "agentruns status.jobRef.uid",
            "agentruns status.workflow.steps[].iteration",
            "agentruns status.workflow.steps[].jobRef.deletion",
            "agentruns status.workflow.steps[].jobRef.deletion.deletedAt",
            "agentruns status.workflow.steps[].jobRef.deletion.finalizers",
            "agentruns status.workflow.steps[].jobRef.deletion.finalizers[]",
            "agentruns status.workflow.steps[].jobRef.missing",
            "agentruns status.workflow.steps[].jobRef.missing.actor",
            "agentruns status.workflow.steps[].jobRef.missing.certainty",
            "agentruns status.workflow.steps[].jobRef.missing.class",
            "agentruns status.workflow.steps[].jobRef.missing.noticedAt",
            "agentruns status.workflow.steps[].jobRef.missing.recovered",
            "approvalpolicies status.conditions[].observedGeneration",
            "artifacts status.conditions[].observedGeneration",
            "budgets status.conditions[].observedGeneration",
            "implementationsources spec.sync",
            "implementationsources spec.sync.apiBaseUrl",
            "implementationsources spec.sync.enabled",
            "implementationsources spec.sync.secretRef",
            "implementationsources spec.sync.secretRef.key",
            "implementationsources spec.sync.secretRef.name",
            "orchestrationruns spec.cancel",
            "orchestrationruns status.conditions[].observedGeneration",
            "orchestrations spec.steps[].idempotent",
            "orchestrations status.conditions[].observedGeneration",
            "schedules spec.concurrencyPolicy",
            "schedules spec.startingDeadlineSeconds",
            "schedules spec.suspend",
            "schedules status.conditions[].observedGeneration",
            "schedules status.lastScheduleTime",
            "secretbindings status.conditions[].observedGeneration",
            "signaldeliveries status.conditions[].observedGeneration",
            "signals status.conditions[].observedGeneration",
            "toolruns spec.cancel",
            "toolruns status.conditions[].observedGeneration",
            "toolruns status.jobRef",
            "toolruns status.jobRef.deletion",
            "toolruns status.jobRef.deletion.deletedAt",
            "toolruns status.jobRef.deletion.finalizers",
            "toolruns status.jobRef.deletion.finalizers[]",
            "toolruns status.jobRef.missing",
            "toolruns status.jobRef.missing.actor",
            "toolruns status.jobRef.missing.certainty",
            "toolruns status.jobRef.missing.class",
            "toolruns status.jobRef.missing.noticedAt",
            "toolruns status.jobRef.missing.recovered",
            "toolruns status.jobRef.name",
            "toolruns status.jobRef.namespace",
            "toolruns status.jobRef.uid",
            "tools status.conditions[].observedGeneration",
            "workspaces status.conditions[].observedGeneration",
        ]
    );
}
