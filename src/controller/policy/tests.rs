use std::fs;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::controller::runs::told;

/// All causes, in words.
fn words(causes: &[Cause]) -> String {
    told(causes).map(|(_, words)| words).unwrap_or_default()
}

fn source(file: Option<&Path>) -> Result<Source, Refused> {
    let settings = Settings {
        file: file.map(Path::to_owned),
        ..Settings::default()
    };
    let defaults = Defaults {
        image: Some("runner:1".to_owned()),
        ..Defaults::default()
    };
    Source::load(settings, defaults)
}

#[test]
fn a_file_sets_rules_but_not_what_pods_get() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy");
    fs::write(&file, "{blockedSecrets: [root], defaults: {image: other}}").unwrap();
    let mut source = source(Some(&file)).unwrap();
    let rules = source.rules();
    assert_eq!(rules.current().blocked_secrets, ["root"]);
    assert_eq!(rules.current().defaults.image.as_deref(), Some("runner:1"));
    let bad = source.take(&Seen::Text("blockedSecrets: 1".to_owned()));
    assert!(bad.is_err());
    assert_eq!(
        rules.current().blocked_secrets,
        ["root"],
        "the last good one stays"
    );
    source.take(&Seen::Text("{}".to_owned())).unwrap();
    assert_eq!(rules.current().blocked_secrets, Vec::<String>::new());
}

#[test]
fn a_file_that_is_named_must_be_there() {
    assert!(source(Some(Path::new("/nowhere/policy"))).is_err());
    assert!(source(None).is_ok());
}

#[test]
fn findings_are_parted_by_what_follows() {
    let policy = Policy::parse(
        "
images: {denied: ['*:latest']}
blockedSecrets: [root]
labels: {required: [team]}
modes: {DeniedImages: warn, RequiredLabels: audit}
",
    )
    .unwrap();
    let run = json!({
        "metadata": {"name": "r"},
        "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job"}, "secrets": ["root"], "workload": {"image": "x:latest"}},
    });
    let verdict = judge(&policy, Kind::AgentRun, &run, &Surroundings::default());
    let reasons = |causes: &[Cause]| causes.iter().map(|cause| cause.reason).collect::<Vec<_>>();
    assert_eq!(reasons(&verdict.refused), [Reason::SecretBlocked]);
    assert_eq!(reasons(&verdict.warned), [Reason::ImageBlocked]);
    assert_eq!(reasons(&verdict.audited), [Reason::MissingRequiredLabels]);
    assert!(
        words(&verdict.refused).starts_with("spec.secrets[0]: "),
        "{}",
        words(&verdict.refused)
    );
    for cause in verdict.refused.iter().chain(&verdict.warned) {
        assert!(is_of_policy(cause.reason));
    }
}
