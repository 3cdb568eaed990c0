//! Stages: what the `lab` program does as a child of itself, before it becomes another program.
//!
//! They exist because a process can only be bound to its parent, or moved into a namespace, from within.

use anyhow::{Context, Result, bail};
use nix::{
    sys::{prctl::set_pdeathsig, signal::Signal},
    unistd::{Pid, getppid},
};
use std::{convert::Infallible, os::unix::process::CommandExt, process::Command};

/// Becomes `words`, a program and its arguments, that the kernel kills when `parent` is gone.
pub fn part(parent: i32, words: &[String]) -> Result<Infallible> {
    bind_to_parent(parent)?;
    become_program(words)
}

/// Has the kernel kill this process when its parent is gone.
fn bind_to_parent(parent: i32) -> Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // It may have gone before the line above; then nobody would ever send the signal.
    if getppid() != Pid::from_raw(parent) {
        bail!("the lab has gone");
    }
    Ok(())
}

fn become_program(words: &[String]) -> Result<Infallible> {
    let Some((program, arguments)) = words.split_first() else {
        bail!("no program was named");
    };
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("could not run {program}"))
}
