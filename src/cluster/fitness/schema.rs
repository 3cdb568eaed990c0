//! Whether the API server knows every field of our kinds. One that it does not know is dropped without a word, so a CRD of
//! an older version would lose what is written.

use serde_json::Value;

use crate::api::contract::VERSION;
use crate::api::crd;
use crate::api::kind::Kind;

/// Fields that are named in one message; the others are counted.
const SHOWN: usize = 3;

/// What installs our kinds and brings them up to date, to be said wherever they are missed.
pub const APPLY: &str = "agents crds apply";

/// What to do about a resource that is not served.
pub(super) fn remedy(group: &str) -> String {
    match Kind::ALL.iter().any(|kind| kind.group() == group) {
        true => format!("run `{APPLY}`"),
        false => "use a Kubernetes that has it".to_owned(),
    }
}

/// Where the API server describes the kinds of a group.
pub(super) fn path(group: &str) -> String {
    format!("/openapi/v3/apis/{group}/{VERSION}")
}

/// What the description of a group lacks of a kind, as a sentence. None if nothing.
///
/// # Errors
///
/// The group is described without the kind: a CRD that was applied just now shows up a moment later.
pub(super) fn problem(kind: Kind, described: &Value) -> Result<Option<String>, String> {
    let what = format!("{}.{}", kind.plural(), kind.group());
    let Some(served) = of_kind(kind, described) else {
        return Err(format!("{what} {VERSION} is not described yet"));
    };
    let mut lacking = Vec::new();
    for version in crd::definition(kind).spec.versions {
        let wanted = serde_json::to_value(version.schema.and_then(|all| all.open_api_v3_schema));
        for part in ["spec", "status"] {
            let wanted = wanted.as_ref().map(|wanted| &wanted["properties"][part]);
            let wanted = wanted.unwrap_or(&Value::Null);
            compare(wanted, &served["properties"][part], part, &mut lacking);
        }
    }
    if lacking.is_empty() {
        return Ok(None);
    }
    let more = lacking.len().saturating_sub(SHOWN);
    lacking.truncate(SHOWN);
    let mut fields = lacking.join(", ");
    if more > 0 {
        fields += &format!(" and {more} more");
    }
    Ok(Some(format!(
        "{what} {VERSION} is of another version, it lacks {fields}; run `{APPLY}` of this version"
    )))
}

fn of_kind(kind: Kind, described: &Value) -> Option<&Value> {
    let all = described["components"]["schemas"].as_object()?;
    all.values().find(|schema| {
        let names = schema["x-kubernetes-group-version-kind"].as_array();
        names.into_iter().flatten().any(|name| {
            name["group"] == kind.group()
                && name["version"] == VERSION
                && name["kind"] == kind.as_str()
        })
    })
}

/// Notes the fields that are wanted and not served.
fn compare(wanted: &Value, served: &Value, path: &str, lacking: &mut Vec<String>) {
    if served["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    for (name, field) in wanted["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match served["properties"].get(name) {
            Some(served) => compare(field, served, &path, lacking),
            None => lacking.push(path),
        }
    }
    for (part, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if wanted[part].is_object() {
            compare(
                &wanted[part],
                &served[part],
                &format!("{path}{mark}"),
                lacking,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What an API server says about a kind of this version, after a change.
    fn described(kind: Kind, change: impl Fn(&mut Value)) -> Value {
        let version = crd::definition(kind).spec.versions.remove(0);
        let mut schema = serde_json::to_value(version.schema.unwrap().open_api_v3_schema).unwrap();
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": kind.group(), "version": "v1alpha1", "kind": kind.as_str()}]);
        change(&mut schema);
        json!({"components": {"schemas": {"some.name": schema, "other": {}}}})
    }

    fn without(path: &str) -> impl Fn(&mut Value) {
        let (parent, name) = path.rsplit_once('/').unwrap();
        move |schema: &mut Value| {
            let fields = schema.pointer_mut(parent).and_then(Value::as_object_mut);
            fields.unwrap().remove(name).expect("a field");
        }
    }

    #[test]
    fn every_kind_of_this_version_is_new_enough() {
        for kind in Kind::ALL {
            assert_eq!(problem(kind, &described(kind, |_| {})), Ok(None), "{kind}");
        }
    }

    #[test]
    fn a_field_that_would_be_dropped_is_named() {
        let job = "/properties/status/properties/jobRef";
        let uid = "/properties/status/properties/jobRef/properties/uid";
        for (path, field) in [(job, "status.jobRef"), (uid, "status.jobRef.uid")] {
            let described = described(Kind::AgentRun, without(path));
            let expected = format!(
                "agentruns.agents.proompteng.ai v1alpha1 is of another version, it lacks {field}; run `agents crds apply` of this version"
            );
            assert_eq!(problem(Kind::AgentRun, &described), Ok(Some(expected)));
        }
        let bare = described(Kind::AgentRun, without("/properties/status"));
        let said = problem(Kind::AgentRun, &bare).unwrap().unwrap();
        assert!(said.contains(" more; run `agents crds apply`"), "{said}");
        let open = described(Kind::AgentRun, |schema| {
            schema["properties"]["status"] =
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        });
        assert_eq!(
            problem(Kind::AgentRun, &open),
            Ok(None),
            "nothing is dropped"
        );
    }

    #[test]
    fn only_kinds_of_ours_are_installed_by_our_command() {
        assert_eq!(remedy("signals.proompteng.ai"), "run `agents crds apply`");
        for group in ["", "batch", "coordination.k8s.io"] {
            assert_eq!(remedy(group), "use a Kubernetes that has it");
        }
    }

    #[test]
    fn a_kind_that_is_not_described_yet_is_waited_for() {
        let other = described(Kind::Agent, |_| {});
        assert_eq!(
            problem(Kind::AgentRun, &other),
            Err("agentruns.agents.proompteng.ai v1alpha1 is not described yet".to_owned())
        );
    }
}
