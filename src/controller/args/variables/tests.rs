use std::collections::BTreeMap;

use super::*;
use crate::controller::Config;
use crate::kit::config::{Flags, describe};

fn load(environment: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let environment: BTreeMap<_, _> = environment.iter().map(own).collect();
    match Flags::<Config>::default().resolve(environment) {
        Ok((_, notes)) => Ok(notes.warnings),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn what_is_honoured_is_read_and_has_a_test_and_what_is_not_is_not_read() {
    let entries = describe::<Config>().entries;
    for Variable { name, stance, .. } in TABLE {
        let is_read = entries.iter().any(|entry| entry.variable == *name);
        match stance {
            Stance::Honoured { test } => {
                assert!(is_read, "{name} is not read");
                assert!(!test.is_empty(), "{name} has no test");
            }
            Stance::Accepted(why) | Stance::Refused(why) => {
                assert!(!is_read && !why.is_empty(), "{name}");
            }
            Stance::RefusedIf { why, otherwise, .. } => {
                assert!(
                    !is_read && !why.is_empty() && !otherwise.is_empty(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn every_setting_with_a_name_of_existing_installations_is_in_the_table() {
    for entry in describe::<Config>().entries {
        let is_known = TABLE.iter().any(|known| known.name == entry.variable);
        let is_ours = entry.variable.starts_with("AGENTS_");
        // OpenTelemetry gives names of its own, of which the table has those that are set out there.
        let is_standard = entry.variable.starts_with("OTEL_");
        assert!(is_known != is_ours || is_standard, "{}", entry.variable);
    }
}

#[test]
fn no_variable_is_in_the_table_twice() {
    let mut names: Vec<_> = TABLE.iter().map(|variable| variable.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn each_variable_that_would_mislead_is_refused_by_its_sentence() {
    for variable in TABLE {
        let name = variable.name.replace('*', "X");
        let said = match variable.stance {
            Stance::Honoured { .. } => continue,
            Stance::Accepted(why) => {
                let said = load(&[(&name, "1")]).unwrap();
                assert_eq!(said, [format!("{name} changes nothing: {why}")]);
                continue;
            }
            Stance::Refused(why) => (load(&[(&name, "1")]).unwrap_err(), why),
            Stance::RefusedIf { why, .. } => (load(&[(&name, "test")]).unwrap_err(), why),
        };
        let (error, why) = said;
        assert!(error.contains(&format!("\n  {name}: {why}\n")), "{error}");
    }
}

#[test]
fn values_that_ask_for_nothing_are_let_through() {
    let usual = [
        ("NODE_ENV", "production"),
        ("JANGAR_AUDIT_SINK_TYPE", "none"),
        ("DATABASE_URL", ""),
        ("JANGAR_GRPC_ENABLED", "true"),
        ("JANGAR_PRIMITIVES_NAMESPACES", "agents"),
        ("JANGAR_IMAGE", "x"),
        ("JANGAR_PRIMITIVES_RECONCILER", "False"),
        ("JANGAR_PROMETHEUS_METRICS_PATH", "/metrics"),
        ("JANGAR_AGENTRUN_IDEMPOTENCY_RESERVATION_TTL_SECONDS", "0"),
    ];
    assert_eq!(load(&usual).unwrap().len(), 8);
}

#[test]
fn a_setting_by_its_newer_name_is_refused_with_the_right_one() {
    let environment = [
        ("AGENTS_CONTROLLER_NAMESPACES", "a"),
        ("AGENTS_LEADER_ELECTION_ENABLED", "false"),
    ];
    let error = load(&environment).unwrap_err();
    for said in [
        "AGENTS_CONTROLLER_NAMESPACES: is called JANGAR_AGENTS_CONTROLLER_NAMESPACES here; rename it",
        "AGENTS_LEADER_ELECTION_ENABLED: is called JANGAR_LEADER_ELECTION_ENABLED here; rename it",
    ] {
        assert!(error.contains(said), "{error}");
    }
    let of_the_cluster = [
        ("AGENTS_CONTROLLER_SERVICE_HOST", "10.0.0.1"),
        ("AGENTS_PORT", "tcp://10.0.0.1:80"),
    ];
    assert_eq!(load(&of_the_cluster), Ok(Vec::new()));
}
