//! Objects of our kinds, each begun as the smallest that its schema accepts.

use agents::api::kind::Kind;
use anyhow::{Context, Result};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;

/// An object in the making; prints as JSON, as `kubectl` takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Builder(Value);

/// The smallest object of a kind that the schema accepts. The webhook asks for more of some.
pub fn smallest(kind: Kind, name: &str) -> Builder {
    Builder(json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": {"name": name},
        "spec": smallest_spec(kind),
    }))
}

impl Builder {
    /// Puts it into a namespace; without, it goes where it is sent.
    pub fn namespace(mut self, name: &str) -> Self {
        self.0["metadata"]["namespace"] = json!(name);
        self
    }

    /// Sets fields of the spec, and leaves the others as they are.
    pub fn spec(mut self, fields: Value) -> Self {
        for (name, value) in fields.as_object().into_iter().flatten() {
            self.0["spec"][name] = value.clone();
        }
        self
    }

    /// Sets the whole status.
    pub fn status(mut self, status: Value) -> Self {
        self.0["status"] = status;
        self
    }

    /// The object as JSON.
    pub fn json(self) -> Value {
        self.0
    }

    /// The object as a type of its own.
    pub fn typed<T: DeserializeOwned>(self) -> Result<T> {
        let kind = self.0["kind"].to_string();
        serde_json::from_value(self.0).with_context(|| format!("no {kind}"))
    }
}

impl fmt::Display for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The list of owners of an object that one of ours, which is stored, controls.
pub fn owned_by(kind: Kind, owner: &impl ResourceExt) -> Value {
    json!([{
        "apiVersion": kind.api_version(), "kind": kind.as_str(), "controller": true,
        "name": owner.name_any(), "uid": owner.uid(),
    }])
}

fn smallest_spec(kind: Kind) -> Value {
    let named = json!({"name": "x"});
    let secret = json!({"secretRef": {"name": "s"}});
    match kind {
        Kind::Agent => json!({"providerRef": named}),
        Kind::AgentRun => json!({
            "agentRef": {"name": "a"},
            "runtime": {"type": "job"},
            "implementationSpecRef": {"name": "i"},
        }),
        Kind::AgentProvider => json!({"binary": "/bin/agent"}),
        Kind::ImplementationSpec => json!({"text": "Do it."}),
        Kind::ImplementationSource => json!({"provider": "github", "auth": secret}),
        Kind::VersionControlProvider => json!({"provider": "github"}),
        Kind::Memory => json!({"type": "postgres", "connection": secret}),
        Kind::Orchestration => json!({"steps": []}),
        Kind::OrchestrationRun => json!({"orchestrationRef": {"name": "o"}}),
        Kind::ToolRun => json!({"toolRef": {"name": "t"}}),
        Kind::SignalDelivery => json!({"signalRef": named}),
        Kind::Schedule => {
            json!({"cron": "0 3 * * *", "targetRef": {"kind": "AgentRun", "name": "x"}})
        }
        Kind::Tool
        | Kind::ApprovalPolicy
        | Kind::Budget
        | Kind::SecretBinding
        | Kind::Signal
        | Kind::Artifact
        | Kind::Workspace => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agents::api::kinds::ToolRun;

    #[test]
    fn an_object_is_the_smallest_with_what_was_set() {
        let built = smallest(Kind::ToolRun, "x")
            .namespace("team")
            .spec(json!({"parameters": {"a": "b"}}))
            .status(json!({"phase": "Running"}));
        let expected = json!({
            "apiVersion": "tools.proompteng.ai/v1alpha1",
            "kind": "ToolRun",
            "metadata": {"name": "x", "namespace": "team"},
            "spec": {"toolRef": {"name": "t"}, "parameters": {"a": "b"}},
            "status": {"phase": "Running"},
        });
        assert_eq!(built.clone().json(), expected);
        assert_eq!(built.to_string(), expected.to_string());
        assert_eq!(built.typed::<ToolRun>().unwrap().spec.tool_ref.name, "t");
    }
}
