//! Every operation of the API, in one table: it drives routing, authorisation, the document and the metrics.

mod table;

use http::Method;
use schemars::{Schema, SchemaGenerator};

pub(super) use table::{ALL, PROBLEM};

use super::auth::Right;
use crate::closed_labels;

closed_labels! {
    /// An operation, by the word that metrics, logs and the document use.
    pub(super) enum Id {
        /// The program answers.
        Livez = "livez",
        /// It can be used.
        Readyz = "readyz",
        /// The description of the API.
        OpenApi = "openApi",
        /// Whose token it is.
        WhoAmI = "whoAmI",
        /// Makes a run.
        SubmitRun = "submitRun",
        /// Runs, page by page.
        ListRuns = "listRuns",
        /// One run.
        GetRun = "getRun",
        /// Stops a run.
        CancelRun = "cancelRun",
        /// Waits for the end of a run.
        WaitForRun = "waitForRun",
        /// Events about a run.
        RunEvents = "runEvents",
        /// The log of a run.
        RunLogs = "runLogs",
        /// Events about any object.
        ListEvents = "listEvents",
        /// Approvals that steps wait for.
        ListApprovals = "listApprovals",
        /// Decides about one.
        Decide = "decide",
        /// Makes something that steps can wait for.
        CreateSignal = "createSignal",
        /// Tells those who wait for it.
        DeliverSignal = "deliverSignal",
        /// What happens to all objects.
        ControlPlaneStream = "controlPlaneStream",
        /// How the queue stands.
        Queue = "queue",
        /// How it changes.
        QueueStream = "queueStream",
        /// How the sidecar beside the leader stands.
        Sidecar = "sidecar",
        /// What GitHub calls us with.
        GithubDelivery = "githubDelivery",
        /// What Linear calls us with.
        LinearDelivery = "linearDelivery",
        /// What the tracker of one source calls us with.
        SourceDelivery = "sourceDelivery",
        /// A file of the console.
        Console = "console",
        /// Anything else.
        None = "none",
    }
}

/// Who may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Anyone.
    Open,
    /// Who signs with the secret of a source; no token is asked for.
    Signed,
    /// Anyone whom the cluster knows.
    Known,
    /// Who has this right in the namespace that is asked about.
    There(Right),
    /// Who has this right wherever the control plane works.
    Everywhere(Right),
    /// Who may follow at least one kind in the namespace; the others are left out.
    AnyKind,
}

/// What a value in the query can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Any text.
    Text,
    /// The name of a namespace, or a star for all.
    Namespace { or_all: bool },
    /// A whole number up to this one.
    Number(u32),
    /// true or false.
    Switch,
    /// A time such as 30s, up to so many seconds.
    Time(u32),
}

/// A value in the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) sort: Sort,
}

/// How a body looks.
pub(super) type Shape = fn(&mut SchemaGenerator) -> Schema;

/// What an operation answers if all goes well.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gives {
    Json(Shape),
    /// Any JSON object.
    Any,
    Text,
    Events,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) id: Id,
    pub(super) method: Verb,
    pub(super) path: &'static str,
    pub(super) about: &'static str,
    pub(super) access: Access,
    pub(super) query: &'static [Parameter],
    pub(super) takes: Option<Shape>,
    pub(super) status: u16,
    pub(super) gives: Gives,
}

/// The methods that there are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
}

impl Verb {
    pub(super) fn is(self, method: &Method) -> bool {
        match self {
            Self::Get => method == Method::GET,
            Self::Post => method == Method::POST,
        }
    }

    /// As the document writes it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
        }
    }
}

impl Operation {
    /// Whether it is about the objects of one namespace, or of all.
    pub(super) fn is_namespaced(&self) -> bool {
        let in_query = |known: &Parameter| matches!(known.sort, Sort::Namespace { .. });
        self.path.contains("{namespace}") || self.query.iter().any(in_query)
    }

    /// Whether it changes something.
    pub(super) fn writes(&self) -> bool {
        self.method == Verb::Post
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::kind::Kind;

    #[test]
    fn every_operation_is_there_once_and_says_what_it_does() {
        let ids: BTreeSet<_> = ALL.iter().map(|operation| operation.id.as_str()).collect();
        assert_eq!(ids.len(), ALL.len());
        assert_eq!(ids.len() + 2, Id::ALL.len(), "all but the console and none");
        let ways: BTreeSet<_> = ALL
            .iter()
            .map(|operation| (operation.method.word(), operation.path))
            .collect();
        assert_eq!(ways.len(), ALL.len());
        for operation in ALL {
            assert!(operation.about.ends_with('.'), "{:?}", operation.id);
            assert_eq!(
                operation.access == Access::Open,
                [Id::Livez, Id::Readyz].contains(&operation.id),
                "only health is open: {:?}",
                operation.id
            );
            assert_eq!(
                operation.access == Access::Signed,
                operation.id.as_str().ends_with("Delivery"),
                "and only trackers need no token: {:?}",
                operation.id
            );
        }
    }

    #[test]
    fn rights_name_resources_that_there_are() {
        for operation in ALL {
            let (Access::There(right) | Access::Everywhere(right)) = operation.access else {
                continue;
            };
            let resource = right.resource.split('/').next().unwrap_or_default();
            let known = Kind::of_resource(right.group, resource).is_some()
                || ["events", "pods"].contains(&resource) && right.group.is_empty();
            assert!(known, "{right:?}");
        }
    }
}
