use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use clap::{Args, Command, FromArgMatches};
use proptest::prelude::*;

use super::*;

#[derive(Debug, PartialEq)]
struct Sample {
    listen: SocketAddr,
    drain: Duration,
    workers: usize,
    profile: bool,
    token: Option<String>,
    names: Vec<String>,
}

impl Settings for Sample {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Serving");
        let listen =
            reader.value(Setting::new("AGENTS_LISTEN", "Where to listen").or("127.0.0.1:80"));
        let drain = reader.value(
            Setting::new("AGENTS_DRAIN", "Time to finish")
                .or("25s")
                .within("1s", "10m"),
        );
        reader.heading("Work");
        let workers = reader.value(
            Setting::new("JANGAR_WORKERS", "Work at once")
                .or("4")
                .within("1", "64"),
        );
        let profile = reader.value(Setting::new("AGENTS_PROFILE", "Profile").or("no"));
        let token = reader.optional(Setting::new("AGENTS_TOKEN", "Token").secret());
        let names = reader.value(Setting::new("AGENTS_NAMES", "Names"));
        Ok(Self {
            listen: listen?,
            drain: drain?,
            workers: workers?,
            profile: profile?,
            token: token?,
            names: names?,
        })
    }
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

fn flags(line: &str) -> Flags<Sample> {
    let command = Flags::<Sample>::augment_args(Command::new("sample"));
    let words = std::iter::once("sample").chain(line.split_whitespace());
    let matches = command.try_get_matches_from(words).expect("a command line");
    Flags::from_arg_matches(&matches).expect("flags")
}

fn load(line: &str, environment: &[(&str, &str)]) -> Result<(Sample, Notes), String> {
    let loaded = flags(line).resolve(map(environment));
    loaded.map_err(|error| error.to_string())
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_default() {
    let environment = [
        ("AGENTS_DRAIN", "5m"),
        ("AGENTS_NAMES", "a,b"),
        ("JANGAR_WORKERS", "8"),
        ("AGENTS_LISTEN", ""),
    ];
    let (sample, notes) = load("--workers 16 --profile", &environment).expect("settings");
    assert_eq!(
        sample,
        Sample {
            listen: "127.0.0.1:80".parse().expect("an address"),
            drain: Duration::from_secs(300),
            workers: 16,
            profile: true,
            token: None,
            names: vec!["a".to_owned(), "b".to_owned()],
        }
    );
    let origins: Vec<_> = notes
        .report
        .entries
        .iter()
        .map(|entry| entry.origin)
        .collect();
    use Origin::{Default, Environment, Flag};
    assert_eq!(
        origins,
        [Default, Environment, Flag, Flag, Default, Environment]
    );
}

#[test]
fn all_problems_are_reported_at_once_with_name_value_and_what_is_allowed() {
    let environment = [
        ("AGENTS_LISTEN", "localhost"),
        ("AGENTS_DRAIN", "1h"),
        ("AGENTS_PROFILE", "maybe"),
    ];
    let error = load("--workers=0", &environment).expect_err("problems");
    let expected = "\
5 settings are wrong:
  AGENTS_LISTEN: `localhost` is not an address and a port such as 0.0.0.0:8080 or [::]:8080
  AGENTS_DRAIN: `1h` is not a duration such as 30 or 30s, 250ms, 5m, 1h, from 1s to 10m
  --workers: `0` is not a whole number, from 1 to 64
  AGENTS_PROFILE: `maybe` is not 1, true, yes, y, on or 0, false, no, n, off
  AGENTS_NAMES: neither it nor --names is set; expected a list such as a,b or [\"a\",\"b\"]
--help describes every setting, --print-config shows what is in force.";
    assert_eq!(error, expected);
}

#[test]
fn a_secret_is_neither_printed_nor_repeated_in_an_error() {
    struct Secretive;
    impl Settings for Secretive {
        fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
            reader.value(Setting::<usize>::new("AGENTS_PIN", "A number").secret())?;
            Ok(Self)
        }
    }
    let inputs = |value: &str| Inputs {
        flags: BTreeMap::new(),
        environment: map(&[("AGENTS_PIN", value)]),
    };
    let Ok((Secretive, report)) = read(&inputs("4711")) else {
        panic!("4711 is a number");
    };
    assert_eq!(report.to_string(), "AGENTS_PIN=(secret)  # environment\n");
    let Err(error) = read::<Secretive>(&inputs("hunter2")) else {
        panic!("hunter2 is no number");
    };
    assert!(!error.to_string().contains("hunter2"), "{error}");
    assert!(error.to_string().contains("AGENTS_PIN"), "{error}");
}

#[test]
fn print_config_shows_value_and_origin_of_every_setting() {
    let environment = [("AGENTS_NAMES", "a"), ("AGENTS_TOKEN", "s3cret")];
    let (_, notes) = load("--print-config --drain 5s", &environment).expect("settings");
    let expected = "\
AGENTS_LISTEN=127.0.0.1:80  # default
AGENTS_DRAIN=5s             # --drain
JANGAR_WORKERS=4            # default
AGENTS_PROFILE=no           # default
AGENTS_TOKEN=(secret)       # environment
AGENTS_NAMES=a              # environment
";
    assert_eq!(notes.report.to_string(), expected);
    let changed = ["AGENTS_DRAIN=5s", "AGENTS_TOKEN=(secret)", "AGENTS_NAMES=a"];
    assert_eq!(notes.report.changed(), changed);
}

#[test]
fn a_variable_that_is_almost_a_setting_is_pointed_out() {
    let environment = [
        ("AGENTS_NAMES", "a"),
        ("AGENTS_DRIAN", "5s"),
        ("JANGAR_WORKER", "5"),
        ("AGENTS_SERVICE_HOST", "10.0.0.1"),
        ("AGENTS_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("OTHER_DRAIN", "5s"),
    ];
    let (_, notes) = load("", &environment).expect("settings");
    assert_eq!(
        notes.warnings,
        [
            "AGENTS_DRIAN is no setting of this program; did you mean AGENTS_DRAIN?",
            "JANGAR_WORKER is no setting of this program; did you mean JANGAR_WORKERS?",
        ]
    );
}

#[test]
fn the_documentation_has_a_table_per_group() {
    let expected = "\
### Serving

| Variable | Flag | Default | Allowed | Meaning |
|---|---|---|---|---|
| `AGENTS_LISTEN` | `--listen` | `127.0.0.1:80` | an address and a port such as 0.0.0.0:8080 or [::]:8080 | Where to listen |
| `AGENTS_DRAIN` | `--drain` | `25s` | a duration such as 30 or 30s, 250ms, 5m, 1h, from 1s to 10m | Time to finish |

### Work

| Variable | Flag | Default | Allowed | Meaning |
|---|---|---|---|---|
| `JANGAR_WORKERS` | `--workers` | `4` | a whole number, from 1 to 64 | Work at once |
| `AGENTS_PROFILE` | `--profile` | `no` | 1, true, yes, y, on or 0, false, no, n, off | Profile |
| `AGENTS_TOKEN` | `--token` |  | a text | Token |
| `AGENTS_NAMES` | `--names` |  | a list such as a,b or [\"a\",\"b\"] | Names |
";
    assert_eq!(describe::<Sample>().table(), expected);
}

proptest! {
    #[test]
    fn no_input_panics_and_a_refusal_always_names_its_source(given in ".{0,40}") {
        let environment = [("AGENTS_LISTEN", given.as_str()), ("AGENTS_NAMES", "a")];
        if let Err(error) = load("", &environment) {
            prop_assert!(error.contains("AGENTS_LISTEN: "));
        }
    }
}
