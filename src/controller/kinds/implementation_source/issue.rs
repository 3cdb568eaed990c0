//! What becomes of an issue: the ImplementationSpec that it is, or how one must change to be it. Pure.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde_json::{Value, json};

use crate::api::contract::{annotation, label};
use crate::api::kinds::agents::implementation_source::TrackerProvider;
use crate::api::kinds::agents::implementation_spec::{
    ImplementationFields, WorkSource, WorkSourceProvider,
};
use crate::api::kinds::{ImplementationSource, ImplementationSpec};
use crate::api::text::names::LabelValue;
use crate::api::tracker::{Issue, word};

/// Longest summary, in characters, and longest text, in bytes, as the schema has them.
const SUMMARY: usize = 256;
const TEXT: usize = 128 * 1024;
/// Most labels that are taken over.
const LABELS: usize = 50;

/// What is to be done about an issue.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deed {
    /// Its ImplementationSpec says the same already.
    Nothing,
    Make(Box<ImplementationSpec>),
    Change(Vec<Value>),
    /// Someone else has the name.
    Taken,
}

impl Issue {
    /// What is to be done, from what is there under its name.
    pub(super) fn deed(
        &self,
        source: &ImplementationSource,
        there: Option<&ImplementationSpec>,
    ) -> Deed {
        let fields = self.fields(source.spec.provider);
        let Some(there) = there else {
            return Deed::Make(Box::new(self.object(source, fields)));
        };
        let is_ours = there.labels().get(label::SOURCE_PROVIDER).is_some()
            && there.spec.source.as_ref().is_some_and(|source| {
                source.external_id
                    == fields
                        .source
                        .as_ref()
                        .and_then(|own| own.external_id.clone())
            });
        if !is_ours {
            return Deed::Taken;
        }
        let mut changes = Vec::new();
        let mut put = |path: &str, is_same: bool, value: Value| {
            if !is_same {
                changes.push(json!({"op": "add", "path": path, "value": value}));
            }
        };
        let spec = &there.spec;
        put("/spec/text", spec.text == fields.text, json!(fields.text));
        put(
            "/spec/summary",
            spec.summary == fields.summary,
            json!(fields.summary),
        );
        put(
            "/spec/labels",
            spec.labels == fields.labels,
            json!(fields.labels),
        );
        put(
            "/spec/source",
            spec.source == fields.source,
            json!(fields.source),
        );
        let mut marks = there.annotations().clone();
        let version = marks.insert(annotation::SOURCE_VERSION.to_owned(), self.version.clone());
        let is_same = version.as_ref() == Some(&self.version);
        put("/metadata/annotations", is_same, json!(marks));
        match changes.is_empty() {
            true => Deed::Nothing,
            false => Deed::Change(changes),
        }
    }

    fn object(
        &self,
        source: &ImplementationSource,
        fields: ImplementationFields,
    ) -> ImplementationSpec {
        let mut object = ImplementationSpec::new(&self.name(), fields);
        let provider = LabelValue::normalise(word(source.spec.provider));
        let provider = provider.as_str().to_owned();
        object.metadata.namespace = source.namespace();
        object.metadata.labels = Some(BTreeMap::from([(
            label::SOURCE_PROVIDER.to_owned(),
            provider,
        )]));
        object.metadata.annotations = Some(BTreeMap::from([(
            annotation::SOURCE_VERSION.to_owned(),
            self.version.clone(),
        )]));
        object
    }

    fn fields(&self, provider: TrackerProvider) -> ImplementationFields {
        let summary: String = self.title.trim().chars().take(SUMMARY).collect();
        let text = match self.body.trim() {
            "" => summary.clone(),
            body => cut(body, TEXT).to_owned(),
        };
        let labels: Vec<_> = self.labels.iter().take(LABELS).cloned().collect();
        ImplementationFields {
            source: Some(WorkSource {
                provider: match provider {
                    TrackerProvider::Github => WorkSourceProvider::Github,
                    TrackerProvider::Linear => WorkSourceProvider::Linear,
                },
                external_id: Some(self.id.clone()),
                url: self.url.clone(),
            }),
            // A task must say something.
            text: match text.is_empty() {
                true => self.id.clone(),
                false => text,
            },
            summary: (!summary.is_empty()).then_some(summary),
            labels: Some(labels),
            ..ImplementationFields::default()
        }
    }
}

/// The start of a text, cut between characters.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> ImplementationSource {
        let source = json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "ImplementationSource",
            "metadata": {"name": "s", "namespace": "a"},
            "spec": {"provider": "github", "auth": {"secretRef": {"name": "hook"}}, "scope": {"repository": "o/r"}},
        });
        serde_json::from_value(source).unwrap()
    }

    fn issue() -> Issue {
        Issue {
            id: "o/r#12".to_owned(),
            base: "o-r-12".to_owned(),
            title: "Mend it".to_owned(),
            body: "It is broken.".to_owned(),
            url: Some("https://github.com/o/r/issues/12".to_owned()),
            version: "2026-01-01T00:00:00Z".to_owned(),
            labels: vec!["agent".to_owned()],
        }
    }

    fn made(issue: &Issue) -> ImplementationSpec {
        let Deed::Make(made) = issue.deed(&source(), None) else {
            panic!("nothing is made of {issue:?}");
        };
        *made
    }

    #[test]
    fn an_issue_becomes_an_implementation() {
        let made = serde_json::to_value(made(&issue())).unwrap();
        assert_eq!(
            made,
            json!({
                "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "ImplementationSpec",
                "metadata": {"name": "o-r-12-impl", "namespace": "a",
                    "labels": {"agents.proompteng.ai/source-provider": "github"},
                    "annotations": {"agents.proompteng.ai/source-version": "2026-01-01T00:00:00Z"}},
                "spec": {"text": "It is broken.", "summary": "Mend it", "labels": ["agent"],
                    "source": {"provider": "github", "externalId": "o/r#12", "url": "https://github.com/o/r/issues/12"}},
            })
        );
    }

    #[test]
    fn long_and_empty_issues_fit_as_well() {
        let long = Issue {
            title: "ä".repeat(300),
            body: "ä".repeat(100_000),
            ..issue()
        };
        let spec = made(&long).spec;
        assert_eq!(spec.summary.map(|text| text.chars().count()), Some(256));
        assert_eq!(spec.text.len(), TEXT);
        let blank = |title: &str| {
            let blank = Issue {
                title: title.to_owned(),
                body: " ".to_owned(),
                ..issue()
            };
            made(&blank).spec.text
        };
        assert_eq!(blank("Mend it"), "Mend it");
        assert_eq!(blank(" "), "o/r#12");
    }

    #[test]
    fn what_is_there_is_changed_only_where_it_differs_and_only_if_it_is_ours() {
        let there = made(&issue());
        assert_eq!(issue().deed(&source(), Some(&there)), Deed::Nothing);
        let mut kept = there.clone();
        kept.spec.acceptance_criteria = Some(vec!["written by hand".to_owned()]);
        assert_eq!(issue().deed(&source(), Some(&kept)), Deed::Nothing);
        let newer = Issue {
            body: "It is worse.".to_owned(),
            version: "2026-01-02T00:00:00Z".to_owned(),
            ..issue()
        };
        let Deed::Change(changes) = newer.deed(&source(), Some(&there)) else {
            panic!("nothing changes");
        };
        let paths: Vec<_> = changes
            .iter()
            .map(|change| change["path"].clone())
            .collect();
        assert_eq!(paths, ["/spec/text", "/metadata/annotations"]);
        let mut manual = there.clone();
        manual.metadata.labels = None;
        assert_eq!(newer.deed(&source(), Some(&manual)), Deed::Taken);
        let other = Issue {
            id: "o/r#13".to_owned(),
            ..issue()
        };
        assert_eq!(other.deed(&source(), Some(&there)), Deed::Taken);
    }
}
