//! What commands show: tables, colour on terminals, ages, and text that cannot play tricks on a terminal.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write as _};
use std::time::Duration;

use serde::Serialize;

use super::failure::Failure;

/// How a result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One line per object.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
}

/// How something is shown that is no list of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// How grave a finding must be for a command to end with exit code 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// Something is wrong.
    #[default]
    Error,
    /// Something is wrong, or someone should look.
    Warning,
}

/// What a colour stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
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

/// Whether and how words are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// No colour.
    pub const PLAIN: Self = Self { on: false };

    /// For what goes to standard output.
    pub fn of_output() -> Self {
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
    pub fn tone(self, tone: Tone, text: &str) -> String {
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

/// The text on one line and without anything that a terminal would obey.
pub fn plain(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => ' ',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    text.chars().map(shown).collect()
}

/// One entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl Cell {
    /// The same in a colour.
    pub fn toned(text: impl AsRef<str>, tone: Option<Tone>) -> Self {
        Self {
            text: plain(text.as_ref()),
            tone,
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, None)
    }
}

/// A table with its heading and its rows.
pub fn table(head: &[&str], rows: &[Vec<Cell>], paint: Paint) -> String {
    let mut widths: Vec<usize> = head.iter().map(|word| word.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.chars().count());
        }
    }
    let mut text = String::new();
    let heads: Vec<Cell> = head.iter().map(Cell::from).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let gap = width.saturating_sub(cell.text.chars().count()) + 3;
            line += &cell
                .tone
                .map_or_else(|| cell.text.clone(), |tone| paint.tone(tone, &cell.text));
            line.extend(std::iter::repeat_n(' ', gap));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A time that has passed, in its two greatest units at most.
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => match seconds % 60 {
            0 => format!("{minutes}m"),
            rest => format!("{minutes}m{rest}s"),
        },
        600..10_800 => format!("{minutes}m"),
        10_800..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

/// The objects as JSON or YAML.
///
/// # Errors
///
/// When they have no such form, which is a fault of ours.
pub fn document<T: Serialize>(objects: &T, as_yaml: bool) -> Result<String, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Failure::new("could not write the result").because(error)
    };
    let value = serde_json::to_value(objects).map_err(|error| failed(&error))?;
    let text = match as_yaml {
        true => serde_saphyr::to_string(&value).map_err(|error| failed(&error))?,
        false => serde_json::to_string_pretty(&value).map_err(|error| failed(&error))?,
    };
    Ok(format!("{}\n", text.trim_end()))
}

/// Prints to standard output. A reader that has seen enough is not an error.
///
/// # Errors
///
/// When the output is refused for another cause.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Failure::new("could not print").because(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_only_for_terminals_that_want_it() {
        let os = OsStr::new;
        for (terminal, no_color, term, on) in [
            (true, None, Some("xterm"), true),
            (true, None, None, true),
            (true, Some(""), None, true),
            (true, Some("1"), None, false),
            (true, None, Some("dumb"), false),
            (false, None, Some("xterm"), false),
        ] {
            let paint = Paint::of(terminal, no_color.map(os), term.map(os));
            assert_eq!(paint.on, on, "{terminal} {no_color:?} {term:?}");
        }
        assert_eq!(
            Paint { on: true }.tone(Tone::Bad, "x"),
            "\u{1b}[31mx\u{1b}[0m"
        );
        assert_eq!(Paint::PLAIN.tone(Tone::Bad, "x"), "x");
    }

    #[test]
    fn columns_stand_below_each_other_whatever_their_colour() {
        let rows = [
            vec![Cell::from("long-name"), Cell::toned("ok", Some(Tone::Good))],
            vec![Cell::from("\u{1b}[2J\n"), Cell::from("")],
        ];
        let text = table(&["NAME", "STATE"], &rows, Paint::PLAIN);
        assert_eq!(text, "NAME        STATE\nlong-name   ok\n\u{fffd}[2J\n");
        let coloured = table(&["NAME", "STATE"], &rows, Paint { on: true });
        assert!(
            coloured.contains("long-name   \u{1b}[32mok\u{1b}[0m"),
            "{coloured}"
        );
    }

    #[test]
    fn an_age_is_as_exact_as_it_is_young() {
        for (seconds, expected) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_800, "3h"),
            (172_800, "2d"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), expected);
        }
    }
}
