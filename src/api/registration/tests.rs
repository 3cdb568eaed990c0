use std::collections::BTreeSet;

use super::*;
use crate::api::contract::label;
use crate::api::registration::rung::FailurePolicy;

fn registration(rung: Rung) -> Registration {
    Registration {
        name: DEFAULT_NAME.to_owned(),
        rung,
        reach: Reach::Service {
            namespace: "agents".to_owned(),
            name: "agents-webhook".to_owned(),
            port: 443,
        },
        ca: Some(b"pem".to_vec()),
    }
}

fn both(rung: Rung) -> [Configuration; 2] {
    let made = registration(rung);
    [made.mutating().into(), made.validating().into()]
}

/// Checks that find something if both configurations of a rung are changed so.
fn found(rung: Rung, change: impl Fn(&mut Hook)) -> BTreeSet<Check> {
    let mut checks = BTreeSet::new();
    for mut configuration in both(rung) {
        configuration.hooks.iter_mut().for_each(&change);
        checks.extend(
            lint(&configuration, rung)
                .into_iter()
                .map(|finding| finding.check),
        );
    }
    checks
}

#[test]
fn what_is_built_is_free_of_findings_on_every_rung() {
    for rung in Rung::ALL {
        for configuration in both(rung) {
            assert_eq!(lint(&configuration, rung), [], "{rung}");
        }
    }
}

#[test]
fn each_rung_has_these_hooks_with_these_failure_policies() {
    let names = |rung| {
        let hooks = both(rung)
            .into_iter()
            .flat_map(|configuration| configuration.hooks);
        hooks
            .map(|hook| {
                let name = hook
                    .name
                    .strip_suffix(".agents.proompteng.ai")
                    .unwrap()
                    .to_owned();
                format!("{name} {}", hook.failure_policy.unwrap())
            })
            .collect::<Vec<_>>()
    };
    let ignored = [
        "mutate Ignore",
        "mutate-labelled Ignore",
        "mutate-status Ignore",
        "validate Ignore",
        "validate-labelled Ignore",
        "validate-status Ignore",
        "validate-delete Ignore",
    ];
    for rung in [Rung::Audit, Rung::Warn, Rung::Deny] {
        assert_eq!(names(rung), ignored, "{rung}");
    }
    assert_eq!(
        names(Rung::FailLabelled),
        [
            "mutate Ignore",
            "mutate-labelled Fail",
            "mutate-status Ignore",
            "validate Ignore",
            "validate-labelled Fail",
            "validate-status Ignore",
            "validate-delete Ignore",
        ]
    );
    assert_eq!(
        names(Rung::Fail),
        [
            "mutate Fail",
            "mutate-labelled Fail",
            "mutate-status Ignore",
            "validate Fail",
            "validate-labelled Fail",
            "validate-status Ignore",
            "validate-delete Ignore",
        ]
    );
}

#[test]
fn a_rule_names_all_kinds_of_one_group() {
    let rules = Door::Validate.rules();
    assert_eq!(rules.len(), 10, "one per group");
    let tools = rules
        .iter()
        .find(|rule| rule.api_groups == Some(vec!["tools.proompteng.ai".to_owned()]))
        .unwrap();
    assert_eq!(
        tools.resources,
        Some(vec!["tools".to_owned(), "toolruns".to_owned()])
    );
    assert_eq!(
        tools.operations,
        Some(vec!["CREATE".to_owned(), "UPDATE".to_owned()])
    );
    let resources: usize = rules
        .iter()
        .flat_map(|rule| &rule.resources)
        .map(Vec::len)
        .sum();
    assert_eq!(resources, 19);
}

#[test]
fn a_webhook_outside_the_cluster_is_called_by_its_address() {
    for base in ["https://10.0.0.1:8443", "https://10.0.0.1:8443/"] {
        let made = Registration {
            reach: Reach::Url(base.to_owned()),
            ..registration(Rung::Fail)
        };
        let configuration = Configuration::from(made.validating());
        let urls: Vec<_> = configuration
            .hooks
            .iter()
            .map(|hook| hook.client.url.clone().unwrap())
            .collect();
        assert_eq!(
            urls,
            [
                "https://10.0.0.1:8443/validate",
                "https://10.0.0.1:8443/validate",
                "https://10.0.0.1:8443/validate-status",
                "https://10.0.0.1:8443/validate-delete",
            ]
        );
        assert_eq!(lint(&configuration, Rung::Fail), []);
    }
}

#[test]
fn the_rung_is_written_on_the_configuration() {
    let made = registration(Rung::Warn).mutating();
    let annotations = made.metadata.annotations.unwrap();
    assert_eq!(annotations["agents.proompteng.ai/rung"], "warn");
}

#[test]
fn names_have_segments_enough_and_are_unique() {
    for rung in Rung::ALL {
        for configuration in both(rung) {
            let names: BTreeSet<_> = configuration.hooks.iter().map(|hook| &hook.name).collect();
            assert_eq!(names.len(), configuration.hooks.len());
            assert!(names.iter().all(|name| name.split('.').count() >= 3));
        }
    }
}

fn add_rule(hook: &mut Hook, group: &str, resource: &str) {
    let mut rule = hook.rules[0].clone();
    rule.api_groups = Some(vec![group.to_owned()]);
    rule.api_versions = Some(vec!["v1".to_owned()]);
    rule.resources = Some(vec![resource.to_owned()]);
    hook.rules.push(rule);
}

#[test]
fn each_way_to_lock_a_cluster_is_found() {
    type Change = fn(&mut Hook);
    let cases: [(&str, Change, &[Check]); 17] = [
        (
            "pods",
            |hook| add_rule(hook, "", "pods"),
            &[Check::Pods, Check::Foreign],
        ),
        (
            "leases",
            |hook| add_rule(hook, "coordination.k8s.io", "leases"),
            &[Check::Leases, Check::Foreign],
        ),
        (
            "nodes",
            |hook| add_rule(hook, "", "nodes"),
            &[Check::Nodes, Check::Foreign],
        ),
        (
            "certificate requests",
            |hook| add_rule(hook, "certificates.k8s.io", "certificatesigningrequests"),
            &[Check::CertificateRequests, Check::Foreign],
        ),
        (
            "its own deployment",
            |hook| add_rule(hook, "apps", "deployments"),
            &[Check::OwnWorkloads, Check::Foreign],
        ),
        (
            "all of the core group",
            |hook| add_rule(hook, "", "*"),
            &[
                Check::Wildcard,
                Check::Pods,
                Check::Nodes,
                Check::OwnWorkloads,
            ],
        ),
        (
            "subresources of pods",
            |hook| add_rule(hook, "", "pods/*"),
            &[Check::Wildcard, Check::Pods],
        ),
        (
            "something harmless of others",
            |hook| add_rule(hook, "example.org", "widgets"),
            &[Check::Foreign],
        ),
        (
            "every namespace",
            |hook| hook.namespaces = None,
            &[Check::SystemNamespaces],
        ),
        (
            "every user",
            |hook| hook.conditions.clear(),
            &[Check::Exemptions],
        ),
        (
            "nobody but those who should be left out",
            |hook| {
                for condition in &mut hook.conditions {
                    condition.expression = condition.expression.replace('!', "");
                }
            },
            &[Check::Exemptions],
        ),
        (
            "no timeout",
            |hook| hook.timeout_seconds = None,
            &[Check::Timeout],
        ),
        (
            "a long timeout",
            |hook| hook.timeout_seconds = Some(30),
            &[Check::Timeout],
        ),
        (
            "no authority",
            |hook| hook.client.ca_bundle = None,
            &[Check::Authority],
        ),
        (
            "traces on a dry run",
            |hook| hook.side_effects = "Some".to_owned(),
            &[Check::Calls],
        ),
        (
            "never called again",
            |hook| hook.reinvocation_policy = None,
            &[Check::Calls],
        ),
        (
            "a failure policy that is not said means Fail",
            |hook| hook.failure_policy = None,
            &[Check::StatusHeldUp, Check::DeletionHeldUp],
        ),
    ];
    for (name, change, expected) in cases {
        let expected: BTreeSet<Check> = expected.iter().copied().collect();
        assert_eq!(found(Rung::Fail, change), expected, "{name}");
    }
}

#[test]
fn a_configuration_of_another_rung_is_found_exactly_where_they_differ() {
    for made in Rung::ALL {
        for runs in Rung::ALL {
            let territories = [Territory::Plain, Territory::Labelled];
            let differs = |territory: &Territory| {
                made.failure_policy(*territory) != runs.failure_policy(*territory)
            };
            let expected = territories
                .iter()
                .filter(|territory| differs(territory))
                .count();
            for configuration in both(made) {
                let findings = lint(&configuration, runs);
                assert!(findings.iter().all(|finding| finding.check == Check::Rung));
                assert_eq!(findings.len(), expected, "{made} live, {runs} set");
            }
        }
    }
}

#[test]
fn a_finding_says_what_is_wrong_and_where() {
    let [_, validating] = both(Rung::Fail);
    let findings = lint(&validating, Rung::Audit);
    assert_eq!(
        findings[0].to_string(),
        "rung: validate.agents.proompteng.ai: in plain namespaces failurePolicy is Fail, but the rung audit means Ignore"
    );
}

#[test]
fn requests_that_pass_by_are_counted() {
    let [_, mut validating] = both(Rung::Deny);
    validating
        .hooks
        .retain(|hook| hook.path() != Door::Validate.path());
    let findings = lint(&validating, Rung::Deny);
    assert_eq!(
        findings[0].to_string(),
        "coverage: validate.agents.proompteng.ai: in plain namespaces /validate is not asked about CREATE of agents in \
         agents.proompteng.ai, UPDATE of agents in agents.proompteng.ai, CREATE of agentruns in agents.proompteng.ai \
         and 35 more"
    );
    assert_eq!(findings.len(), 2);
}

#[test]
fn a_door_of_the_other_sort_or_of_nobody_is_found() {
    let [mutating, validating] = both(Rung::Deny);
    let swapped = Configuration {
        mutates: true,
        hooks: validating.hooks,
    };
    let findings = lint(&swapped, Rung::Deny);
    assert!(findings.iter().any(|finding| finding.check == Check::Door));
    let mut moved = mutating;
    moved.hooks[0].client.service.as_mut().unwrap().path = Some("/elsewhere".to_owned());
    let findings = lint(&moved, Rung::Deny);
    assert_eq!(
        findings[0].text,
        "/elsewhere is no path of this webhook here"
    );
}

#[test]
fn jobs_of_others_are_left_alone() {
    let [_, validating] = both(Rung::Deny);
    let delete = validating.hooks.last().unwrap();
    let is_selected = |labels: &[(&str, &str)]| {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        selects(delete.objects.as_ref(), &labels.collect())
    };
    for sort in [
        "agents.proompteng.ai/agent-run",
        "jangar.proompteng.ai/tool-run",
    ] {
        assert!(is_selected(&[
            (sort, "r"),
            ("agents.proompteng.ai/run-uid", "u")
        ]));
    }
    assert!(!is_selected(&[("app", "nightly")]));
    let mut bare = validating.clone();
    bare.hooks.last_mut().unwrap().objects = None;
    let findings = lint(&bare, Rung::Deny);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].check, Check::Foreign);
}

#[test]
fn a_guard_that_knows_one_sort_of_job_only_is_found() {
    for sort in [label::AGENT_RUN, label::TOOL_RUN] {
        let [_, mut validating] = both(Rung::Deny);
        validating.hooks.last_mut().unwrap().objects = Some(selector::having(sort));
        let texts = lint(&validating, Rung::Deny)
            .into_iter()
            .filter(|finding| finding.check == Check::Coverage)
            .map(|finding| finding.text);
        assert_eq!(
            texts.collect::<Vec<_>>(),
            ["plain", "labelled"].map(|sort| format!(
                "in {sort} namespaces /validate-delete is not asked about DELETE of jobs in batch"
            )),
            "{sort}"
        );
    }
}

#[test]
fn only_specs_may_ever_be_held_up() {
    for rung in Rung::ALL {
        for territory in [Territory::Plain, Territory::Labelled] {
            for door in [
                Door::MutateStatus,
                Door::ValidateStatus,
                Door::ValidateDelete,
            ] {
                assert_eq!(door.failure_policy(rung, territory), FailurePolicy::Ignore);
            }
        }
    }
}
