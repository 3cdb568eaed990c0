//! `agents crds diff` and `agents crds apply`: the API server itself says what would change, by a dry run.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::changes::{Standing, changes, dropped, text};
use crate::api::contract::COMMAND_LINE_MANAGER;
use crate::api::crd;
use crate::cli::failure::Failure;
use crate::cli::session::{Access, ask};
use crate::cli::shown::{Paint, print};
use crate::kit::exit::Exit;

type Definitions = Api<CustomResourceDefinition>;

/// Shows how the cluster's definitions stand to ours.
pub(super) async fn diff(access: Access) -> Result<Exit, Failure> {
    let api = Api::all(access.connect().await?.client);
    let mut exit = Exit::Done;
    for wanted in crd::all() {
        let standing = look(&api, &wanted).await?;
        if standing != Standing::Same {
            exit = Exit::Found;
        }
        print(&text(&wanted.name_any(), &standing, Paint::of_output()))?;
    }
    Ok(exit)
}

/// Looks at all first, so that nothing is done where one cannot be.
pub(super) async fn apply(access: Access, force: bool, time: Duration) -> Result<Exit, Failure> {
    let api: Definitions = Api::all(access.connect().await?.client);
    let mut looked_at = Vec::new();
    for wanted in crd::all() {
        let standing = look(&api, &wanted).await?;
        looked_at.push((wanted, standing));
    }
    refuse_to_drop(&looked_at)?;
    let params = PatchParams {
        force,
        ..PatchParams::apply(COMMAND_LINE_MANAGER)
    };
    for (wanted, standing) in &looked_at {
        let name = wanted.name_any();
        let call = api.patch(&name, &params, &Patch::Apply(wanted)).await;
        call.map_err(|error| refused(&name, &error))?;
        let said = match standing {
            Standing::Missing => format!("{name} created\n"),
            Standing::Same => format!("{name} unchanged\n"),
            Standing::Differs(_) | Standing::Drops(_) => {
                let shown = text(&name, standing, Paint::of_output());
                format!(
                    "{name} changed\n{}",
                    shown.split_once('\n').map_or("", |(_, fields)| fields)
                )
            }
        };
        print(&said)?;
    }
    let end = Instant::now() + time;
    for (wanted, _) in &looked_at {
        wait_until_served(&api, &wanted.name_any(), end, time).await?;
    }
    print(&format!(
        "All {} definitions are served.\n",
        looked_at.len()
    ))?;
    Ok(Exit::Done)
}

/// How one definition stands. Nothing is changed: the API server only says what would be.
async fn look(api: &Definitions, wanted: &CustomResourceDefinition) -> Result<Standing, Failure> {
    let name = wanted.name_any();
    let Some(live) = ask(&format!("read the definition {name}"), api.get_opt(&name)).await? else {
        return Ok(Standing::Missing);
    };
    let stored = live
        .status
        .as_ref()
        .and_then(|status| status.stored_versions.clone());
    let versions: Vec<String> = wanted
        .spec
        .versions
        .iter()
        .map(|version| version.name.clone())
        .collect();
    let lost = dropped(&stored.unwrap_or_default(), &versions);
    if !lost.is_empty() {
        return Ok(Standing::Drops(lost));
    }
    let params = PatchParams {
        force: true,
        dry_run: true,
        ..PatchParams::apply(COMMAND_LINE_MANAGER)
    };
    let what = format!("rehearse the change of {name}");
    let next = ask(&what, api.patch(&name, &params, &Patch::Apply(wanted))).await?;
    let spec = |definition: &CustomResourceDefinition| {
        serde_json::to_value(&definition.spec).unwrap_or(Value::Null)
    };
    let found = changes(&spec(&live), &spec(&next));
    Ok(match found.is_empty() {
        true => Standing::Same,
        false => Standing::Differs(found),
    })
}

fn refuse_to_drop(looked_at: &[(CustomResourceDefinition, Standing)]) -> Result<(), Failure> {
    let lines = looked_at
        .iter()
        .filter_map(|(wanted, standing)| match standing {
            Standing::Drops(_) => Some(text(&wanted.name_any(), standing, Paint::PLAIN)),
            Standing::Missing | Standing::Same | Standing::Differs(_) => None,
        });
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    if lines.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("nothing was applied: {}", lines.join("; ")))
        .next("use the program of the version that stored them, or rewrite the objects and take the version out of status.storedVersions"))
}

fn refused(name: &str, error: &kube::Error) -> Failure {
    let failure = Failure::call(&format!("apply {name}"), error);
    let is_conflict = matches!(error, kube::Error::Api(status) if status.code == 409);
    match is_conflict {
        true => failure.next(
            "--force-conflicts takes these fields over; whoever wrote them will see the change",
        ),
        false => failure,
    }
}

async fn wait_until_served(
    api: &Definitions,
    name: &str,
    end: Instant,
    time: Duration,
) -> Result<(), Failure> {
    let mut states = std::pin::pin!(watcher::watch_object(api.clone(), name).default_backoff());
    let mut last = "nothing was seen of it".to_owned();
    loop {
        match timeout_at(end, states.next()).await {
            Ok(Some(Ok(Some(seen)))) => match unserved(&seen) {
                None => return Ok(()),
                Some(why) => last = why,
            },
            Ok(Some(Ok(None))) => last = "it is gone".to_owned(),
            Ok(Some(Err(error))) => last = error.to_string(),
            Ok(None) | Err(_) => {
                return Err(Failure::new(format!(
                    "{name} is not served after {} s: {last}",
                    time.as_secs()
                ))
                .exit(Exit::TimedOut)
                .next(format!(
                    "`kubectl describe crd {name}` shows its conditions"
                )));
            }
        }
    }
}

/// Why a definition is not served yet; none if it is.
fn unserved(seen: &CustomResourceDefinition) -> Option<String> {
    let conditions = seen
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let holds = |type_: &str| {
        conditions
            .iter()
            .any(|one| one.type_ == type_ && one.status == "True")
    };
    if holds("Established") && holds("NamesAccepted") {
        return None;
    }
    let told = conditions
        .iter()
        .filter(|one| one.status != "True" && one.type_ != "Terminating");
    let told: Vec<String> = told
        .map(|one| {
            format!(
                "{}: {}",
                one.type_,
                one.message.as_deref().unwrap_or_default()
            )
        })
        .collect();
    Some(match told.is_empty() {
        true => "it has no condition Established yet".to_owned(),
        false => told.join("; "),
    })
}
