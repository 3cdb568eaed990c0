//! Random small objects, judged by an evaluator of CEL and by us.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::*;
use crate::api::crd;
use crate::api::kind::Kind;
use crate::api::object::conform::{conform_spec, conform_status};

/// The kinds with rules that differ: all rules on a status, the rules on a spec, and the one rule that all have.
const KINDS: [Kind; 4] = [Kind::AgentRun, Kind::ToolRun, Kind::Agent, Kind::Workspace];

/// Which rules, by their sentences in CEL, refuse the object.
fn refused_by_cel(kind: Kind, new: &Value, old: &Value) -> BTreeSet<String> {
    static SCHEMAS: LazyLock<Vec<(Kind, kube_cel::CompiledSchema)>> = LazyLock::new(|| {
        let compiled = |kind: Kind| {
            let crd = serde_json::to_value(crd::definition(kind)).unwrap();
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            (kind, kube_cel::compile_schema(schema))
        };
        KINDS.map(compiled).into()
    });
    let (_, schema) = SCHEMAS.iter().find(|(other, _)| *other == kind).unwrap();
    match kube_cel::Validator::new().validate_compiled(schema, new, Some(old)) {
        Ok(()) => BTreeSet::new(),
        Err(errors) => errors.into_iter().map(|error| error.message).collect(),
    }
}

/// What the rule in CEL says where we give this reason.
const SENTENCES: [(Reason, &str); 7] = [
    (
        Reason::NothingToDo,
        "set implementationSpecRef or implementation: a run needs something to do",
    ),
    (
        Reason::SystemPromptConflict,
        "set systemPrompt or systemPromptRef, not both",
    ),
    (
        Reason::ObservedGenerationWentBack,
        "observedGeneration never falls and is never removed",
    ),
    (
        Reason::StartedAtChanged,
        "startedAt is written once: it is never changed and never removed",
    ),
    (
        Reason::FinishedAtChanged,
        "finishedAt is written once: it is never changed and never removed",
    ),
    (
        Reason::FinishedBeforeStarted,
        "finishedAt is not before startedAt",
    ),
    (
        Reason::TerminalPhaseLeft,
        "Succeeded, Failed and Cancelled are final: the phase is never changed and never removed",
    ),
];

/// The sentence in CEL of each rule that we say is broken.
fn refused_by_us(kind: Kind, new: &Value, old: &Value) -> BTreeSet<String> {
    let mut causes = conform_spec(kind, new, None);
    causes.append(conform_status(kind, new, Some(old)));
    let sentence = |reason: Reason| SENTENCES.iter().find(|(other, _)| *other == reason);
    let sentences = causes.iter().filter_map(|cause| sentence(cause.reason));
    sentences.map(|(_, text)| (*text).to_owned()).collect()
}

fn time() -> impl Strategy<Value = Value> {
    let times = [
        "2026-02-08T10:00:00Z",
        "2026-02-08T10:00:01Z",
        "2026-02-08T09:59:59Z",
        "2026-02-08T12:00:00+02:00",
        "2026-02-08T10:00:00.500Z",
    ];
    proptest::sample::select(times.to_vec()).prop_map(Value::from)
}

/// An object with some of these fields.
fn some_of(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            proptest::option::of(value).prop_map(move |value| Some((name.to_owned(), value?)))
        })
        .collect();
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect()))
}

fn status() -> impl Strategy<Value = Value> {
    let phases = [
        "Pending",
        "Running",
        "Succeeded",
        "Failed",
        "Cancelled",
        "Paused",
    ];
    some_of(vec![
        (
            "phase",
            proptest::sample::select(phases.to_vec())
                .prop_map(Value::from)
                .boxed(),
        ),
        ("startedAt", time().boxed()),
        ("finishedAt", time().boxed()),
        (
            "observedGeneration",
            (0_i64..4).prop_map(Value::from).boxed(),
        ),
    ])
}

fn object() -> impl Strategy<Value = Value> {
    let reference = || Just(json!({"name": "x"})).boxed();
    let prompt = || {
        vec![
            ("systemPrompt", Just(json!("be kind")).boxed()),
            (
                "systemPromptRef",
                Just(json!({"kind": "Secret", "name": "a", "key": "b"})).boxed(),
            ),
        ]
    };
    let mut spec = prompt();
    spec.extend([
        ("implementationSpecRef", reference()),
        (
            "implementation",
            Just(json!({"inline": {"text": "x"}})).boxed(),
        ),
        ("defaults", some_of(prompt()).boxed()),
    ]);
    some_of(vec![
        ("spec", some_of(spec).boxed()),
        ("status", status().boxed()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_rule_says_the_same_in_cel_and_here(
        kind in proptest::sample::select(KINDS.to_vec()), new in object(), old in object(),
    ) {
        // What the schema of a kind does not know is not there for its rules.
        let prune = |mut object: Value| {
            if kind != Kind::AgentRun {
                for name in ["systemPrompt", "systemPromptRef", "implementationSpecRef", "implementation"] {
                    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                        spec.remove(name);
                    }
                }
            }
            object
        };
        let (new, old) = (prune(new), prune(old));
        prop_assert_eq!(refused_by_us(kind, &new, &old), refused_by_cel(kind, &new, &old));
    }
}
