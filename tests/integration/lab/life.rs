//! Start, stop, crash, and several labs at once.

use super::traces::{Suspect, interfaces};
use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::PostParams};
use nix::sys::signal::Signal;
use std::{
    collections::BTreeSet,
    env,
    process::{Command, Stdio},
    time::Duration,
};
use support::{
    lab::{
        Lab, own_name,
        process::Identity,
        state::{Home, LabName, Phase, Tier},
    },
    wait,
};
use tokio::sync::Mutex;

/// Labs of these tests start one after the other, so that the measured times are those of one lab.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

const GONE: Duration = Duration::from_secs(30);

/// What to look for after the end of a lab.
pub(super) fn suspect(lab: &Lab, interfaces: BTreeSet<String>) -> Result<Suspect> {
    let record = lab.record().context("a lab of our own has a record")?;
    Ok(Suspect::new(
        &Home::from_env()?.folder(&record.name),
        record,
        interfaces,
    ))
}

#[tokio::test]
async fn two_labs_side_by_side_do_not_see_each_other() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let shared = support::lab::shared().await?;
    let other = Lab::start(&own_name("other")?, Tier::ControlPlane).await?;
    let mut object = Namespace::default();
    object.metadata.name = Some(format!("only-here-{}", std::process::id()));
    let here: Api<Namespace> = Api::all(other.client().await?);
    here.create(&PostParams::default(), &object).await?;
    let there: Api<Namespace> = Api::all(shared.client().await?);
    let name = object.metadata.name.unwrap_or_default();
    assert!(here.get_opt(&name).await?.is_some());
    assert!(there.get_opt(&name).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_killed_control_plane_leaves_nothing_that_a_new_start_does_not_remove() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    survives_kill(&own_name("killed")?, Tier::ControlPlane).await
}

/// `kill -9` of `lab up`, a new start under the same name, and an orderly end.
pub(super) async fn survives_kill(name: &LabName, tier: Tier) -> Result<()> {
    let before = interfaces()?;
    let lab = Lab::start(name, tier).await?;
    let suspect = suspect(&lab, before)?;
    let record = lab
        .record()
        .context("a lab of our own has a record")?
        .clone();
    record.owner.signal(Signal::SIGKILL)?;
    // The kernel ends every part together with its supervisor, before anybody clears up.
    let processes: Vec<Identity> = record
        .parts
        .into_iter()
        .map(|part| part.process)
        .chain(record.node)
        .collect();
    wait::retry("parts of a killed lab end", GONE, || async {
        for process in &processes {
            anyhow::ensure!(!process.runs()?, "process {} still runs", process.pid);
        }
        Ok(())
    })
    .await?;
    drop(lab);
    let again = Lab::start(name, tier).await?;
    again.client().await?.apiserver_version().await?;
    assert_eq!(again.record().map(|record| record.tier), Some(tier));
    drop(again);
    assert_eq!(suspect.traces()?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_killed_control_plane_is_cleared_by_down() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let before = interfaces()?;
    let lab = Lab::start(&own_name("down")?, Tier::ControlPlane).await?;
    is_cleared_by_down(&lab, before).await
}

/// `kill -9` of `lab up`, and `lab down` instead of a new start.
pub(super) async fn is_cleared_by_down(lab: &Lab, before: BTreeSet<String>) -> Result<()> {
    let suspect = suspect(lab, before)?;
    let record = lab.record().context("a lab of our own has a record")?;
    record.owner.signal(Signal::SIGKILL)?;
    wait::retry("a killed lab ends", GONE, || async {
        anyhow::ensure!(!record.owner.runs()?, "it still runs");
        Ok(())
    })
    .await?;
    support::lab::down::down(&Home::from_env()?, &record.name).await?;
    assert_eq!(suspect.traces()?, Vec::<String>::new());
    Ok(())
}

/// Runs one test of this program in a process of its own.
fn this_program(test: &str) -> Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args(["--exact", test, "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    Ok(command)
}

pub(super) const SMALL_TEST: &str =
    "lab::every_test_has_a_namespace_of_its_own_in_one_shared_control_plane";

#[tokio::test]
async fn a_killed_test_program_takes_its_lab_with_it() -> Result<()> {
    support::starts_labs!();
    let _turn = ONE_AT_A_TIME.lock().await;
    let before = interfaces()?;
    let mut child = this_program(SMALL_TEST)?.env_remove("LAB_REUSE").spawn()?;
    let name: LabName = format!("tests-{}", child.id()).parse()?;
    let home = Home::from_env()?;
    let record = wait::retry("its lab has started processes", GONE, || async {
        let record = home.record(&name)?.context("there is no record yet")?;
        // On a busy machine nobody may look while it starts.
        let begun = matches!(record.phase, Phase::Starting | Phase::Ready);
        anyhow::ensure!(begun, "it is {:?}", record.phase);
        Ok(record)
    })
    .await?;
    child.kill()?;
    child.wait()?;
    let suspect = Suspect::new(&home.folder(&name), &record, before);
    wait::retry("its lab ends and clears up", GONE, || async {
        let traces = suspect.traces()?;
        anyhow::ensure!(
            traces.is_empty() && !record.owner.runs()?,
            "found {traces:?}"
        );
        Ok(())
    })
    .await
}
