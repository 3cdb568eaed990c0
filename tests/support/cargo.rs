//! Cargo on this workspace, from within a program that cargo itself started.

use crate::fixtures::repository;
use std::{env, path::PathBuf, process::Command};

/// `cargo` in the workspace, as a person would start it.
pub fn command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository());
    // Cargo tells a test about its package; a build script that looks at the same variables would run for nothing.
    for (name, _) in env::vars_os() {
        let told = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        let name_text = name.to_string_lossy();
        if told.iter().any(|start| name_text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Where cargo puts what it builds.
pub fn target_folder() -> PathBuf {
    let set = env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    // Cargo itself reads a relative path from the folder in which it was started: for the Makefile, the repository.
    repository().join(set.unwrap_or_else(|| "target".into()))
}
