//! Settings: each is read once, at start, from its flag, else its environment variable, else its default.
//!
//! A program declares its settings by reading them. [`Settings::read`] runs once without input, to learn which flags
//! there are, and once with it, to get the values; so no setting can be read that `--help`, `--print-config` and the
//! documentation do not show. (Some libraries read variables of their own; `docs/configuration.md` names them.) All
//! problems are collected before any is reported. Knows no setting of its own.

mod flags;
mod report;
mod typo;
mod value;

use std::{cmp::Ordering, collections::BTreeMap, fmt};

pub use flags::{Flags, Notes};
pub use report::{Entry, Origin, Report};
pub use value::{Millis, Ratio, Value, one_of};

/// Prefixes of the variables that are ours; a flag drops them.
const PREFIXES: [&str; 2] = ["JANGAR_", "AGENTS_"];

/// A struct of settings that is read as a whole.
pub trait Settings: Sized {
    /// Reads every field. Read all of them before the first `?`, so that every problem is found.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid>;
}

/// A setting was refused; the [`Reader`] already knows why.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid(());

/// The declaration of one setting.
pub struct Setting<T> {
    variable: &'static str,
    help: &'static str,
    default: Option<String>,
    bounds: Option<Bounds<T>>,
    secret: bool,
}

struct Bounds<T> {
    low: &'static str,
    high: &'static str,
    compare: fn(&T, &T) -> Option<Ordering>,
}

impl<T: Value> Setting<T> {
    /// A setting without a default. The flag follows from the variable: `AGENTS_LOG_FORMAT` gives `--log-format`.
    ///
    /// Do not end a name in `_PORT` or `_SERVICE_HOST`: Kubernetes sets such variables by itself for every Service.
    pub fn new(variable: &'static str, help: &'static str) -> Self {
        Self {
            variable,
            help,
            default: None,
            bounds: None,
            secret: false,
        }
    }

    /// What holds when neither flag nor variable is set, written as an operator would write it.
    pub fn or(self, default: impl Into<String>) -> Self {
        Self {
            default: Some(default.into()),
            ..self
        }
    }

    /// The smallest and the largest value allowed, written as an operator would write them.
    pub fn within(self, low: &'static str, high: &'static str) -> Self
    where
        T: PartialOrd,
    {
        let compare = T::partial_cmp;
        Self {
            bounds: Some(Bounds { low, high, compare }),
            ..self
        }
    }

    /// Never shown, neither in an error nor by `--print-config`.
    pub fn secret(self) -> Self {
        Self {
            secret: true,
            ..self
        }
    }

    fn parse(&self, text: &str) -> Option<T> {
        let value = T::parse(text)?;
        self.bounds
            .as_ref()
            .is_none_or(|bounds| bounds.hold(&value))
            .then_some(value)
    }

    fn expected(&self) -> String {
        match &self.bounds {
            None => T::EXPECTED.to_owned(),
            Some(Bounds { low, high, .. }) => format!("{}, from {low} to {high}", T::EXPECTED),
        }
    }
}

impl<T: Value> Bounds<T> {
    fn hold(&self, value: &T) -> bool {
        let not_below = T::parse(self.low).is_some_and(|low| {
            (self.compare)(value, &low).is_some_and(|order| order != Ordering::Less)
        });
        let not_above = T::parse(self.high).is_some_and(|high| {
            (self.compare)(value, &high).is_some_and(|order| order != Ordering::Greater)
        });
        not_below && not_above
    }
}

#[derive(Default)]
struct Inputs {
    /// Keyed by the variable that each flag stands for.
    flags: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
}

/// Hands out values of settings and keeps a record of all that it was asked for.
pub struct Reader<'a> {
    inputs: &'a Inputs,
    heading: &'static str,
    entries: Vec<Entry>,
    problems: Vec<Problem>,
    notes: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(inputs: &'a Inputs) -> Self {
        Self {
            inputs,
            heading: "Settings",
            entries: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Groups the settings that follow, in `--help` and in the documentation.
    pub fn heading(&mut self, heading: &'static str) {
        self.heading = heading;
    }

    /// A setting that must have a value, its default included.
    pub fn value<T: Value>(&mut self, setting: Setting<T>) -> Result<T, Invalid> {
        let source = setting.variable.to_owned();
        let complaint = format!(
            "neither it nor {} is set; expected {}",
            flag(setting.variable),
            setting.expected()
        );
        self.optional(setting)?
            .ok_or_else(|| self.refuse(Problem { source, complaint }))
    }

    /// A setting that may be left out.
    pub fn optional<T: Value>(&mut self, setting: Setting<T>) -> Result<Option<T>, Invalid> {
        let (origin, text) = self.find(&setting);
        self.entries.push(Entry {
            variable: setting.variable,
            heading: self.heading,
            help: setting.help,
            expected: setting.expected(),
            default: setting.default.clone(),
            secret: setting.secret,
            switch: T::SWITCH,
            value: text.clone(),
            origin,
        });
        let Some(text) = text else { return Ok(None) };
        match setting.parse(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(self.refuse(Problem::wrong_value(&setting, origin, &text))),
        }
    }

    /// Refuses a setting that is good by itself but does not go with another.
    pub fn contradiction(&mut self, variable: &str, complaint: &str) -> Invalid {
        self.refuse(Problem {
            source: variable.to_owned(),
            complaint: complaint.to_owned(),
        })
    }

    /// Variables that are set and begin so, with their values. For those that are no settings.
    pub fn given(&self, start: &str) -> Vec<(String, String)> {
        let from = self.inputs.environment.range(start.to_owned()..);
        from.take_while(|(name, _)| name.starts_with(start))
            .map(|(name, value)| (name.clone(), value.trim().to_owned()))
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }

    /// Tells the operator something about a variable that is no problem.
    pub fn note(&mut self, sentence: String) {
        self.notes.push(sentence);
    }

    fn refuse(&mut self, problem: Problem) -> Invalid {
        self.problems.push(problem);
        Invalid(())
    }

    fn find<T>(&self, setting: &Setting<T>) -> (Origin, Option<String>) {
        let Inputs { flags, environment } = self.inputs;
        // Charts render an unset value as an empty variable, so empty means unset.
        let variable = environment
            .get(setting.variable)
            .map(|text| text.trim())
            .filter(|text| !text.is_empty());
        match (flags.get(setting.variable), variable) {
            (Some(text), _) => (Origin::Flag, Some(text.trim().to_owned())),
            (None, Some(text)) => (Origin::Environment, Some(text.to_owned())),
            (None, None) => (Origin::Default, setting.default.clone()),
        }
    }
}

/// Settings that were wrong, all of them.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

#[derive(Debug, PartialEq, Eq)]
struct Problem {
    source: String,
    complaint: String,
}

impl Problem {
    fn wrong_value<T: Value>(setting: &Setting<T>, origin: Origin, text: &str) -> Self {
        let expected = setting.expected();
        let source = match origin {
            Origin::Flag => flag(setting.variable),
            Origin::Environment => setting.variable.to_owned(),
            Origin::Default => format!("default of {}", setting.variable),
        };
        let complaint = match setting.secret {
            true => format!("the value given (not shown, it is a secret) is not {expected}"),
            false => format!("`{text}` is not {expected}"),
        };
        Self { source, complaint }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => writeln!(f, "1 setting is wrong:")?,
            count => writeln!(f, "{count} settings are wrong:")?,
        }
        for Problem { source, complaint } in &self.problems {
            writeln!(f, "  {source}: {complaint}")?;
        }
        write!(
            f,
            "--help describes every setting, --print-config shows what is in force."
        )
    }
}

impl std::error::Error for ConfigError {}

/// All settings of `S` and what became of each, or every problem at once.
fn read<S: Settings>(inputs: &Inputs) -> Result<(S, Report), ConfigError> {
    let mut reader = Reader::new(inputs);
    let settings = S::read(&mut reader);
    let Reader {
        entries,
        problems,
        notes,
        ..
    } = reader;
    match settings {
        Ok(settings) if problems.is_empty() => Ok((settings, Report { entries, notes })),
        _ => Err(ConfigError { problems }),
    }
}

/// Every setting of `S` with its default, in the order of declaration.
pub fn describe<S: Settings>() -> Report {
    let inputs = Inputs::default();
    let mut reader = Reader::new(&inputs);
    // Without input a setting that has no default is refused; what is wanted here is only the record.
    drop(S::read(&mut reader));
    Report {
        entries: reader.entries,
        notes: reader.notes,
    }
}

/// The flag that stands for a variable, dashes included.
fn flag(variable: &str) -> String {
    let name = PREFIXES
        .iter()
        .find_map(|prefix| variable.strip_prefix(prefix))
        .unwrap_or(variable);
    format!("--{}", name.to_ascii_lowercase().replace('_', "-"))
}

#[cfg(test)]
mod tests;
