//! What an operator can set about Events, and the limits that follow from it.

use std::time::Duration;

use crate::api::contract::env;
use crate::kit::config::{self, Invalid, Reader, Setting};

/// What an operator can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether Events are emitted at all.
    pub enabled: bool,
    /// Most writes about one object in any minute, for Warnings and for Normal Events each.
    pub per_minute: usize,
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Events");
        let enabled =
            reader.value(Setting::new(env::EVENTS_ENABLED, "Emit Kubernetes Events").or("true"));
        let per_minute = reader.value(
            Setting::new(
                env::EVENTS_RATE_LIMIT_PER_MIN,
                "Most Event writes about one object in a minute, for Warnings and Normal Events each",
            )
            .or("10")
            .within("1", "600"),
        );
        Ok(Self {
            enabled: enabled?,
            per_minute: per_minute?,
        })
    }
}

/// Bounds of what the emitter does, keeps and waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Writes about one object in any minute, for each severity.
    pub per_object: usize,
    /// New Events with one reason in one namespace in any minute, so that ever new objects do not get round the
    /// limit per object.
    pub per_topic: usize,
    /// Writes of the whole program in any second. More than that waits; nothing is lost by it.
    pub per_second: usize,
    /// How long repeats are only counted before the count is written.
    pub heartbeat: Duration,
    /// A series ends, and its last count is written, when nothing was added for so long.
    pub quiet: Duration,
    /// Series remembered at a time; the least recently used one goes first.
    pub tracked: usize,
    /// Occurrences that wait to be taken up.
    pub queue: usize,
    /// Time for one call to the API server.
    pub deadline: Duration,
    /// Tries for one write, when the API server cannot take it.
    pub attempts: u32,
}

impl Limits {
    /// Heartbeat and quiet time are those of Kubernetes' own recorder.
    pub fn new(per_minute: usize) -> Self {
        Self {
            per_object: per_minute,
            per_topic: 10 * per_minute,
            per_second: 20,
            heartbeat: Duration::from_secs(30 * 60),
            quiet: Duration::from_secs(6 * 60),
            tracked: 2048,
            queue: 1024,
            deadline: Duration::from_secs(5),
            attempts: 12,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::{Args, Command, FromArgMatches};

    use super::*;
    use crate::kit::config::Flags;

    fn load(environment: &[(&str, &str)]) -> Result<Settings, String> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment: BTreeMap<_, _> = environment.iter().map(own).collect();
        let command = Flags::<Settings>::augment_args(Command::new("program"));
        let matches = command.get_matches_from(["program"]);
        let flags =
            Flags::<Settings>::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        match flags.resolve(environment) {
            Ok((settings, _)) => Ok(settings),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn events_are_on_by_default_with_a_conservative_limit() {
        let expected = Settings {
            enabled: true,
            per_minute: 10,
        };
        assert_eq!(load(&[]), Ok(expected));
    }

    #[test]
    fn the_operators_variables_are_obeyed() {
        let environment = [
            ("JANGAR_CONTROLLER_EVENTS_ENABLED", "false"),
            ("JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN", "3"),
        ];
        let expected = Settings {
            enabled: false,
            per_minute: 3,
        };
        assert_eq!(load(&environment), Ok(expected));
    }

    #[test]
    fn a_limit_of_zero_is_refused_because_another_switch_turns_events_off() {
        let error = load(&[("JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN", "0")]).unwrap_err();
        assert!(
            error.contains("`0` is not a whole number, from 1 to 600"),
            "{error}"
        );
    }
}
