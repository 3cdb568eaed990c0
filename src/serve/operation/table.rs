//! The table itself.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{Access, Gives, Id, Operation, Parameter, Shape, Sort, Verb};
use crate::api::contract::{api_path, path, queue};
use crate::api::kind::Kind;
use crate::serve::auth::Right;
use crate::serve::carry_out::{approvals, events, health, runs, sidecar, signals};
use crate::serve::fault::Problem;
use crate::serve::inbound;

/// The shape of a type.
fn shape<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Any JSON object.
fn any(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({"type": "object"})
}

/// The shape of every error.
pub(in crate::serve) const PROBLEM: Shape = shape::<Problem>;

const NAMESPACE: Parameter = Parameter {
    name: "namespace",
    about: "Namespace; the default one of the control plane if left out",
    sort: Sort::Namespace { or_all: false },
};
const NAMESPACES: Parameter = Parameter {
    name: "namespace",
    about: "Namespace, or * for all; the default one of the control plane if left out",
    sort: Sort::Namespace { or_all: true },
};
const LABELS: Parameter = text("labelSelector", "Labels, as kubectl takes them with -l");
const CONTINUE: Parameter = text("continue", "Where the last page ended");
const LIMIT: Parameter = number("limit", "Most entries of a page; 100 if left out", 500);

const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter {
        name,
        about,
        sort: Sort::Text,
    }
}

const fn number(name: &'static str, about: &'static str, most: u32) -> Parameter {
    Parameter {
        name,
        about,
        sort: Sort::Number(most),
    }
}

const fn switch(name: &'static str, about: &'static str) -> Parameter {
    Parameter {
        name,
        about,
        sort: Sort::Switch,
    }
}

const AGENTS: &str = Kind::AgentRun.group();
const APPROVALS: &str = Kind::ApprovalPolicy.group();
const SIGNALS: &str = Kind::Signal.group();

const fn there(verb: &'static str, group: &'static str, resource: &'static str) -> Access {
    Access::There(Right {
        verb,
        group,
        resource,
    })
}

/// Reads something; the rest is said where it differs.
const fn get(id: Id, path: &'static str, access: Access, gives: Gives) -> Operation {
    Operation {
        id,
        method: Verb::Get,
        path,
        about: "",
        access,
        query: &[],
        takes: None,
        status: 200,
        gives,
    }
}

/// Changes something.
const fn post(id: Id, path: &'static str, access: Access, gives: Gives) -> Operation {
    Operation {
        method: Verb::Post,
        ..get(id, path, access, gives)
    }
}

impl Operation {
    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn takes(self, shape: Shape) -> Self {
        Self {
            takes: Some(shape),
            ..self
        }
    }

    const fn creates(self) -> Self {
        Self {
            status: 201,
            ..self
        }
    }
}

/// All operations.
pub(in crate::serve) const ALL: &[Operation] = &[
    get(Id::Livez, path::LIVEZ, Access::Open, Gives::Json(shape::<health::Health>))
        .about("Whether the program answers."),
    get(Id::Readyz, path::READYZ, Access::Open, Gives::Json(shape::<health::Health>))
        .about("Whether it can be used; 503 with the same body if not."),
    get(Id::OpenApi, api_path::OPENAPI, Access::Known, Gives::Any)
        .about("This document."),
    get(Id::WhoAmI, "/v1/whoami", Access::Known, Gives::Json(shape::<health::WhoAmI>))
        .about("Whose token it is, and which namespaces the control plane works for."),
    post(
        Id::SubmitRun,
        "/v1/agent-runs",
        there("create", AGENTS, "agentruns"),
        Gives::Json(shape::<runs::Receipt>),
    )
    .about("Makes an AgentRun. With the header Idempotency-Key, the same request again is answered the same and makes nothing new; another request with the same key is refused with 409.")
    .query(&[NAMESPACE])
    .takes(shape::<runs::Submission>)
    .creates(),
    get(
        Id::ListRuns,
        "/v1/agent-runs",
        there("list", AGENTS, "agentruns"),
        Gives::Json(shape::<runs::Page>),
    )
    .about("AgentRuns in the order of their names, page by page.")
    .query(&[
        NAMESPACES,
        LABELS,
        text("fieldSelector", "Fields with = or !=, separated by commas: metadata.name, status.phase, spec.agentRef.name, spec.runtime.type"),
        LIMIT,
        CONTINUE,
    ]),
    get(
        Id::GetRun,
        "/v1/agent-runs/{namespace}/{name}",
        there("get", AGENTS, "agentruns"),
        Gives::Json(shape::<runs::Detail>),
    )
    .about("One AgentRun. Values of environment variables are withheld."),
    post(
        Id::CancelRun,
        "/v1/agent-runs/{namespace}/{name}/cancel",
        there("update", AGENTS, "agentruns"),
        Gives::Json(shape::<runs::Summary>),
    )
    .about("Asks for the end of a run; its record stays. 409 if it has ended."),
    get(
        Id::WaitForRun,
        "/v1/agent-runs/{namespace}/{name}/wait",
        there("get", AGENTS, "agentruns"),
        Gives::Json(shape::<runs::Waited>),
    )
    .about("Answers when the run has ended, or when the time is over; `ended` says which.")
    .query(&[Parameter {
        name: "timeout",
        about: "Longest time to wait, such as 30s; 30s if left out",
        sort: Sort::Time(runs::LONGEST_WAIT),
    }]),
    get(
        Id::RunEvents,
        "/v1/agent-runs/{namespace}/{name}/events",
        there("list", "", "events"),
        Gives::Json(shape::<events::List>),
    )
    .about("Kubernetes Events about the run, the latest first.")
    .query(&[number("limit", "Most entries; 25 if left out", 200)]),
    get(
        Id::RunLogs,
        "/v1/agent-runs/{namespace}/{name}/logs",
        there("get", "", "pods/log"),
        Gives::Text,
    )
    .about("The log of the run's latest pod, as long as the pod is kept; 410 after that, with the time and the setting.")
    .query(&[
        switch("follow", "Go on with every new line until the pod ends"),
        number("tail", "Only so many of the last lines; 1000 if left out", 10_000),
        text("step", "Step of a workflow; the latest pod of any step if left out"),
    ]),
    get(Id::ListEvents, "/v1/events", there("list", "", "events"), Gives::Json(shape::<events::List>))
        .about("Kubernetes Events about one object, or about all of a namespace, the latest first.")
        .query(&[
            NAMESPACE,
            text("kind", "Kind of the object"),
            text("name", "Name of the object"),
            text("uid", "Uid of the object"),
            number("limit", "Most entries; 25 if left out", 200),
            text("type", "Normal or Warning"),
            text("reason", "Reason of the Events, such as InvalidSpec"),
        ]),
    get(
        Id::ListApprovals,
        "/v1/approval-policies",
        there("list", APPROVALS, "approvalpolicies"),
        Gives::Json(shape::<approvals::Page>),
    )
    .about("ApprovalPolicies and what was decided about each.")
    .query(&[NAMESPACES, LABELS, LIMIT, CONTINUE]),
    post(
        Id::Decide,
        "/v1/approval-policies/{namespace}/{name}/decision",
        there("update", APPROVALS, "approvalpolicies/status"),
        Gives::Json(shape::<approvals::Approval>),
    )
    .about("Gives or refuses an approval. The same decision again changes nothing; another one is refused with 409.")
    .takes(shape::<approvals::Decision>),
    post(
        Id::CreateSignal,
        "/v1/signals",
        there("create", SIGNALS, "signals"),
        Gives::Json(shape::<runs::Receipt>),
    )
    .about("Makes a Signal, which steps can wait for.")
    .query(&[NAMESPACE])
    .takes(shape::<signals::NewSignal>)
    .creates(),
    post(
        Id::DeliverSignal,
        "/v1/signals/{namespace}/{name}/deliveries",
        there("create", SIGNALS, "signaldeliveries"),
        Gives::Json(shape::<runs::Receipt>),
    )
    .about("Delivers a Signal. Deliveries with the same deliveryId count once.")
    .takes(shape::<signals::Delivery>)
    .creates(),
    get(Id::ControlPlaneStream, api_path::CONTROL_PLANE_STREAM, Access::AnyKind, Gives::Events)
        .about("What happens to all objects of a namespace, as server-sent events: resource, status, error, ready, dropped, end.")
        .query(&[
            NAMESPACES,
            switch("named", "false leaves the names of events out, for readers that know none"),
            text("kind", "Only this kind, such as AgentRun"),
            switch("brief", "true leaves the objects themselves out; of an AgentRun its summary stays"),
        ]),
    get(Id::Queue, queue::SNAPSHOT, everywhere("list", "agentruns"), Gives::Any)
        .about("How the queue stands, as the controller says that holds the lease."),
    get(Id::QueueStream, queue::STREAM, everywhere("list", "agentruns"), Gives::Events)
        .about("The same with every change, as server-sent events: snapshot, queue, dropped, end."),
    get(Id::Sidecar, api_path::SIDECAR, everywhere("list", "agentruns"), Gives::Json(shape::<sidecar::Seen>))
        .about("What the sidecar sees that runs beside the controller that holds the lease: the streams that it follows, and the Jobs."),
    delivery(Id::GithubDelivery, api_path::GITHUB)
        .about("A call of GitHub about an issue, for all sources whose secret signs it. Signed in the header X-Hub-Signature-256; answered 401 alike if nobody signed it and if there is no source."),
    delivery(Id::LinearDelivery, api_path::LINEAR)
        .about("A call of Linear about an issue, for all sources whose secret signs it. Signed in the header Linear-Signature; not older than a minute."),
    delivery(Id::SourceDelivery, "/v1/implementation-sources/{namespace}/{name}/deliveries")
        .about("A call of the tracker of one source."),
];

const fn delivery(id: Id, path: &'static str) -> Operation {
    let gives = Gives::Json(shape::<inbound::Delivered>);
    Operation {
        status: 202,
        ..post(id, path, Access::Signed, gives).takes(any)
    }
}

const fn everywhere(verb: &'static str, resource: &'static str) -> Access {
    Access::Everywhere(Right {
        verb,
        group: AGENTS,
        resource,
    })
}
