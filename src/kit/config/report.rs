//! What became of the settings, as texts: `--print-config` and the table in the documentation.

use std::fmt;

use super::flag;

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The environment.
    Environment,
    /// The program itself.
    Default,
}

/// One setting as it was declared and as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the environment variable.
    pub variable: &'static str,
    /// The group it is shown in.
    pub heading: &'static str,
    /// One sentence for operators.
    pub help: &'static str,
    /// What may be written.
    pub expected: String,
    /// What holds if nothing is given.
    pub default: Option<String>,
    /// Whether the value may not be shown.
    pub secret: bool,
    /// Whether the flag may stand without a value.
    pub switch: bool,
    /// The value in force, as text.
    pub value: Option<String>,
    /// Where that value came from.
    pub origin: Origin,
}

impl Entry {
    /// The flag that stands for the variable, dashes included.
    pub fn flag(&self) -> String {
        flag(self.variable)
    }

    fn shown(&self) -> &str {
        match &self.value {
            None => "(unset)",
            Some(_) if self.secret => "(secret)",
            Some(value) => value,
        }
    }

    fn origin(&self) -> String {
        match self.origin {
            Origin::Flag => self.flag(),
            Origin::Environment => "environment".to_owned(),
            Origin::Default => "default".to_owned(),
        }
    }
}

/// All settings of a program, in the order of declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One entry per setting.
    pub entries: Vec<Entry>,
    /// What the operator should know about variables that are no settings.
    pub notes: Vec<String>,
}

impl Report {
    /// A Markdown table per group, for the documentation.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut heading = "";
        for entry in &self.entries {
            if entry.heading != heading {
                heading = entry.heading;
                text += &format!(
                    "\n### {heading}\n\n| Variable | Flag | Default | Allowed | Meaning |\n|---|---|---|---|---|\n"
                );
            }
            let default = entry.default.as_deref().map(|text| format!("`{text}`"));
            let cells = [
                format!("`{}`", entry.variable),
                format!("`{}`", entry.flag()),
                default.unwrap_or_default(),
                entry.expected.replace('|', "\\|"),
                entry.help.replace('|', "\\|"),
            ];
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text.trim_start().to_owned()
    }

    /// The settings that differ from their default, as `NAME=value`, secrets hidden.
    pub fn changed(&self) -> Vec<String> {
        let given = |entry: &&Entry| entry.origin != Origin::Default;
        let show = |entry: &Entry| format!("{}={}", entry.variable, entry.shown());
        self.entries.iter().filter(given).map(show).collect()
    }
}

/// One line per setting: name, value and, as a comment, where the value came from.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self
            .entries
            .iter()
            .map(|entry| (format!("{}={}", entry.variable, entry.shown()), entry))
            .collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).max();
        let width = width.unwrap_or_default();
        for (line, entry) in lines {
            writeln!(f, "{line:width$}  # {}", entry.origin())?;
        }
        Ok(())
    }
}
