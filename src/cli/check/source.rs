//! Reads what is to be checked: files, folders and standard input, each within bounds.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of one file; the API server takes 3 MiB of one object.
const FILE: u64 = 16 * 1024 * 1024;
/// Bytes of everything together.
const ALL: u64 = 256 * 1024 * 1024;
/// Files of everything together.
const FILES: usize = 20_000;
/// Folders within folders.
const DEPTH: usize = 64;
/// How files in folders end that are looked at; a file that is named is looked at however it ends.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A text and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its path as it was given, or `stdin`.
    pub(crate) name: String,
    /// The text.
    pub(crate) text: String,
}

/// What could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    /// A file or folder was refused.
    #[error("could not read {path}")]
    Refused {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// It is something else than text.
    #[error("{path} is not text in UTF-8")]
    NotText {
        /// Which.
        path: String,
    },
    /// It is too long.
    #[error("{path} has more than {FILE} bytes; no manifest is that long")]
    TooLong {
        /// Which.
        path: String,
    },
    /// There is too much.
    #[error(
        "there is more than {FILES} files, {ALL} bytes or {DEPTH} levels of folders to read; check it in parts"
    )]
    TooMuch,
    /// Standard input is asked for twice.
    #[error("standard input (-) can be read only once")]
    Twice,
}

/// Reads all of it: files as they are, folders with all that is in them, `-` from `input`.
///
/// # Errors
///
/// When something cannot be read, or there is more than anyone means to check.
pub(crate) fn read(paths: &[PathBuf], input: &mut impl Read) -> Result<Vec<Source>, Unread> {
    let mut reading = Reading::default();
    let mut had_input = false;
    for path in paths {
        if path.as_os_str() == "-" {
            if std::mem::replace(&mut had_input, true) {
                return Err(Unread::Twice);
            }
            reading.take("stdin", input, ALL)?;
        } else if fs::metadata(path).map_err(refused(path))?.is_dir() {
            reading.folder(path, 0)?;
        } else {
            reading.file(path)?;
        }
    }
    Ok(reading.sources)
}

#[derive(Default)]
struct Reading {
    sources: Vec<Source>,
    bytes: u64,
}

impl Reading {
    /// Everything below a folder, in the order of names. Hidden entries and links to folders are left alone.
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<(), Unread> {
        if depth > DEPTH {
            return Err(Unread::TooMuch);
        }
        let entries = fs::read_dir(folder).map_err(refused(folder))?;
        let mut entries: Vec<fs::DirEntry> = entries
            .collect::<io::Result<_>>()
            .map_err(refused(folder))?;
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let is_folder = entry.file_type().map_err(refused(&path))?.is_dir();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if is_folder {
                self.folder(&path, depth + 1)?;
            } else if has_ending(&path) && path.is_file() {
                self.file(&path)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), Unread> {
        let mut file = File::open(path).map_err(refused(path))?;
        self.take(&path.display().to_string(), &mut file, FILE)
    }

    fn take(&mut self, name: &str, from: &mut impl Read, limit: u64) -> Result<(), Unread> {
        let mut bytes = Vec::new();
        // One byte more than allowed tells a text that just fits from one that does not.
        let read = from.take(limit + 1).read_to_end(&mut bytes);
        let read = read.map_err(refused(Path::new(name)))? as u64;
        self.bytes += read;
        let path = || name.to_owned();
        if read > limit {
            return Err(Unread::TooLong { path: path() });
        }
        if self.sources.len() >= FILES || self.bytes > ALL {
            return Err(Unread::TooMuch);
        }
        let text = String::from_utf8(bytes).map_err(|_| Unread::NotText { path: path() })?;
        self.sources.push(Source { name: path(), text });
        Ok(())
    }
}

fn has_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

fn refused(path: &Path) -> impl FnOnce(io::Error) -> Unread {
    let path = path.display().to_string();
    move |source| Unread::Refused { path, source }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn names(paths: &[PathBuf], input: &str) -> Result<Vec<String>, Unread> {
        let sources = read(paths, &mut input.as_bytes())?;
        Ok(sources.into_iter().map(|source| source.name).collect())
    }

    #[test]
    fn a_folder_is_read_in_order_and_only_what_can_be_a_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("b/c")).unwrap();
        fs::create_dir_all(at(".git")).unwrap();
        for name in [
            "z.yml",
            "a.yaml",
            "b/c/d.json",
            "b/notes.txt",
            ".git/x.yaml",
            ".h.yaml",
        ] {
            fs::write(at(name), "a: 1\n").unwrap();
        }
        std::os::unix::fs::symlink(folder.path(), at("loop")).unwrap();
        let found = names(&[folder.path().to_owned()], "").unwrap();
        let expected = ["a.yaml", "b/c/d.json", "z.yml"].map(|name| at(name).display().to_string());
        assert_eq!(found, expected);
        assert_eq!(names(&[at("b/notes.txt")], "").unwrap().len(), 1);
    }

    #[test]
    fn standard_input_is_read_once() {
        let input = PathBuf::from("-");
        assert_eq!(names(from_ref(&input), "a: 1").unwrap(), ["stdin"]);
        let twice = names(&[input.clone(), input], "a: 1").unwrap_err();
        assert_eq!(
            twice.to_string(),
            "standard input (-) can be read only once"
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let missing = names(from_ref(&file), "").unwrap_err();
        assert_eq!(
            missing.to_string(),
            format!("could not read {}", file.display())
        );
        fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
        let binary = names(from_ref(&file), "").unwrap_err();
        assert!(matches!(binary, Unread::NotText { .. }), "{binary}");
        File::create(&file).unwrap().set_len(FILE + 1).unwrap();
        let long = names(&[file], "").unwrap_err();
        assert!(matches!(long, Unread::TooLong { .. }), "{long}");
    }
}
