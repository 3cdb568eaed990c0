//! A policy file: read again and again, compared by content, and used only when it is good from end to end.
//!
//! It is polled, because a mounted ConfigMap is swapped by a symlink and a lost file event would be a lost policy.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::settings::Overrides;
use crate::api::policy::Policy;

/// Time between two looks. A change is in force after two of them.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// Largest policy that is read; thousands of patterns fit.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Why a policy file was not put in force.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("policy file {} cannot be used: {complaint}", file.display())]
pub struct Refused {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub complaint: String,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// There is no such file.
    Absent,
    /// It cannot be read, and why.
    Unreadable(String),
    /// Its text.
    Text(String),
}

/// What was acted on, and what was seen since.
#[derive(Debug)]
pub struct Followed {
    used: Seen,
    doubted: Option<Seen>,
}

impl Followed {
    /// What was seen first is acted on at once.
    pub fn used(seen: Seen) -> Self {
        Self {
            used: seen,
            doubted: None,
        }
    }

    /// A change counts once it is seen twice in a row: a file that is being written may be caught half-way, and half a
    /// policy can look like a whole one.
    pub fn settle(&mut self, seen: Seen) -> Option<Seen> {
        if seen == self.used {
            self.doubted = None;
            return None;
        }
        if self.doubted.as_ref() != Some(&seen) {
            self.doubted = Some(seen);
            return None;
        }
        self.doubted = None;
        self.used = seen.clone();
        Some(seen)
    }
}

/// The policy of a file, with what is set outside of it over it.
///
/// # Errors
///
/// When the file is not there, cannot be read, or is not a policy from end to end.
pub fn understand(file: &Path, seen: &Seen, overrides: &Overrides) -> Result<Policy, Refused> {
    let refused = |complaint: String| Refused {
        file: file.to_owned(),
        complaint,
    };
    let text = match seen {
        Seen::Absent => return Err(refused("there is no such file".to_owned())),
        Seen::Unreadable(reason) => return Err(refused(reason.clone())),
        Seen::Text(text) => text,
    };
    let policy = Policy::parse(text).map_err(|error| refused(error.to_string()))?;
    Ok(overrides.over(policy))
}

/// What a file holds now. Blocks while it is read.
pub fn read_file(path: &Path) -> Seen {
    let mut bytes = Vec::new();
    // One byte more than allowed tells a file that just fits from one that does not.
    let read =
        File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Seen::Absent,
        Err(error) => Seen::Unreadable(error.to_string()),
        Ok(_) if bytes.len() as u64 > MAX_FILE_BYTES => {
            Seen::Unreadable(format!("it is larger than {MAX_FILE_BYTES} bytes"))
        }
        Ok(_) => match String::from_utf8(bytes) {
            Ok(text) => Seen::Text(text),
            Err(_) => Seen::Unreadable("it is not text in UTF-8".to_owned()),
        },
    }
}
