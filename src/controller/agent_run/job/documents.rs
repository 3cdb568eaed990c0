//! What the runner reads: the run as a document, its own settings, and the input files of the provider.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::place;
use crate::api::kinds::agents::agent_provider::InputFile;
use crate::controller::agent_run::settings::Runner;
use crate::controller::agent_run::vcs;
use crate::controller::agent_run::work::{Prompt, Work};

/// Where the documents are in the container.
pub(super) const RUN: &str = "/workspace/run.json";
pub(super) const RUNNER: &str = "/workspace/agent-runner.json";

/// Parameters that a runner looks for at the top of the document.
const EVENT_FIELDS: [&str; 9] = [
    "prompt",
    "repository",
    "issueNumber",
    "issueTitle",
    "issueBody",
    "issueUrl",
    "base",
    "head",
    "stage",
];

/// Names of the ConfigMaps and what is in each.
pub(super) fn config_maps(
    work: &Work<'_>,
    runner: &Runner,
) -> Vec<(String, BTreeMap<String, String>)> {
    let text = |document: Value| format!("{document:#}");
    let documents = BTreeMap::from([
        ("run.json".to_owned(), text(run(work))),
        ("agent-runner.json".to_owned(), text(settings(work, runner))),
    ]);
    let mut maps = vec![(work.turn.child(work.run, "spec"), documents)];
    let inputs = input_files(work);
    if inputs.len() > 0 {
        let files = inputs.map(|(key, file)| (key, file.content.clone()));
        maps.push((work.turn.child(work.run, "inputs"), files.collect()));
    }
    maps
}

/// The input files of the provider, each with its key in the ConfigMap.
pub(super) fn input_files<'a>(
    work: &Work<'a>,
) -> impl ExactSizeIterator<Item = (String, &'a InputFile)> {
    let files = work.provider.spec.input_files.as_deref();
    let files = files.unwrap_or_default().iter().enumerate();
    files.map(|(index, file)| (format!("input-{index}"), file))
}

fn run(work: &Work<'_>) -> Value {
    let Work {
        run,
        provider,
        implementation,
        memory,
        prompt,
        parameters,
        metadata,
        ..
    } = work;
    let memory = memory.map(|memory| {
        let secret = &memory.spec.connection.secret_ref.name;
        json!({"type": memory.spec.type_, "connectionRef": secret})
    });
    let artifacts = provider.spec.output_artifacts.as_deref();
    let mut document = json!({
        "provider": provider.name_any(),
        "agentRun": {"name": run.name_any(), "uid": run.uid(), "namespace": run.namespace()},
        "implementation": implementation,
        "parameters": parameters,
        "memory": memory,
        "artifacts": artifacts.unwrap_or_default(),
        "metadata": {"map": metadata},
    });
    if let (Prompt::Text(text), Some(fields)) = (prompt, document.as_object_mut()) {
        fields.insert("systemPrompt".to_owned(), json!(text));
    }
    if let (Some(vcs), Some(fields)) = (work.vcs.used(), document.as_object_mut()) {
        fields.insert("vcs".to_owned(), vcs::document(vcs));
    }
    if let (Some(place), Some(fields)) = (place(work), document.as_object_mut()) {
        fields.insert("step".to_owned(), place);
    }
    let event: Map<String, Value> = EVENT_FIELDS
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), json!(metadata.get(field)?))))
        .collect();
    if let Some(fields) = document.as_object_mut() {
        fields.extend(event);
    }
    document
}

fn settings(work: &Work<'_>, runner: &Runner) -> Value {
    let config = work.run.spec.runtime.config.as_ref();
    let own = config.and_then(|config| config.get("logRetentionSeconds")?.as_f64());
    let own = own.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    json!({
        "provider": work.provider.name_any(),
        "inputs": work.parameters,
        "payloads": {"eventFilePath": RUN},
        "artifacts": {
            "statusPath": "/workspace/.agent/status.json",
            "logPath": "/workspace/.agent/runner.log",
            "logRetentionSeconds": own.unwrap_or(runner.log_retention).as_secs(),
        },
    })
}
