//! `agents run submit`: makes a run from flags. What is wrong with it is said before it is sent.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::Value;

use super::manifest::{Runtime, VcsMode, manifest};
use super::{Patience, list, wait};
use crate::api::contract::COMMAND_LINE_MANAGER;
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::object::examine::examine;
use crate::cli::failure::Failure;
use crate::cli::session::{Access, ask};
use crate::cli::shown::{Format, print};
use crate::kit::exit::Exit;

/// The run that is asked for.
#[derive(Debug, clap::Args)]
#[group(id = "work", args = ["implementation", "text"], required = true, multiple = false)]
pub(super) struct Args {
    /// Name of the run; the API server makes one up from the agent's if left out.
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Agent that does the work.
    #[arg(long)]
    pub(super) agent: String,
    /// ImplementationSpec that says what is to be done.
    #[arg(long = "impl", value_name = "NAME")]
    pub(super) implementation: Option<String>,
    /// What is to be done, in words.
    #[arg(long)]
    pub(super) text: Option<String>,
    /// What carries the run out.
    #[arg(long, value_enum, default_value_t)]
    pub(super) runtime: Runtime,
    /// Setting of the runtime; a value that is JSON is taken as such.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) runtime_config: Vec<(String, String)>,
    /// Value for the templates of the provider.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) param: Vec<(String, String)>,
    /// Label of the run.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) label: Vec<(String, String)>,
    /// Runs with the same key are carried out only once.
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
    /// Image of the container.
    #[arg(long, alias = "workload-image")]
    pub(super) image: Option<String>,
    /// Processor time that is reserved, such as 500m.
    #[arg(long, value_name = "AMOUNT")]
    pub(super) cpu: Option<String>,
    /// Memory that is reserved, such as 1Gi.
    #[arg(long, value_name = "AMOUNT")]
    pub(super) memory: Option<String>,
    /// Memory that the agent uses.
    #[arg(long, value_name = "NAME")]
    pub(super) memory_ref: Option<String>,
    /// Secret whose entries become environment variables.
    #[arg(long, value_name = "NAME")]
    pub(super) secret: Vec<String>,
    /// VersionControlProvider that holds the repository.
    #[arg(long, value_name = "NAME")]
    pub(super) vcs: Option<String>,
    /// How the repository is used.
    #[arg(long, value_enum)]
    pub(super) vcs_mode: Option<VcsMode>,
    /// Refuse to run without a repository.
    #[arg(long)]
    pub(super) vcs_required: bool,
    /// Print the run and do not make it.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Wait for its end.
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    patience: Patience,
    /// How the run is shown, at its end if that is waited for; only its name if left out.
    #[arg(short, long, value_enum)]
    pub(super) output: Option<Format>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("`{text}` is not KEY=VALUE")),
    }
}

pub(super) async fn run(access: &Access, args: &Args) -> Result<Exit, Failure> {
    refuse_twice(args)?;
    let object = manifest(args);
    refuse_faults(&object)?;
    let run: AgentRun = serde_json::from_value(object)
        .map_err(|error| Failure::misused("these flags make no run").because(&error))?;
    if args.dry_run {
        list::show(&run, args.output.unwrap_or(Format::Yaml))?;
        return Ok(Exit::Done);
    }
    let session = access.connect().await?;
    let params = PostParams {
        field_manager: Some(COMMAND_LINE_MANAGER.to_owned()),
        ..PostParams::default()
    };
    let made = ask("submit the run", session.api().create(&params, &run)).await?;
    let name = made.name_any();
    match args.output {
        // One document only: the run as it is at its end.
        Some(_) if args.wait => {}
        Some(format) => list::show(&made, format)?,
        None => print(&format!("{name}\n"))?,
    }
    match args.wait {
        true => wait::until_over(&session, &name, args.patience.timeout, args.output).await,
        false => Ok(Exit::Done),
    }
}

/// The last one would win in silence.
fn refuse_twice(args: &Args) -> Result<(), Failure> {
    let given = [
        ("--param", &args.param),
        ("--label", &args.label),
        ("--runtime-config", &args.runtime_config),
    ];
    for (flag, pairs) in given {
        let keys: BTreeMap<_, _> = pairs.iter().map(|(key, value)| (key, value)).collect();
        if keys.len() < pairs.len() {
            return Err(Failure::misused(format!(
                "{flag} is given twice for the same key"
            )));
        }
    }
    Ok(())
}

/// The API server would say the same, one fault at a time and without the rules beyond the schema.
fn refuse_faults(object: &Value) -> Result<(), Failure> {
    let causes = examine(Kind::AgentRun, object, None);
    if causes.is_empty() {
        return Ok(());
    }
    let lines = causes
        .iter()
        .map(|cause| format!("\n  {}: {}", cause.field, cause.message));
    let lines: String = lines.collect();
    Err(Failure::misused(format!(
        "the run would be refused:{lines}"
    )))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn line(words: &[&str]) -> Result<Args, clap::Error> {
        Line::try_parse_from(["submit"].iter().chain(words)).map(|line| line.args)
    }

    #[test]
    fn flags_make_the_run_that_they_say() {
        let args = line(&[
            "--agent",
            "coder",
            "--impl",
            "fix",
            "--param",
            "a=b=c",
            "--label",
            "team=x",
            "--cpu",
            "500m",
            "--memory",
            "1Gi",
            "--image",
            "i:1",
            "--idempotency-key",
            "k",
            "--vcs",
            "git",
            "--vcs-mode",
            "read-only",
            "--vcs-required",
            "--secret",
            "s",
            "--memory-ref",
            "m",
            "--runtime-config",
            "ttlSecondsAfterFinished=60",
            "--runtime-config",
            "queue=fast",
            "--name",
            "one",
        ])
        .unwrap();
        let expected = serde_json::json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"name": "one", "labels": {"team": "x"}},
            "spec": {
                "agentRef": {"name": "coder"}, "implementationSpecRef": {"name": "fix"},
                "runtime": {"type": "job", "config": {"ttlSecondsAfterFinished": 60, "queue": "fast"}},
                "parameters": {"a": "b=c"}, "idempotencyKey": "k", "secrets": ["s"], "memoryRef": {"name": "m"},
                "workload": {"image": "i:1", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
                "vcsRef": {"name": "git"}, "vcsPolicy": {"mode": "read-only", "required": true},
            },
        });
        assert_eq!(manifest(&args), expected);
        refuse_faults(&manifest(&args)).unwrap();
    }

    #[test]
    fn the_smallest_run_has_a_name_of_the_api_servers_making() {
        let args = line(&["--agent", "coder", "--text", "Do it."]).unwrap();
        let expected = serde_json::json!({
            "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
            "metadata": {"generateName": "coder-"},
            "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
                "runtime": {"type": "job"}},
        });
        assert_eq!(manifest(&args), expected);
        refuse_faults(&manifest(&args)).unwrap();
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        let cases: [(&[&str], &str); 4] = [
            (&["--agent", "a"], "required"),
            (
                &["--agent", "a", "--impl", "i", "--text", "t"],
                "cannot be used with",
            ),
            (
                &["--agent", "a", "--impl", "i", "--param", "x"],
                "`x` is not KEY=VALUE",
            ),
            (
                &["--agent", "a", "--impl", "i", "--runtime", "temporal"],
                "invalid value",
            ),
        ];
        for (words, expected) in cases {
            let error = line(words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let twice = line(&[
            "--agent", "a", "--impl", "i", "--param", "x=1", "--param", "x=2",
        ])
        .unwrap();
        assert_eq!(refuse_twice(&twice).unwrap_err().code(), Exit::Misused);
        let wrong = line(&["--agent", "a", "--impl", "i", "--cpu", "lots"]).unwrap();
        let failure = refuse_faults(&manifest(&wrong)).unwrap_err();
        assert!(
            failure.text().contains("spec.workload.resources.requests"),
            "{}",
            failure.text()
        );
    }
}
