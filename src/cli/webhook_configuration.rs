//! `agents webhook-configuration`: what the API server must be told about the webhook, on one rung of the ladder.
//!
//! What it says is decided in `api::registration`. Exit codes: 0 printed, 1 a file could not be read or the output was
//! refused, 2 the command line is wrong.

use crate::api::registration::rung::Rung;
use crate::api::registration::{DEFAULT_NAME, Reach, Registration};
use clap::{ArgGroup, Args as ClapArgs};
use k8s_openapi::Resource;
use serde::Serialize;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What to print.
#[derive(Clone, Debug, ClapArgs)]
#[command(group = ArgGroup::new("reach").args(["service_namespace", "url"]).required(true))]
pub struct Args {
    /// How far the rollout is: audit, warn, deny, fail-labelled or fail.
    #[arg(long)]
    rung: Rung,
    /// Namespace of the webhook's Service.
    #[arg(long)]
    service_namespace: Option<String>,
    /// Name of the webhook's Service.
    #[arg(long, default_value = DEFAULT_NAME, conflicts_with = "url")]
    service_name: String,
    /// Port of the webhook's Service.
    #[arg(long, default_value_t = 443, value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "url")]
    service_port: u16,
    /// Address of a webhook outside the cluster, such as https://10.0.0.1:8443; each entry adds its path.
    #[arg(long, value_parser = https)]
    url: Option<String>,
    /// Certificates of those who may have issued the webhook's certificate, in PEM; leave it out where cert-manager
    /// fills it in.
    #[arg(long)]
    ca_file: Option<PathBuf>,
    /// Name of both configurations.
    #[arg(long, default_value = DEFAULT_NAME)]
    name: String,
}

/// The API server calls nothing that is not encrypted, and takes no address with a query.
fn https(given: &str) -> Result<String, String> {
    let rest = given.strip_prefix("https://").unwrap_or_default();
    let good = !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', '@', ' ']);
    match good {
        true => Ok(given.to_owned()),
        false => Err("expected an address such as https://10.0.0.1:8443".to_owned()),
    }
}

/// Configurations that could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The CA file cannot be read.
    #[error("could not read the CA file {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The CA file is something else.
    #[error("the CA file {path} has no PEM certificate")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A configuration has no JSON form.
    #[error("could not write the configurations as JSON")]
    Json(#[from] serde_json::Error),
    /// A configuration has no YAML form.
    #[error("could not write the configurations as YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
    /// The output was refused.
    #[error("could not print the configurations")]
    Print(#[source] io::Error),
}

/// Prints both configurations.
pub fn run(args: Args) -> Result<(), Error> {
    let text = text(&registration(args)?)?;
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Error::Print),
    }
}

fn registration(args: Args) -> Result<Registration, Error> {
    let Args {
        rung,
        service_namespace,
        service_name,
        service_port,
        url,
        ca_file,
        name,
    } = args;
    let reach = match url {
        Some(url) => Reach::Url(url),
        None => Reach::Service {
            namespace: service_namespace.unwrap_or_default(), // clap has seen to it that one of the two is there
            name: service_name,
            port: service_port.into(),
        },
    };
    let ca = ca_file.as_deref().map(read).transpose()?;
    Ok(Registration {
        name,
        rung,
        reach,
        ca,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let path = path.to_owned();
    match fs::read(&path) {
        Ok(pem) if String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") => Ok(pem),
        Ok(_) => Err(Error::NoCertificate { path }),
        Err(source) => Err(Error::Read { path, source }),
    }
}

/// Both configurations as one stream of YAML documents.
pub fn text(registration: &Registration) -> Result<String, Error> {
    let mutating = yaml(&registration.mutating())?;
    let validating = yaml(&registration.validating())?;
    Ok(format!("{mutating}---\n{validating}"))
}

fn yaml<K: Resource + Serialize>(configuration: &K) -> Result<String, Error> {
    // By way of JSON, in which bytes are base64 as the API wants them.
    let value = serde_json::to_value(configuration)?;
    Ok(serde_saphyr::to_string(&value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::registration::{Configuration, lint};
    use clap::{Parser, error::ErrorKind::MissingRequiredArgument};
    use k8s_openapi::api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
    };

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn line(words: &str) -> Result<Args, clap::Error> {
        let words = ["agents"].into_iter().chain(words.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args)
    }

    #[test]
    fn what_is_printed_reads_back_as_what_was_built() {
        for rung in Rung::ALL {
            let folder = tempfile::tempdir().unwrap();
            let ca = folder.path().join("ca.crt");
            fs::write(&ca, "-----BEGIN CERTIFICATE-----\nAA==\n").unwrap();
            let words = format!(
                "--rung {rung} --service-namespace agents --ca-file {}",
                ca.display()
            );
            let made = registration(line(&words).unwrap()).unwrap();
            let printed = text(&made).unwrap();
            let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&printed).unwrap();
            let [mutating, validating] = <[_; 2]>::try_from(documents).unwrap();
            assert_eq!(mutating["kind"], "MutatingWebhookConfiguration");
            let mutating: MutatingWebhookConfiguration = serde_json::from_value(mutating).unwrap();
            let validating: ValidatingWebhookConfiguration =
                serde_json::from_value(validating).unwrap();
            assert_eq!(mutating, made.mutating());
            assert_eq!(validating, made.validating());
            assert_eq!(lint(&Configuration::from(mutating), rung), []);
            assert_eq!(lint(&Configuration::from(validating), rung), []);
        }
    }

    #[test]
    fn a_wrong_command_line_is_refused_with_a_reason() {
        let cases = [
            ("--rung deny", "required arguments were not provided"),
            (
                "--rung enforce --service-namespace a",
                "`enforce` is not audit, warn, deny, fail-labelled or fail",
            ),
            (
                "--rung deny --url http://10.0.0.1",
                "expected an address such as https://10.0.0.1:8443",
            ),
            (
                "--rung deny --url https://a --service-namespace b",
                "cannot be used with",
            ),
        ];
        for (words, expected) in cases {
            let error = line(words).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        assert_eq!(line("").unwrap_err().kind(), MissingRequiredArgument);
    }

    #[test]
    fn a_file_that_is_no_certificate_is_named_in_the_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "key").unwrap();
        let words = format!(
            "--rung warn --url https://a --ca-file {}",
            file.path().display()
        );
        let error = registration(line(&words).unwrap()).unwrap_err();
        assert!(
            error.to_string().ends_with("has no PEM certificate"),
            "{error}"
        );
        let error = read(Path::new("/nowhere/ca.crt")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not read the CA file /nowhere/ca.crt"
        );
    }
}
