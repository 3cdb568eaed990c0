//! The command line of a program: one flag per setting, none of them typed yet, so that all problems are found at once.

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
    marker::PhantomData,
};

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{ConfigError, Entry, Inputs, Report, Settings, describe, read, typo};

const PRINT_CONFIG: &str = "print-config";

/// The flags that stand for the settings of `S`; flatten it into a clap command.
pub struct Flags<S> {
    given: BTreeMap<String, String>,
    print_config: bool,
    settings: PhantomData<fn() -> S>,
}

/// Names only, since values may be secret.
impl<S> fmt::Debug for Flags<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.given.keys()).finish()
    }
}

/// No flag at all.
impl<S> Default for Flags<S> {
    fn default() -> Self {
        Self {
            given: BTreeMap::new(),
            print_config: false,
            settings: PhantomData,
        }
    }
}

/// What to say about settings that were found to be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notes {
    /// Every setting with its value and origin.
    pub report: Report,
    /// Sentences about variables that look like a setting misspelt, or that mean nothing here.
    pub warnings: Vec<String>,
}

impl<S: Settings> Flags<S> {
    /// The settings from these flags and the environment of the process.
    ///
    /// With `--print-config` they are printed instead and there is nothing more to do.
    pub fn load(self) -> Result<Option<(S, Notes)>, ConfigError> {
        let environment = std::env::vars_os()
            .map(|(name, value)| {
                let name = name.to_string_lossy().into_owned();
                (name, value.to_string_lossy().into_owned())
            })
            .collect();
        let print_config = self.print_config;
        let (settings, notes) = self.resolve(environment)?;
        if print_config {
            // A reader that went away, such as `head`, has seen enough.
            drop(write!(io::stdout(), "{}", notes.report));
            return Ok(None);
        }
        Ok(Some((settings, notes)))
    }

    /// The settings from these flags and the given environment.
    pub fn resolve(self, environment: BTreeMap<String, String>) -> Result<(S, Notes), ConfigError> {
        let inputs = Inputs {
            flags: self.given,
            environment,
        };
        let (settings, report) = read(&inputs)?;
        let mut warnings = typo::suspects(&report.entries, &inputs.environment);
        warnings.extend(report.notes.iter().cloned());
        Ok((settings, Notes { report, warnings }))
    }
}

impl<S: Settings> clap::Args for Flags<S> {
    fn augment_args(command: Command) -> Command {
        let Report { entries, .. } = describe::<S>();
        let print_config = Arg::new(PRINT_CONFIG)
            .long(PRINT_CONFIG)
            .action(ArgAction::SetTrue)
            .help("Print every setting with its value and where that came from, without secrets, and end");
        command.args(entries.iter().map(arg)).arg(print_config)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Settings> clap::FromArgMatches for Flags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Report { entries, .. } = describe::<S>();
        let given = |variable: &'static str| {
            let value = matches.get_one::<String>(variable)?;
            Some((variable.to_owned(), value.clone()))
        };
        Ok(Self {
            given: entries
                .iter()
                .filter_map(|entry| given(entry.variable))
                .collect(),
            print_config: matches.get_flag(PRINT_CONFIG),
            settings: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn arg(entry: &Entry) -> Arg {
    let default = match &entry.default {
        None => String::new(),
        Some(default) => format!(" [default: {default}]"),
    };
    let arg = Arg::new(entry.variable)
        .long(entry.flag().trim_start_matches('-').to_owned())
        .help_heading(entry.heading)
        .help(format!("{} [env: {}]{default}", entry.help, entry.variable))
        .long_help(format!(
            "{}.\nAllowed: {}.\n[env: {}]{default}",
            entry.help, entry.expected, entry.variable
        ))
        .value_name("VALUE");
    match entry.switch {
        // A bare switch means yes; a value needs `=`, or the next word would be taken for it.
        true => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        false => arg.allow_hyphen_values(true),
    }
}
