//! Issues of trackers, and deliveries of them as they wait in the cluster. The control plane takes a delivery in, the
//! controllers work on it.

mod payload;
mod written;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::contract::label;
use super::kinds::ImplementationSource;
use super::kinds::agents::implementation_source::TrackerProvider;
use super::text::hash::text_hash;
use super::text::names::ChildName;
pub use payload::{Misread, Payload};
pub use written::{GithubIssue, Label, names};

/// The entry of a ConfigMap that has the delivery.
const ENTRY: &str = "delivery.json";

/// The entry of a Secret that is meant if none is named.
pub const SECRET_KEY: &str = "token";

/// An issue, as its tracker tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// How the tracker calls it, for example owner/repo#12 or ENG-12.
    pub id: String,
    /// What its ImplementationSpec is named after.
    pub base: String,
    /// What it is about.
    pub title: String,
    /// What it says.
    pub body: String,
    /// Where people read it.
    pub url: Option<String>,
    /// Changes with every change of the issue.
    pub version: String,
    /// The names of its labels.
    pub labels: Vec<String>,
}

impl Issue {
    /// An issue of a repository of GitHub.
    pub fn of_github(repository: &str, number: u64) -> Self {
        Self {
            id: format!("{repository}#{number}"),
            base: format!("{}-{number}", repository.replace('/', "-")),
            title: String::new(),
            body: String::new(),
            url: None,
            version: String::new(),
            labels: Vec::new(),
        }
    }

    /// An issue of Linear.
    pub fn of_linear(identifier: String) -> Self {
        Self {
            base: format!("linear-{identifier}"),
            id: identifier,
            ..Self::of_github("", 0)
        }
    }

    /// Whether it has all labels that are asked for; trackers do not tell upper from lower case.
    pub fn has(&self, wanted: &[String]) -> bool {
        wanted.iter().all(|wanted| {
            let wanted = wanted.trim();
            let mut labels = self.labels.iter();
            wanted.is_empty() || labels.any(|label| label.eq_ignore_ascii_case(wanted))
        })
    }

    /// The name of its ImplementationSpec.
    pub fn name(&self) -> String {
        ChildName::derive(&self.base, "impl").as_str().to_owned()
    }
}

/// A call of a tracker for one source, which is still to be worked on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Tells a repeated call from a new one.
    pub key: String,
    /// How the tracker calls the call.
    pub id: Option<String>,
    /// When it came in.
    pub received_at: Timestamp,
    /// The issue that it is about.
    pub issue: Issue,
}

impl Delivery {
    /// The name of the ConfigMap in which it waits. The same call for the same source has the same, so it waits once.
    pub fn name(source: &str, key: &str) -> String {
        let hash = text_hash(&format!("{source} {key}"));
        format!("delivery-{}", &hash[..32])
    }

    /// The ConfigMap in which it waits; it goes with its source.
    pub fn object(&self, source: &ImplementationSource) -> ConfigMap {
        let uid = source.uid().unwrap_or_default();
        let provider = word(source.spec.provider).to_owned();
        let text = serde_json::to_string(self).unwrap_or_default();
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(Self::name(&uid, &self.key)),
                namespace: source.namespace(),
                labels: Some(BTreeMap::from([(label::DELIVERY.to_owned(), provider)])),
                owner_references: source.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            immutable: Some(true),
            data: Some(BTreeMap::from([(ENTRY.to_owned(), text)])),
            binary_data: None,
        }
    }

    /// What waits in a ConfigMap; none if it is no delivery.
    pub fn read(object: &ConfigMap) -> Option<Self> {
        let text = object.data.as_ref()?.get(ENTRY)?;
        serde_json::from_str(text).ok()
    }
}

/// The name of the source that a delivery waits for.
pub fn source_of(object: &ConfigMap) -> Option<String> {
    let mut owners = object.owner_references().iter();
    let owner = owners.find(|owner| owner.kind == ImplementationSource::kind(&()))?;
    Some(owner.name.clone())
}

/// The word for a tracker.
pub const fn word(provider: TrackerProvider) -> &'static str {
    match provider {
        TrackerProvider::Github => "github",
        TrackerProvider::Linear => "linear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_delivery_waits_under_one_name_and_is_read_as_it_was() {
        let source: ImplementationSource = serde_json::from_value(json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "ImplementationSource",
            "metadata": {"name": "s", "namespace": "a", "uid": "u"},
            "spec": {"provider": "github", "auth": {"secretRef": {"name": "hook"}}},
        }))
        .unwrap();
        let delivery = Delivery {
            key: "k".to_owned(),
            id: Some("k".to_owned()),
            received_at: "2026-01-01T12:00:00Z".parse().unwrap(),
            issue: Issue::of_github("o/r", 1),
        };
        let object = delivery.object(&source);
        assert_eq!(object.name_any(), Delivery::name("u", "k"));
        assert_ne!(object.name_any(), Delivery::name("v", "k"));
        assert_eq!(source_of(&object).as_deref(), Some("s"));
        assert_eq!(Delivery::read(&object), Some(delivery));
        assert_eq!(Delivery::read(&ConfigMap::default()), None);
    }

    #[test]
    fn all_labels_must_be_there() {
        let issue = Issue {
            labels: vec!["agent".to_owned()],
            ..Issue::of_github("o/r", 12)
        };
        let wanted = |labels: &[&str]| {
            let labels: Vec<_> = labels.iter().map(|label| (*label).to_owned()).collect();
            issue.has(&labels)
        };
        assert!(wanted(&[]) && wanted(&["Agent", " "]));
        assert!(!wanted(&["agent", "urgent"]));
    }
}
