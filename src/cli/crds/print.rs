//! `agents crds print`: the CustomResourceDefinitions as text or as files.
//!
//! What they say is decided in `api::crd`.

use crate::api::crd;
use crate::api::kind::Kind;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Definitions that could not be printed or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A definition has no YAML form.
    #[error("could not write the definition of {kind} as YAML")]
    Yaml {
        /// The kind.
        kind: Kind,
        /// Why.
        source: crd::YamlError,
    },
    /// The output was refused.
    #[error("could not print the definitions")]
    Print(#[source] io::Error),
    /// A file or folder was refused.
    #[error("could not {what} {path}")]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// Prints the definitions, or writes them to a folder.
pub(super) fn run(output: Option<&Path>) -> Result<(), Error> {
    match output {
        None => print(&mut io::stdout().lock()),
        Some(folder) => write(folder),
    }
}

/// Prints all definitions as one stream of YAML documents. A reader that has seen enough is not an error.
fn print(out: &mut impl Write) -> Result<(), Error> {
    let documents: Vec<String> = Kind::ALL.into_iter().map(text).collect::<Result<_, _>>()?;
    match out.write_all(documents.join("---\n").as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Error::Print),
    }
}

/// Writes one file per kind and removes generated files that no kind has any more.
fn write(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
    let mut wanted = Vec::new();
    for kind in Kind::ALL {
        let path = folder.join(crd::file_name(kind));
        fs::write(&path, text(kind)?).map_err(failed("write", &path))?;
        wanted.push(path);
    }
    for entry in fs::read_dir(folder).map_err(failed("list", folder))? {
        let path = entry.map_err(failed("list", folder))?.path();
        if !wanted.contains(&path) && is_generated(&path) {
            fs::remove_file(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}

/// Whether the file is one that [`write`] made; what people put beside is left alone.
fn is_generated(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "yaml")
        && fs::read_to_string(path).is_ok_and(|text| text.starts_with(crd::HEADER))
}

fn text(kind: Kind) -> Result<String, Error> {
    crd::to_yaml(&crd::definition(kind)).map_err(|source| Error::Yaml { kind, source })
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { what, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_stream_has_one_document_per_kind() {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        let documents: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(std::str::from_utf8(&out).unwrap()).unwrap();
        let names: Vec<_> = documents
            .iter()
            .map(|crd| crd["spec"]["names"]["kind"].as_str().unwrap())
            .collect();
        assert_eq!(names, Kind::ALL.map(Kind::as_str));
    }

    #[test]
    fn writing_leaves_exactly_the_wanted_files_and_those_of_people() {
        let folder = tempfile::tempdir().unwrap();
        let stale = folder.path().join("gone.agents.proompteng.ai.yaml");
        fs::write(&stale, format!("{}kind: Gone\n", crd::HEADER)).unwrap();
        fs::write(folder.path().join("notes.yaml"), "mine: true\n").unwrap();

        write(folder.path()).unwrap();

        let mut found: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        found.sort();
        let mut wanted: Vec<_> = Kind::ALL.map(crd::file_name).to_vec();
        wanted.push("notes.yaml".to_owned());
        wanted.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named_in_the_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = write(&file.path().join("crds")).unwrap_err();
        assert!(
            error.to_string().starts_with("could not make the folder /"),
            "{error}"
        );
    }
}
