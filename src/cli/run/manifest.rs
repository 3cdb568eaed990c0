//! The run that flags describe. Pure.

use serde_json::{Map, Value, json};

use super::submit::Args;
use crate::api::kind::Kind;

/// What carries a run out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Runtime {
    /// One Job.
    #[default]
    Job,
    /// One Job per step; the steps are those of a manifest.
    Workflow,
    /// An HTTP endpoint that takes the run over.
    Custom,
}

/// How a repository is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum VcsMode {
    /// Fetch and push.
    ReadWrite,
    /// Fetch only.
    ReadOnly,
    /// Not at all.
    None,
}

/// The object, with only those fields that are given.
pub(super) fn manifest(args: &Args) -> Value {
    let mut metadata = Map::new();
    match &args.name {
        Some(name) => metadata.insert("name".to_owned(), json!(name)),
        None => metadata.insert("generateName".to_owned(), json!(format!("{}-", args.agent))),
    };
    put(&mut metadata, "labels", texts(&args.label));
    json!({
        "apiVersion": Kind::AgentRun.api_version(),
        "kind": Kind::AgentRun.as_str(),
        "metadata": metadata,
        "spec": spec(args),
    })
}

fn spec(args: &Args) -> Map<String, Value> {
    let named = |name: &Option<String>| name.as_ref().map(|name| json!({"name": name}));
    let mut spec = Map::new();
    put(&mut spec, "agentRef", Some(json!({"name": args.agent})));
    put(
        &mut spec,
        "implementationSpecRef",
        named(&args.implementation),
    );
    let inline = args
        .text
        .as_ref()
        .map(|text| json!({"inline": {"text": text}}));
    put(&mut spec, "implementation", inline);
    put(&mut spec, "runtime", Some(runtime(args)));
    put(&mut spec, "parameters", texts(&args.param));
    put(
        &mut spec,
        "idempotencyKey",
        args.idempotency_key.as_ref().map(|key| json!(key)),
    );
    put(&mut spec, "workload", workload(args));
    let secrets = (!args.secret.is_empty()).then(|| json!(args.secret));
    put(&mut spec, "secrets", secrets);
    put(&mut spec, "memoryRef", named(&args.memory_ref));
    put(&mut spec, "vcsRef", named(&args.vcs));
    put(&mut spec, "vcsPolicy", vcs_policy(args));
    spec
}

fn runtime(args: &Args) -> Value {
    let type_ = match args.runtime {
        Runtime::Job => "job",
        Runtime::Workflow => "workflow",
        Runtime::Custom => "custom",
    };
    let mut runtime = Map::from_iter([("type".to_owned(), json!(type_))]);
    let pairs = args.runtime_config.iter().map(|(key, text)| {
        let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        (key.clone(), value)
    });
    let config: Map<String, Value> = pairs.collect();
    put(
        &mut runtime,
        "config",
        (!config.is_empty()).then_some(Value::Object(config)),
    );
    Value::Object(runtime)
}

fn workload(args: &Args) -> Option<Value> {
    let mut requests = Map::new();
    put(
        &mut requests,
        "cpu",
        args.cpu.as_ref().map(|amount| json!(amount)),
    );
    put(
        &mut requests,
        "memory",
        args.memory.as_ref().map(|amount| json!(amount)),
    );
    let mut workload = Map::new();
    put(
        &mut workload,
        "image",
        args.image.as_ref().map(|image| json!(image)),
    );
    let resources = (!requests.is_empty()).then(|| json!({"requests": requests}));
    put(&mut workload, "resources", resources);
    (!workload.is_empty()).then_some(Value::Object(workload))
}

fn vcs_policy(args: &Args) -> Option<Value> {
    let mode = args.vcs_mode.map(|mode| match mode {
        VcsMode::ReadWrite => "read-write",
        VcsMode::ReadOnly => "read-only",
        VcsMode::None => "none",
    });
    let mut policy = Map::new();
    put(&mut policy, "mode", mode.map(|mode| json!(mode)));
    put(
        &mut policy,
        "required",
        args.vcs_required.then_some(json!(true)),
    );
    (!policy.is_empty()).then_some(Value::Object(policy))
}

fn texts(pairs: &[(String, String)]) -> Option<Value> {
    let all = pairs.iter().map(|(key, value)| (key.clone(), json!(value)));
    (!pairs.is_empty()).then(|| Value::Object(all.collect()))
}

fn put(object: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object.insert(name.to_owned(), value);
    }
}
