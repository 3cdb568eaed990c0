//! `agents version`: which build this is, and which Kubernetes it talks to.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args as ClapArgs;
use serde::Serialize;
use tokio::time::timeout;

use super::shown::Output;
use super::told;
use crate::api::crd::{self, YamlError};
use crate::api::kind::Kind;
use crate::api::text::hash::text_hash;
use crate::cluster;
use crate::kit::program::{self, Error as ProgramError};

/// Set by whoever builds a release.
const COMMIT: Option<&str> = option_env!("AGENTS_COMMIT");
/// Time for the API server to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to ask, and how to show it.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub struct Args {
    /// Tell of this program only, without asking a cluster.
    #[arg(long)]
    client: bool,
    /// How it is shown.
    #[arg(short = 'o', long, value_enum, default_value_t)]
    output: Output,
}

/// What could not be said.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("could not write a definition as YAML")]
    Yaml(#[from] YamlError),
    #[error("could not write the version as JSON")]
    Json(#[from] serde_json::Error),
    #[error("could not print the version")]
    Print(#[from] io::Error),
}

/// This build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    program: &'static str,
    version: &'static str,
    /// The commit that it was built from, where the build was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    /// The oldest compiler that builds it.
    rust_version: &'static str,
    /// SHA-256 over all definitions that `agents crds` prints, so that two builds can be compared.
    crds: String,
    /// The version of the API server, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    kubernetes: Option<String>,
}

impl Version {
    fn new(kubernetes: Option<String>) -> Result<Self, Error> {
        let definitions = Kind::ALL.map(|kind| crd::to_yaml(&crd::definition(kind)));
        let definitions: Vec<String> = definitions.into_iter().collect::<Result<_, _>>()?;
        Ok(Self {
            program: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            commit: COMMIT,
            rust_version: env!("CARGO_PKG_RUST_VERSION"),
            crds: text_hash(&definitions.concat()),
            kubernetes,
        })
    }

    fn show(&self, output: Output) -> Result<String, Error> {
        if output == Output::Json {
            return Ok(serde_json::to_string_pretty(self)? + "\n");
        }
        let Self {
            program,
            version,
            commit,
            rust_version,
            crds,
            kubernetes,
        } = self;
        let mut text = format!("{program} {version}\n");
        if let Some(commit) = commit {
            text += &format!("commit: {commit}\n");
        }
        text += &format!("rust: {rust_version} or newer\ncrds: sha256:{crds}\n");
        if let Some(kubernetes) = kubernetes {
            text += &format!("kubernetes: {kubernetes}\n");
        }
        Ok(text)
    }
}

/// Tells.
pub fn run(args: &Args) -> ExitCode {
    let Args { client, output } = *args;
    if client {
        return told(print(None, output));
    }
    program::block_on(async move {
        let failed = |source| ProgramError::Start {
            what: "ask the API server for its version; --client does not ask",
            source,
        };
        let client = cluster::client().await?;
        let answer = timeout(PATIENCE, client.apiserver_version()).await;
        let answer = answer.map_err(|elapsed| failed(elapsed.into()))?;
        let version = answer.map_err(|error| failed(error.into()))?;
        print(Some(version.git_version), output).map_err(|error| failed(error.into()))
    })
}

fn print(kubernetes: Option<String>, output: Output) -> Result<(), Error> {
    let text = Version::new(kubernetes)?.show(output)?;
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_known_by_its_version_and_its_definitions() {
        let version = Version::new(None).unwrap();
        assert_eq!(version, Version::new(None).unwrap());
        assert_eq!(version.crds.len(), 64);
        let json: serde_json::Value =
            serde_json::from_str(&version.show(Output::Json).unwrap()).unwrap();
        assert_eq!(json["program"], "agents");
        assert_eq!(json["crds"], version.crds);
        assert_eq!(json.get("kubernetes"), None);
        let text = Version::new(Some("v1.35.1".to_owned())).unwrap();
        let text = text.show(Output::Text).unwrap();
        assert!(text.starts_with(concat!("agents ", env!("CARGO_PKG_VERSION"), "\n")));
        assert!(text.ends_with("\nkubernetes: v1.35.1\n"), "{text}");
    }
}
