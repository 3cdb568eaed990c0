//! Label selectors and the condition in CEL: made for our hooks, and evaluated as the API server does.

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::{EXEMPT_NAMESPACES, EXEMPT_USERS};
use crate::api::contract::label;
use crate::api::registration::rung::Territory;

/// Label that the API server puts on every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Labels of an object or a namespace.
pub(super) type Labels = BTreeMap<String, String>;

/// All namespaces but those of the cluster, or only those of one sort.
pub(super) fn namespaces(territory: Option<Territory>) -> LabelSelector {
    let not_the_clusters = requirement(NAMESPACE_NAME, "NotIn", &EXEMPT_NAMESPACES);
    let sort = territory.map(|territory| {
        let operator = match territory {
            Territory::Plain => "NotIn",
            Territory::Labelled => "In",
        };
        requirement(label::ADMISSION, operator, &[label::ADMISSION_FAIL])
    });
    LabelSelector {
        match_expressions: Some([not_the_clusters].into_iter().chain(sort).collect()),
        match_labels: None,
    }
}

/// All objects with the label, whatever its value.
pub(super) fn having(label: &str) -> LabelSelector {
    LabelSelector {
        match_expressions: Some(vec![requirement(label, "Exists", &[])]),
        match_labels: None,
    }
}

/// Who is never asked about. It is evaluated in the API server, so no call is made.
pub(super) fn exemption() -> MatchCondition {
    let users = EXEMPT_USERS.map(|user| format!("'{user}'")).join(", ");
    MatchCondition {
        name: "not-the-clusters-own-controllers".to_owned(),
        expression: format!("!(request.userInfo.username in [{users}])"),
    }
}

/// What is being deleted is not asked about: it starts nothing any more, and the controllers only let it go. To hold that up
/// while the webhook does not answer would hold up the deletion of whole namespaces.
pub(super) fn staying() -> MatchCondition {
    MatchCondition {
        name: "not-on-its-way-out".to_owned(),
        expression: "oldObject == null || !has(oldObject.metadata.deletionTimestamp)".to_owned(),
    }
}

/// An update that changes neither spec, labels nor annotations is not asked about: no rule looks at anything else. Such are the
/// finalizers that controllers take away from what has ended, which must not wait for a webhook that does not answer.
pub(super) fn changing() -> MatchCondition {
    let differs = ["spec", "metadata.labels", "metadata.annotations"].map(|field| {
        let (new, old) = (format!("object.{field}"), format!("oldObject.{field}"));
        format!("has({new}) != has({old}) || (has({new}) && {new} != {old})")
    });
    MatchCondition {
        name: "changes-what-is-judged".to_owned(),
        expression: format!("oldObject == null || {}", differs.join(" || ")),
    }
}

/// Labels of a namespace as far as our selectors look at them.
pub(super) fn labels_of(namespace: &str, territory: Territory) -> Labels {
    let mut labels = Labels::from([(NAMESPACE_NAME.to_owned(), namespace.to_owned())]);
    if territory == Territory::Labelled {
        labels.insert(
            label::ADMISSION.to_owned(),
            label::ADMISSION_FAIL.to_owned(),
        );
    }
    labels
}

/// Whether the selector selects something with these labels. A missing one selects everything.
pub fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    let Some(LabelSelector {
        match_expressions,
        match_labels,
    }) = selector
    else {
        return true;
    };
    let equal = |(key, value): (&String, &String)| labels.get(key) == Some(value);
    match_labels.iter().flatten().all(equal)
        && match_expressions
            .iter()
            .flatten()
            .all(|requirement| holds(requirement, labels))
}

fn holds(requirement: &LabelSelectorRequirement, labels: &Labels) -> bool {
    let LabelSelectorRequirement {
        key,
        operator,
        values,
    } = requirement;
    let value = labels.get(key);
    let listed = value.is_some_and(|value| values.iter().flatten().any(|known| known == value));
    match operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        // The API server stores no other; to assume that it selects is to look closer.
        _ => true,
    }
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> LabelSelectorRequirement {
    LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: (!values.is_empty()).then(|| values.iter().map(ToString::to_string).collect()),
    }
}
