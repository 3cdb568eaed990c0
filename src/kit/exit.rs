//! What a program tells the shell when it ends: the one list of exit codes.
//!
//! Scripts match on them, so a code that was published stays.

use std::process::ExitCode;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked to do.
    Done,
    /// It could not do it, or ended other than it should.
    Failed,
    /// It was asked in a way that cannot be meant: a wrong flag, variable or argument. Nothing was done.
    Misused,
    /// It did its work and found something that needs someone: a fault, a difference.
    Found,
}

impl Exit {
    /// Every way to end.
    pub const ALL: &'static [Self] = &[Self::Done, Self::Failed, Self::Misused, Self::Found];

    /// The number for the shell; clap has the same one for a wrong command line.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Misused => 2,
            Self::Found => 5,
        }
    }

    /// One sentence for the documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => {
                "The program did what it was asked to do; a server was told to end and ended in order."
            }
            Self::Failed => "It could not, or ended other than it should; the last line says why.",
            Self::Misused => {
                "A flag, variable or argument is wrong; nothing was done, and all that is wrong is listed."
            }
            Self::Found => {
                "The command did its work and found something that needs someone: a fault or a difference."
            }
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_means_one_thing() {
        let codes: BTreeSet<_> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        let meanings: BTreeSet<_> = Exit::ALL.iter().map(|exit| exit.meaning()).collect();
        assert_eq!(
            (codes.len(), meanings.len()),
            (Exit::ALL.len(), Exit::ALL.len())
        );
    }
}
