//! `agents completions` and `agents man`: what a shell and `man` want to know about the commands.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap_complete::Shell;

use super::command;

/// For which shell.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Where to.
#[derive(Clone, Debug, ClapArgs)]
pub struct ManArgs {
    /// Folder to write to, one page per command; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

/// Pages that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The output was refused.
    #[error("could not print the completions")]
    Print(#[source] io::Error),
    /// A file or folder was refused.
    #[error("could not write manual pages to {folder}")]
    Write {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Prints what completes commands.
pub fn completions(args: &CompletionsArgs) -> Result<(), Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command(None), "agents", &mut text);
    match io::stdout().lock().write_all(&text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Error::Print),
    }
}

/// Writes the manual pages.
pub fn man(args: &ManArgs) -> Result<(), Error> {
    let folder = &args.output;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command(None), folder))
        .map_err(|source| Error::Write {
            folder: folder.clone(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::ffi::OsStr;

    #[test]
    fn every_shell_can_complete_every_command() {
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command(None), "agents", &mut text);
            let text = String::from_utf8(text).unwrap();
            for wanted in command(None).get_subcommands() {
                assert!(
                    text.contains(wanted.get_name()),
                    "{shell}: {}",
                    wanted.get_name()
                );
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("man1");
        man(&ManArgs {
            output: output.clone(),
        })
        .unwrap();
        for wanted in command(None).get_subcommands() {
            let page = output.join(format!("agents-{}.1", wanted.get_name()));
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(text.contains(".TH"), "{}", page.display());
        }
    }

    #[test]
    fn the_program_goes_by_the_name_that_people_type() {
        for (program, name) in [
            (None, "agents"),
            (Some("/usr/bin/agents"), "agents"),
            (Some("/home/me/.krew/bin/kubectl-agents"), "kubectl agents"),
        ] {
            let mut command = command(program.map(OsStr::new));
            let usage = command.render_usage().to_string();
            assert!(usage.contains(&format!("Usage: {name} ")), "{usage}");
        }
    }
}
