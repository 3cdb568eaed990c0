//! Colour, on terminals that want it.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal};

/// What a colour stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Someone should look.
    Warn,
    /// Wrong.
    Bad,
    /// Beside the point.
    Dim,
    /// The point.
    Strong,
}

/// Whether words are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For what goes to standard output.
    pub(crate) fn of_output() -> Self {
        let (no_color, term) = (env::var_os("NO_COLOR"), env::var_os("TERM"));
        Self::of(
            io::stdout().is_terminal(),
            no_color.as_deref(),
            term.as_deref(),
        )
    }

    /// Only on a terminal that can, and not where `NO_COLOR` says anything.
    fn of(is_terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> Self {
        let refused = no_color.is_some_and(|value| !value.is_empty());
        let cannot = term.is_some_and(|term| term == "dumb");
        Self {
            on: is_terminal && !refused && !cannot,
        }
    }

    /// The text in its colour.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        if !self.on {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Bad => "31",
            Tone::Dim => "2",
            Tone::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_colour_only_where_it_is_wanted() {
        let word = |text: &'static str| Some(OsStr::new(text));
        for (terminal, no_color, term, on) in [
            (true, None, word("xterm"), true),
            (true, word(""), None, true),
            (false, None, word("xterm"), false),
            (true, word("1"), word("xterm"), false),
            (true, None, word("dumb"), false),
        ] {
            assert_eq!(Paint::of(terminal, no_color, term), Paint { on });
        }
        assert_eq!(Paint { on: false }.tone(Tone::Bad, "x"), "x");
        assert_eq!(
            Paint { on: true }.tone(Tone::Bad, "x"),
            "\u{1b}[31mx\u{1b}[0m"
        );
    }
}
