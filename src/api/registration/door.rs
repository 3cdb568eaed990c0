//! The five doors of the webhook: which requests go through each.

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, RuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::selector;
use crate::api::contract::{self, door, label};
use crate::api::kind::Kind;
use crate::api::registration::rung::{FailurePolicy, Rung, Territory};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change.
    Update,
    /// A removal.
    Delete,
}

impl Operation {
    /// All operations that a door is for.
    pub const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Delete];

    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// One door of the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Door {
    /// Defaults, and refusal with all causes, before the schema is looked at.
    Mutate,
    /// The final verdict on an object of ours.
    Validate,
    /// Repair of a status.
    MutateStatus,
    /// The contract of a status.
    ValidateStatus,
    /// The deletion of a Job of ours.
    ValidateDelete,
}

impl Door {
    /// All doors.
    pub const ALL: [Self; 5] = [
        Self::Mutate,
        Self::Validate,
        Self::MutateStatus,
        Self::ValidateStatus,
        Self::ValidateDelete,
    ];

    /// The path at which the webhook answers.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => door::MUTATE,
            Self::Validate => door::VALIDATE,
            Self::MutateStatus => door::MUTATE_STATUS,
            Self::ValidateStatus => door::VALIDATE_STATUS,
            Self::ValidateDelete => door::VALIDATE_DELETE,
        }
    }

    /// The door at a path.
    pub fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|door| door.path() == path)
    }

    /// The word in metrics, logs and names: the path without its slash.
    pub fn as_str(self) -> &'static str {
        self.path().trim_start_matches('/')
    }

    /// The name that users see in a refusal; the API server wants at least three segments.
    pub fn name(self) -> String {
        format!("{}.{}", self.as_str(), contract::GROUP)
    }

    /// The name of the hook for labelled namespaces.
    pub(super) fn labelled_name(self) -> String {
        format!("{}-labelled.{}", self.as_str(), contract::GROUP)
    }

    /// Whether the answer may change the object.
    pub const fn mutates(self) -> bool {
        match self {
            Self::Mutate | Self::MutateStatus => true,
            Self::Validate | Self::ValidateStatus | Self::ValidateDelete => false,
        }
    }

    /// What the API server does while the webhook does not answer. Only specs may ever be held up.
    pub const fn failure_policy(self, rung: Rung, territory: Territory) -> FailurePolicy {
        match self {
            Self::Mutate | Self::Validate => rung.failure_policy(territory),
            Self::MutateStatus | Self::ValidateStatus | Self::ValidateDelete => {
                FailurePolicy::Ignore
            }
        }
    }

    /// What requests do that go through this door.
    pub const fn operations(self) -> &'static [Operation] {
        match self {
            Self::Mutate | Self::Validate => &[Operation::Create, Operation::Update],
            Self::MutateStatus | Self::ValidateStatus => &[Operation::Update],
            Self::ValidateDelete => &[Operation::Delete],
        }
    }

    /// Group, version and resource of every object that goes through this door.
    pub fn resources(self) -> Vec<(&'static str, &'static str, String)> {
        let ours = |suffix: &str| {
            Kind::ALL
                .into_iter()
                .map(|kind| {
                    let resource = format!("{}{suffix}", kind.plural());
                    (kind.group(), contract::VERSION, resource)
                })
                .collect()
        };
        match self {
            Self::Mutate | Self::Validate => ours(""),
            Self::MutateStatus | Self::ValidateStatus => ours("/status"),
            Self::ValidateDelete => vec![("batch", "v1", "jobs".to_owned())],
        }
    }

    /// One rule per group.
    pub(super) fn rules(self) -> Vec<RuleWithOperations> {
        let operations = self.operations().iter().map(|one| one.as_str().to_owned());
        let operations: Vec<String> = operations.collect();
        let mut rules: Vec<RuleWithOperations> = Vec::new();
        for (group, version, resource) in self.resources() {
            let groups = Some(vec![group.to_owned()]);
            match rules.iter_mut().find(|rule| rule.api_groups == groups) {
                Some(rule) => rule.resources.get_or_insert_default().push(resource),
                None => rules.push(RuleWithOperations {
                    api_groups: groups,
                    api_versions: Some(vec![version.to_owned()]),
                    operations: Some(operations.clone()),
                    resources: Some(vec![resource]),
                    scope: Some("Namespaced".to_owned()),
                }),
            }
        }
        rules
    }

    /// What must hold besides. Only doors that may hold a request up must spare what is on its way out, and what changes
    /// nothing that is judged.
    pub(super) fn conditions(self) -> Vec<MatchCondition> {
        match self {
            Self::Mutate | Self::Validate => vec![
                selector::exemption(),
                selector::staying(),
                selector::changing(),
            ],
            Self::MutateStatus | Self::ValidateStatus | Self::ValidateDelete => {
                vec![selector::exemption()]
            }
        }
    }

    /// Which objects of those are meant: of Jobs only ours.
    pub(super) fn objects(self) -> Option<LabelSelector> {
        match self {
            Self::Mutate | Self::Validate | Self::MutateStatus | Self::ValidateStatus => None,
            Self::ValidateDelete => Some(selector::having(label::RUN_UID)),
        }
    }
}
