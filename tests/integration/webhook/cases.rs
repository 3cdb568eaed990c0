//! What `kubectl` prints for every rule and kind.
//!
//! A case is a file of `tests/fixtures/admission/<folder>`. Its documents are carried out one after the other: one with a
//! status and no spec is written to the status, a Job is applied and then deleted, any other is applied. The last one is
//! the case; what is printed for it is in `expected.txt` beside it, which `GENERATE=1` rewrites.

mod coverage;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use agents::api::{contract::VERSION, kind::Kind};
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use support::{
    Namespace,
    fixtures::{file_stem, repository},
    kubectl::Said,
    wait,
};

use super::hook::{self, DEADLINE, Station};

/// Commands at the same time.
const SIDE_BY_SIDE: usize = 4;
/// Files of a folder that are no case: its policy, what its cases refer to, and what refers to all of that.
const NO_CASE: [&str; 3] = ["policy", "standing", "known"];

/// One thing that is done to an object.
enum Step {
    Apply(Value),
    WriteStatus(Value),
    Delete(Value),
}

struct Case {
    name: String,
    steps: Vec<Step>,
}

fn folder(name: &str) -> PathBuf {
    repository().join("tests/fixtures/admission").join(name)
}

/// The folders of the kinds, and that of Jobs.
fn kinds() -> Vec<String> {
    let mut folders: Vec<String> = Kind::ALL.into_iter().map(file_stem).collect();
    folders.push("job".to_owned());
    folders
}

fn documents(file: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())
}

/// The cases of a folder, by name.
fn cases(name: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder(name))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension().is_none_or(|end| end != "yaml") || NO_CASE.contains(&&*stem) {
            continue;
        }
        let steps = documents(&path)?.into_iter().flat_map(steps).collect();
        cases.push(Case {
            name: stem.into_owned(),
            steps,
        });
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(cases)
}

fn steps(document: Value) -> Vec<Step> {
    if document["kind"] == "Job" {
        return vec![Step::Apply(document.clone()), Step::Delete(document)];
    }
    let status_only = document.get("status").is_some() && document.get("spec").is_none();
    vec![if status_only {
        Step::WriteStatus(document)
    } else {
        Step::Apply(document)
    }]
}

/// The resource of a kind, for requests that know it only by name.
pub(super) fn resource(kind: &str) -> Result<ApiResource> {
    let ours = Kind::ALL.into_iter().find(|known| known.as_str() == kind);
    let (group, version, plural) = match ours {
        Some(kind) => (kind.group(), VERSION, kind.plural()),
        None if kind == "Job" => ("batch", "v1", "jobs"),
        None => anyhow::bail!("{kind} is no kind of ours"),
    };
    Ok(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    })
}

fn text_of<'v>(object: &'v Value, pointer: &str) -> Result<&'v str> {
    let text = object.pointer(pointer).and_then(Value::as_str);
    text.with_context(|| format!("no {pointer} in {object}"))
}

/// The argument by which `kubectl` knows an object.
fn argument(object: &Value) -> Result<String> {
    let resource = resource(text_of(object, "/kind")?)?;
    let name = text_of(object, "/metadata/name")?;
    Ok(format!("{}.{}/{name}", resource.plural, resource.group))
}

async fn take(here: &Namespace, step: &Step) -> Result<Said> {
    match step {
        Step::Apply(object) => {
            let apply = ["apply", "--filename", "-"];
            here.kubectl
                .run_with_input(&apply, &object.to_string())
                .await
        }
        Step::WriteStatus(object) => {
            let patch = json!({"status": object["status"]}).to_string();
            let object = argument(object)?;
            let patch = [
                "patch",
                &object,
                "--subresource=status",
                "--type=merge",
                "--patch",
                &patch,
            ];
            here.kubectl.run(&patch).await
        }
        Step::Delete(object) => {
            let delete = ["delete", &argument(object)?, "--wait=false"];
            here.kubectl.run(&delete).await
        }
    }
}

/// The reasons for which the API server refuses a step, which `kubectl` does not print: asked again in a dry run.
async fn reasons(here: &Namespace, step: &Step, first: bool) -> Result<Vec<String>> {
    let (Step::Apply(object) | Step::WriteStatus(object) | Step::Delete(object)) = step;
    let resource = resource(text_of(object, "/kind")?)?;
    let api: Api<DynamicObject> = Api::namespaced_with(here.client.clone(), &here.name, &resource);
    let name = text_of(object, "/metadata/name")?;
    let patch = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let answer = match step {
        Step::Apply(_) if first => {
            let params = PostParams {
                dry_run: true,
                field_manager: None,
            };
            let object = serde_json::from_value(object.clone())?;
            api.create(&params, &object).await.map(drop)
        }
        Step::Apply(_) => {
            let change = json!({"spec": object["spec"]});
            api.patch(name, &patch, &Patch::Merge(change))
                .await
                .map(drop)
        }
        Step::WriteStatus(_) => {
            let change = Patch::Merge(json!({"status": object["status"]}));
            api.patch_status(name, &patch, &change).await.map(drop)
        }
        Step::Delete(_) => {
            let params = DeleteParams {
                dry_run: true,
                ..DeleteParams::default()
            };
            api.delete(name, &params).await.map(drop)
        }
    };
    match answer {
        Ok(()) => anyhow::bail!("`kubectl` was refused, but a dry run passes: {object}"),
        Err(kube::Error::Api(status)) => {
            let causes = status.details.map(|details| details.causes);
            let mut found: Vec<String> = Vec::new();
            for cause in causes.unwrap_or_default() {
                if !found.contains(&cause.reason) {
                    found.push(cause.reason);
                }
            }
            Ok(found)
        }
        Err(error) => Err(error.into()),
    }
}

/// Carries a case out and writes down how it ended.
async fn play(here: &Namespace, case: &Case) -> Result<String> {
    let (last, before) = case.steps.split_last().context("a case without a step")?;
    for step in before {
        let said = take(here, step).await?;
        ensure!(
            said.code == Some(0),
            "{}: what comes before the case is refused: {}",
            case.name,
            said.stderr
        );
    }
    let Said {
        code,
        stdout,
        stderr,
    } = take(here, last).await?;
    let verdict = match code {
        Some(0) => "accepted".to_owned(),
        Some(_) | None => {
            let reasons = reasons(here, last, before.is_empty()).await?;
            format!("refused, {}", reasons.join(", "))
        }
    };
    let said = format!("{stdout}{stderr}").replace(&here.name, "NAMESPACE");
    Ok(format!("# {}: {verdict}\n{said}\n", case.name))
}

/// Applies what the cases of a folder refer to, and waits until the webhook knows all of it: a dry run of objects that
/// refer to everything then gives no warning and is accepted.
async fn prepare(here: &Namespace, name: &str) -> Result<()> {
    for folder in [folder(""), folder(name)] {
        for (file, flags) in [
            ("standing", &["apply"][..]),
            ("known", &["apply", "--dry-run=server"]),
        ] {
            let path = folder.join(file).with_extension("yaml");
            let Ok(text) = fs::read_to_string(path) else {
                continue;
            };
            let command = [flags, &["--filename", "-"]].concat();
            let quiet = || async {
                let said = here.kubectl.run_with_input(&command, &text).await?;
                let quiet = said.code == Some(0) && said.stderr.is_empty();
                ensure!(
                    file == "standing" && said.code == Some(0) || quiet,
                    "{}",
                    said.stderr
                );
                Ok(())
            };
            wait::retry(&format!("{file} objects of {name}"), DEADLINE, quiet).await?;
        }
    }
    Ok(())
}

/// Carries out all cases of these folders and compares with what is expected.
async fn compare(here: &Namespace, folders: &[String]) -> Result<()> {
    let mut wrong = Vec::new();
    for name in folders {
        let cases = cases(name)?;
        let played: Vec<String> = stream::iter(cases.iter().map(|case| play(here, case)))
            .buffered(SIDE_BY_SIDE)
            .try_collect()
            .await?;
        let said = played.concat();
        let file = folder(name).join("expected.txt");
        if env::var_os("GENERATE").is_some() {
            fs::write(&file, &said)?;
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        let known: Vec<&str> = expected.split_inclusive("\n\n").collect();
        let differing = played.iter().filter(|case| !known.contains(&case.as_str()));
        wrong.extend(differing.map(|case| format!("{name}: {case}")));
        if known.len() != played.len() {
            wrong.push(format!("{name}: {} has other cases", file.display()));
        }
    }
    ensure!(
        wrong.is_empty(),
        "GENERATE=1 takes these over into expected.txt:\n\n{}",
        wrong.concat()
    );
    Ok(())
}

#[tokio::test]
async fn every_rule_is_told_by_kubectl_as_it_is_written_down() -> Result<()> {
    support::own_lab!();
    let here = hook::namespace("cases").await?;
    prepare(&here, "job").await?;
    compare(&here, &kinds()).await
}

async fn under_policy(name: &str) -> Result<()> {
    let station = Station::with_policy(&folder(name).join("policy.yaml")).await?;
    let here = station.registered.namespace(name).await?;
    prepare(&here, name).await?;
    compare(&here, &[name.to_owned()]).await
}

#[tokio::test]
async fn a_strict_policy_is_told_by_kubectl_as_it_is_written_down() -> Result<()> {
    support::own_lab!();
    under_policy("strict").await
}

#[tokio::test]
async fn a_lenient_policy_is_told_by_kubectl_as_it_is_written_down() -> Result<()> {
    support::own_lab!();
    under_policy("lenient").await
}
