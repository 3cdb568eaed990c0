use crate::kit::config::Flags;
use clap::{Args, Command, FromArgMatches};

use super::*;

fn load(flags: &[&str], environment: &[(&str, &str)]) -> Result<Settings, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let command = Flags::<Settings>::augment_args(Command::new("program"));
    let given = ["program"].iter().chain(flags);
    let matches = command
        .try_get_matches_from(given)
        .map_err(|error| error.to_string())?;
    let flags = Flags::<Settings>::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    match flags.resolve(environment.iter().map(own).collect()) {
        Ok((settings, _)) => Ok(settings),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn nothing_is_set_by_default() {
    assert_eq!(load(&[], &[]), Ok(Settings::default()));
    let policy = Overrides::default().over(Policy::default());
    assert_eq!(policy, Policy::default());
}

#[test]
fn the_operators_variables_are_obeyed() {
    let environment = [
        ("JANGAR_AGENTS_CONTROLLER_LABELS_REQUIRED", "team, cost"),
        ("JANGAR_AGENTS_CONTROLLER_LABELS_ALLOWED", r#"["a","b/*"]"#),
        ("JANGAR_AGENTS_CONTROLLER_LABELS_DENIED", "x/*"),
        ("JANGAR_AGENTS_CONTROLLER_IMAGES_ALLOWED", "good/*"),
        ("JANGAR_AGENTS_CONTROLLER_IMAGES_DENIED", "*:latest"),
        ("JANGAR_AGENTS_CONTROLLER_BLOCKED_SECRETS", "root"),
        ("JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_NAME", "auth"),
        ("JANGAR_AGENT_IMAGE", "second"),
        ("JANGAR_AGENT_RUNNER_IMAGE", "first"),
        ("JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT", "runner"),
        ("AGENTS_POLICY_REQUIRE_SECRET_BINDING", "yes"),
        (
            "AGENTS_POLICY_MODES",
            "DeniedImages=warn, BlockedSecrets=audit",
        ),
        ("AGENTS_POLICY_STATUS_MODES", "Conditions=warn"),
        ("AGENTS_POLICY_JOB_DELETE", "Audit"),
        ("AGENTS_POLICY_FILE", "/etc/agents/policy.yaml"),
    ];
    let settings = load(&[], &environment).unwrap();
    assert_eq!(
        settings.file.as_deref(),
        Some("/etc/agents/policy.yaml".as_ref())
    );
    let policy = settings.overrides.over(Policy::default());
    let expected = Policy::parse(
        "
labels: {required: [team, cost], allowed: [a, b/*], denied: [x/*]}
images: {allowed: [good/*], denied: ['*:latest']}
blockedSecrets: [root]
requireSecretBinding: true
defaults: {image: first, serviceAccount: runner, authSecret: auth}
modes: {DeniedImages: warn, BlockedSecrets: audit}
statusModes: {Conditions: warn}
jobDelete: audit
",
    );
    assert_eq!(Ok(policy), expected);
}

#[test]
fn a_flag_goes_over_the_variable_and_the_variable_over_the_file() {
    let variable = ("JANGAR_AGENTS_CONTROLLER_IMAGES_DENIED", "by-variable");
    let file = || Policy::parse("images: {allowed: [a], denied: [by-file]}").unwrap();
    for (flags, environment, denied) in [
        (vec![], vec![], vec!["by-file"]),
        (vec![], vec![variable], vec!["by-variable"]),
        (
            vec!["--agents-controller-images-denied", "by-flag"],
            vec![variable],
            vec!["by-flag"],
        ),
        (
            vec!["--agents-controller-images-denied=[]"],
            vec![variable],
            vec![],
        ),
        (
            vec![],
            vec![("JANGAR_AGENTS_CONTROLLER_IMAGES_DENIED", "")],
            vec!["by-file"],
        ),
    ] {
        let settings = load(&flags, &environment).unwrap();
        let policy = settings.overrides.over(file());
        assert_eq!(policy.images.denied.written(), denied, "{flags:?}");
        assert_eq!(
            policy.images.allowed.written(),
            ["a"],
            "a field that is not set stays as the file has it"
        );
    }
}

#[test]
fn modes_go_over_those_of_the_file_rule_by_rule() {
    let settings = load(&["--policy-modes", "DeniedImages=warn"], &[]).unwrap();
    let file = Policy::parse("modes: {DeniedImages: audit, BlockedSecrets: audit}").unwrap();
    let policy = settings.overrides.over(file);
    assert_eq!(policy.mode(Rule::DeniedImages), Mode::Warn);
    assert_eq!(policy.mode(Rule::BlockedSecrets), Mode::Audit);
    assert_eq!(policy.mode(Rule::AllowedImages), Mode::Enforce);
}

#[test]
fn wrong_values_name_the_variable_and_what_is_right() {
    for (value, variable) in [
        ("[a", "JANGAR_AGENTS_CONTROLLER_BLOCKED_SECRETS"),
        ("maybe", "AGENTS_POLICY_REQUIRE_SECRET_BINDING"),
        ("DeniedImages", "AGENTS_POLICY_MODES"),
        ("DeniedImages=block", "AGENTS_POLICY_MODES"),
        ("DeniedPictures=warn", "AGENTS_POLICY_MODES"),
        ("DeniedImages=warn", "AGENTS_POLICY_STATUS_MODES"),
        ("never", "AGENTS_POLICY_JOB_DELETE"),
        (
            "DeniedImages=warn,DeniedImages=audit",
            "AGENTS_POLICY_MODES",
        ),
    ] {
        let error = load(&[], &[(variable, value)]).unwrap_err();
        assert!(
            error.contains(&format!("{variable}: `{value}` is not")),
            "{error}"
        );
    }
}
