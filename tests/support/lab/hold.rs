//! Labs in the background: one that lives as long as a value of this process, or one that lives on by itself.
//!
//! A held lab runs as `lab up --until-stdin-closes`, its standard input being a pipe from here. The kernel closes
//! the pipe when this process is gone, also after a panic or `kill -9`, and the lab then stops by itself and clears up.

use super::{
    process::supervisor,
    state::{Home, LabName, Phase, Record, Tier},
};
use anyhow::{Context, Result, bail};
use std::{
    env, io,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// From the end of the build to a usable lab.
const START_DEADLINE: Duration = Duration::from_secs(300);
/// Between two looks at the lab's record.
const PERIOD: Duration = Duration::from_millis(20);

/// Starts a lab that lives until `lab down`, and returns when it is usable.
///
/// What it says until then is passed on; `flags` are further flags of `lab up`.
pub async fn detach(name: &LabName, tier: Tier, flags: &[&str]) -> Result<Record> {
    let mut child = up(name, tier)?
        .args(flags)
        .arg("--own-session")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut said) = child.stderr.take() {
        // Ends with this process at the latest; the lab does not mind when nobody listens any more.
        thread::spawn(move || io::copy(&mut said, &mut io::stderr()));
    }
    usable(name, &mut child).await
}

/// The hold on a lab.
pub(super) struct Held {
    child: Child,
    record: Record,
}

impl Held {
    pub(super) async fn start(name: &LabName, tier: Tier, flags: &[&str]) -> Result<Self> {
        let mut child = up(name, tier)?
            .args(flags)
            .arg("--until-stdin-closes")
            .stdin(Stdio::piped())
            .spawn()?;
        let record = usable(name, &mut child).await?;
        Ok(Self { child, record })
    }

    pub(super) fn record(&self) -> &Record {
        &self.record
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // A lab that cannot stop has said why on the terminal.
        let _ = self.child.wait();
    }
}

fn up(name: &LabName, tier: Tier) -> Result<Command> {
    let mut command = Command::new(program()?);
    command
        .args(["up", "--name", &name.to_string(), "--tier", tier.number()])
        .stdout(Stdio::null());
    Ok(command)
}

/// Follows the lab's record until it is usable.
async fn usable(name: &LabName, child: &mut Child) -> Result<Record> {
    let home = Home::from_env()?;
    let mut end = Instant::now() + START_DEADLINE;
    loop {
        if let Some(status) = child.try_wait()? {
            let said = supervisor::last_words(&home.folder(name), "lab");
            bail!("`lab up --name {name}` ended with {status}: {said}");
        }
        let record = home.record(name)?;
        let ours = record.filter(|record| u32::try_from(record.owner.pid) == Ok(child.id()));
        match ours {
            Some(record) if record.phase == Phase::Ready => return Ok(record),
            // A build has its own deadline and tells how far it is.
            Some(record) if record.phase == Phase::Building => {
                end = Instant::now() + START_DEADLINE
            }
            Some(_) | None => {}
        }
        if Instant::now() >= end {
            bail!(
                "lab `{name}` is not usable after {START_DEADLINE:?}; see `lab logs --name {name}`"
            );
        }
        sleep(PERIOD).await;
    }
}

/// The `lab` program, which cargo puts beside the folder of the test programs.
fn program() -> Result<PathBuf> {
    let this = env::current_exe()?;
    let folders = this.ancestors().skip(1).take(2);
    let found = folders
        .map(|folder| folder.join("lab"))
        .find(|lab| lab.is_file());
    found.with_context(|| {
        format!(
            "there is no `lab` beside {}; build it with `cargo build -p agents-tests`",
            this.display()
        )
    })
}
