//! Every check on a healthy installation, and each with its fault.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::contract::{GROUP, annotation, env, finalizer};
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::registration::rung::Rung;
use crate::api::registration::{Configuration, Reach, Registration};
use crate::cli::doctor::check::{Verdict, all};
use crate::cli::doctor::facts::{
    Component, Facts, Other, Probe, Program, Registered, Sidecar, Unseen,
};
use crate::cli::doctor::values::Values;
use crate::cluster::Standing;
use crate::kit::tls::Presented;

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A certificate for the Service of the webhook that is its own authority, and holds for so many days from now on.
fn certificate(name: &str, days: i64) -> String {
    let mut made = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
    let second = now().as_second();
    let day = |days: i64| second + days * 86_400;
    let time = |second: i64| {
        let date = Timestamp::from_second(second).unwrap();
        let date = date.to_zoned(jiff::tz::TimeZone::UTC).date();
        let (month, day) = (date.month(), date.day());
        rcgen::date_time_ymd(
            date.year().into(),
            month.try_into().unwrap(),
            day.try_into().unwrap(),
        )
    };
    made.not_before = time(day(-30));
    made.not_after = time(day(days));
    let key = rcgen::KeyPair::generate().unwrap();
    made.self_signed(&key).unwrap().pem()
}

const NAME: &str = "agents-webhook.agents.svc";

fn registered(rung: Rung, ca: &str) -> Registered {
    let made = Registration {
        name: "agents-webhook".to_owned(),
        rung,
        reach: Reach::Service {
            namespace: "agents".to_owned(),
            name: "agents-webhook".to_owned(),
            port: 443,
        },
        ca: Some(ca.as_bytes().to_vec()),
    };
    Registered {
        mutating: Some(made.mutating()),
        validating: Some(made.validating()),
    }
}

fn program(component: Component) -> Program {
    let variables = [("AGENTS_WEBHOOK_RUNG".to_owned(), "deny".to_owned())];
    Program {
        component,
        kind: "Deployment".to_owned(),
        name: format!("agents-{}", component.as_str()),
        wanted: 2,
        ready: 2,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        account: "default".to_owned(),
        variables: variables.into(),
        secret: None,
        has_sidecar: component == Component::Controllers,
    }
}

/// A lease that was renewed so many seconds ago, by a clock that is so many seconds ahead.
fn lease(seconds: i64, ahead: i64) -> Lease {
    let noted = now() - SignedDuration::from_secs(seconds);
    let renewed = noted + SignedDuration::from_secs(ahead);
    read(json!({
        "metadata": {"name": "jangar-controller-leader", "managedFields": [
            {"time": noted.to_string(), "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:renewTime": {}}}},
        ]},
        "spec": {"holderIdentity": "agents-controllers-1_uid", "leaseDurationSeconds": 30,
            "renewTime": format!("{renewed:.6}")},
    }))
}

/// A Job that ended so many seconds ago.
fn job(name: &str, seconds: i64, more: Value) -> Job {
    let at = (now() - SignedDuration::from_secs(seconds)).to_string();
    let mut job = json!({
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"template": {"spec": {"containers": []}}},
        "status": {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": at}]},
    });
    json_patch::merge(&mut job, &more);
    read(job)
}

fn recorded(at: &str) -> Value {
    json!({"metadata": {"annotations": {annotation::OUTCOME_RECORDED: at}}})
}

fn run(conditions: &Value, made: &str) -> AgentRun {
    read(json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": "fix", "namespace": "team", "creationTimestamp": made},
        "spec": {"agentRef": {"name": "a"}, "runtime": {"type": "job"}},
        "status": {"phase": "Pending", "conditions": conditions},
    }))
}

fn monitor() -> Value {
    json!({"kind": "ServiceMonitor", "metadata": {"name": "agents", "namespace": "agents", "labels": {"release": "kps"}}})
}

fn prometheus(selector: Value, namespaces: Value) -> Value {
    json!({
        "metadata": {"name": "p", "namespace": "monitoring"},
        "spec": {"serviceMonitorSelector": selector, "serviceMonitorNamespaceSelector": namespaces},
    })
}

/// Everything as it should be.
pub(crate) fn healthy() -> Facts {
    let pem = certificate(NAME, 60);
    let labels = BTreeMap::from([(
        "kubernetes.io/metadata.name".to_owned(),
        "agents".to_owned(),
    )]);
    let groups = [
        "cert-manager.io/v1",
        "argoproj.io/v1alpha1",
        "monitoring.coreos.com/v1",
    ];
    Facts {
        namespace: "agents".to_owned(),
        values: Values::default(),
        now: now(),
        version: Ok("v1.35.1".to_owned()),
        ahead: Ok(SignedDuration::from_secs(1)),
        kinds: Ok(Kind::ALL.map(|kind| (kind, Standing::Current)).to_vec()),
        groups: Ok(groups.map(str::to_owned).into()),
        namespaces: Ok([("agents".to_owned(), labels)].into()),
        installer: Ok(Vec::new()),
        programs: Ok(Component::ALL.map(program).to_vec()),
        lacking: Component::ALL.map(|it| (it, Ok(Vec::new()))).into(),
        lease: Ok(lease(3, 0)),
        pods: Ok(BTreeSet::from(["agents-controllers-1".to_owned()])),
        registered: Ok(registered(Rung::Deny, &pem)),
        others: Ok(Vec::new()),
        certificate: Ok(Presented::from_pem(pem.as_bytes()).unwrap()),
        endpoints: Ok(2),
        probe: Ok(Probe::Marked),
        monitors: Ok(vec![monitor()]),
        prometheuses: Ok(vec![prometheus(
            json!({"matchLabels": {"release": "kps"}}),
            json!({}),
        )]),
        sidecars: Ok(vec![Sidecar {
            pod: "agents-controllers-1".to_owned(),
            age: Some(900.0),
            scrapes: 2,
        }]),
        jobs: Ok(vec![job("done", 60, recorded("2026-01-01T11:59:02Z"))]),
        runs: Ok(Vec::new()),
    }
}

fn verdict(id: &str, facts: &Facts) -> Verdict {
    let check = all().find(|check| check.id == id);
    let check = check.unwrap_or_else(|| panic!("there is no check {id}"));
    (check.judge)(facts)
}

#[test]
fn a_healthy_installation_has_no_finding() {
    let facts = healthy();
    for check in all() {
        let verdict = (check.judge)(&facts);
        let is_quiet = matches!(verdict, Verdict::Good(_) | Verdict::Beside(_));
        assert!(is_quiet, "{}: {verdict:?}", check.id);
    }
}

#[test]
fn checks_have_names_of_their_own_and_words_for_people() {
    let mut names = BTreeSet::new();
    for check in all() {
        assert!(names.insert(check.id), "{} is there twice", check.id);
        assert!(!check.hint.is_empty() && !check.title.ends_with('.'));
        assert!(check.link.starts_with("docs/"), "{}", check.link);
    }
}

/// A hook of someone else, asked about some resources.
fn other(group: &str, resource: &str, fails: bool, mutates: bool, ready: Option<usize>) -> Other {
    let policy = if fails { "Fail" } else { "Ignore" };
    let service = json!({"namespace": "x", "name": "y"});
    let configuration = json!({
        "metadata": {"name": "theirs"},
        "webhooks": [{
            "name": "check.theirs.test", "clientConfig": {"service": service}, "failurePolicy": policy,
            "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resource]}],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let stored: k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration =
        read(configuration);
    let hook = Configuration::from(stored).hooks.remove(0);
    Other {
        configuration: "theirs".to_owned(),
        mutates,
        hook,
        endpoints: Some(ready.ok_or_else(|| Unseen::Absent("it".to_owned()))),
    }
}

/// A fault, the check that finds it, the word for how, and what it says among other things.
type Row = (&'static str, &'static str, &'static str, fn(&mut Facts));

const FAULTS: &[Row] = &[
    ("api-server", "failed", "older than v1.33", |facts| {
        facts.version = Ok("v1.30.0".to_owned())
    }),
    ("api-server", "failed", "no answer", |facts| {
        facts.version = Err(Unseen::Silent("no answer".to_owned()))
    }),
    ("clock", "failed", "120 s ahead of this machine", |facts| {
        facts.ahead = Ok(SignedDuration::from_secs(120))
    }),
    (
        "clock",
        "warning",
        "the API server is 9 s behind",
        |facts| facts.ahead = Ok(SignedDuration::from_secs(-9)),
    ),
    (
        "cert-manager",
        "failed",
        "does not have cert-manager.io/v1",
        |facts| {
            facts.groups = Ok(BTreeSet::new());
            facts.registered = Ok(Registered::default());
        },
    ),
    ("rollouts", "failed", "does not have argoproj.io", |facts| {
        facts.groups = Ok(BTreeSet::new());
        facts.values.rollouts = true;
    }),
    ("rollouts", "failed", "does not have argoproj.io", |facts| {
        facts.groups = Ok(BTreeSet::new());
        facts.programs = Ok(vec![program(Component::Webhook)]);
    }),
    (
        "monitoring",
        "failed",
        "does not have monitoring",
        |facts| {
            facts.groups = Ok(BTreeSet::new());
            facts.values.monitor = true;
        },
    ),
    (
        "kinds-served",
        "failed",
        "agentruns.agents.proompteng.ai is missing",
        |facts| {
            facts.kinds = Ok(vec![
                (Kind::AgentRun, Standing::Missing),
                (Kind::Agent, Standing::Current),
            ]);
        },
    ),
    ("kinds-current", "failed", "lacks spec.x", |facts| {
        facts.kinds = Ok(vec![(
            Kind::AgentRun,
            Standing::Lacking("lacks spec.x".to_owned()),
        )]);
    }),
    ("rights-install", "failed", "may not create", |facts| {
        facts.installer = Ok(vec!["you may not create x".to_owned()])
    }),
    ("rights-controllers", "failed", "no permission", |facts| {
        lack(facts, Component::Controllers)
    }),
    ("rights-webhook", "failed", "no permission", |facts| {
        lack(facts, Component::Webhook)
    }),
    ("rights-control-plane", "failed", "no permission", |facts| {
        lack(facts, Component::ControlPlane)
    }),
    (
        "rights-controllers",
        "unknown",
        "you may not look",
        |facts| {
            facts.lacking.insert(
                Component::Controllers,
                Err(Unseen::Forbidden("no".to_owned())),
            );
        },
    ),
    ("controllers", "failed", "0 of 2 pods", |facts| {
        change(facts, |program| program.ready = 0)
    }),
    ("webhook", "warning", "1 of 2 pods", |facts| {
        change(facts, |program| program.ready = 1)
    }),
    ("control-plane", "failed", "0 of 2 pods", |facts| {
        change(facts, |program| program.ready = 0)
    }),
    (
        "controllers",
        "failed",
        "no controllers in namespace",
        |facts| facts.programs = Ok(Vec::new()),
    ),
    ("versions", "warning", "agents-webhook is 9.9", |facts| {
        change(facts, |program| program.version = Some("9.9".to_owned()));
    }),
    ("lease", "failed", "the lease is not there", |facts| {
        facts.lease = Err(Unseen::Absent("the lease".to_owned()))
    }),
    ("lease", "failed", "nobody holds", |facts| {
        facts.lease = Ok(Lease::default())
    }),
    ("lease", "failed", "not renewed it for 300 s", |facts| {
        facts.lease = Ok(lease(300, 0))
    }),
    ("lease", "failed", "there is no such pod", |facts| {
        facts.lease = Ok(lease(300, 0));
        facts.pods = Ok(BTreeSet::new());
    }),
    (
        "lease-clock",
        "failed",
        "the leader is 90 s ahead",
        |facts| facts.lease = Ok(lease(3, 90)),
    ),
    (
        "webhook-registered",
        "failed",
        "MutatingWebhookConfiguration is missing",
        |facts| {
            facts.registered.as_mut().unwrap().mutating = None;
        },
    ),
    (
        "webhook-failure-policy",
        "failed",
        "made for deny",
        |facts| facts.values.rung = Some(Rung::Fail),
    ),
    (
        "webhook-failure-policy",
        "failed",
        "mutate.agents.proompteng.ai",
        |facts| {
            let hooks = facts
                .registered
                .as_mut()
                .unwrap()
                .mutating
                .as_mut()
                .unwrap();
            hooks.webhooks.as_mut().unwrap()[0].failure_policy = Some("Fail".to_owned());
        },
    ),
    ("webhook-registration", "failed", "timeout", |facts| {
        let hooks = facts
            .registered
            .as_mut()
            .unwrap()
            .validating
            .as_mut()
            .unwrap();
        hooks.webhooks.as_mut().unwrap()[0].timeout_seconds = Some(30);
    }),
    ("webhook-ca-bundle", "failed", "is empty", |facts| {
        let hooks = facts
            .registered
            .as_mut()
            .unwrap()
            .validating
            .as_mut()
            .unwrap();
        hooks.webhooks.as_mut().unwrap()[0].client_config.ca_bundle = None;
    }),
    ("webhook-ca-bundle", "failed", "does not lead to", |facts| {
        facts.registered = Ok(registered(Rung::Deny, &certificate(NAME, 60)));
    }),
    (
        "webhook-certificate",
        "failed",
        "is not for agents-webhook.agents.svc",
        |facts| show(facts, "else.test", 60),
    ),
    ("webhook-certificate", "failed", "expired", |facts| {
        show(facts, NAME, -2)
    }),
    ("webhook-certificate-term", "failed", "expired", |facts| {
        show(facts, NAME, -2)
    }),
    (
        "webhook-certificate-term",
        "warning",
        "it ends at",
        |facts| show(facts, NAME, 5),
    ),
    ("webhook-endpoints", "failed", "none is ready", |facts| {
        facts.endpoints = Ok(0)
    }),
    (
        "webhook-answers",
        "failed",
        "without being looked at",
        |facts| facts.probe = Ok(Probe::Unmarked),
    ),
    ("webhook-answers", "failed", "connection refused", |facts| {
        refuse(
            facts,
            "failed calling webhook \"mutate.agents.proompteng.ai\": connection refused",
        );
    }),
    (
        "webhook-answers",
        "unknown",
        "did not come so far",
        |facts| refuse(facts, "exceeded quota"),
    ),
    ("other-webhooks", "failed", "nobody answers", |facts| {
        facts.others = Ok(vec![other(GROUP, "*", true, false, Some(0))]);
    }),
    ("other-webhooks", "failed", "nobody answers", |facts| {
        facts.others = Ok(vec![other("batch", "jobs", true, false, None)]);
    }),
    (
        "other-webhooks",
        "warning",
        "may change our objects",
        |facts| {
            facts.others = Ok(vec![other(GROUP, "agentruns", true, true, Some(1))]);
        },
    ),
    ("other-webhooks", "failed", "check.theirs.test", |facts| {
        refuse(
            facts,
            "admission webhook \"check.theirs.test\" denied the request: no",
        );
    }),
    (
        "monitor-selected",
        "failed",
        "no Prometheus selects agents in namespace agents",
        |facts| {
            facts.prometheuses = Ok(vec![prometheus(
                json!({"matchLabels": {"release": "x"}}),
                json!({}),
            )]);
        },
    ),
    (
        "monitor-selected",
        "failed",
        "no Prometheus selects",
        |facts| {
            facts.prometheuses = Ok(vec![prometheus(json!({}), Value::Null)]);
        },
    ),
    (
        "monitor-selected",
        "failed",
        "no Prometheus selects",
        |facts| {
            facts.prometheuses = Ok(vec![prometheus(Value::Null, json!({}))]);
        },
    ),
    (
        "monitor-selected",
        "warning",
        "no Prometheus object",
        |facts| facts.prometheuses = Ok(Vec::new()),
    ),
    (
        "sidecar-scraped",
        "failed",
        "agents-controllers-1",
        |facts| facts.sidecars.as_mut().unwrap()[0].scrapes = 0,
    ),
    ("sidecar-scraped", "failed", "has no sidecar", |facts| {
        change(facts, |program| program.has_sidecar = false)
    }),
    (
        "jobs-recorded",
        "failed",
        "team/lost ended 400 s ago",
        |facts| facts.jobs = Ok(vec![job("lost", 400, json!({}))]),
    ),
    ("job-ttl", "failed", "team/short lives 70 s", |facts| {
        facts.jobs = Ok(vec![job(
            "short",
            30,
            json!({"spec": {"ttlSecondsAfterFinished": 70}}),
        )]);
    }),
    ("job-ttl", "failed", "team/next lives 120 s", |facts| {
        let active =
            json!({"spec": {"ttlSecondsAfterFinished": 120}, "status": {"conditions": null}});
        facts.jobs = Ok(vec![job("slow", 100, json!({})), job("next", 0, active)]);
    }),
    ("job-ttl", "warning", "kept for 60 s", |facts| {
        change(facts, |program| {
            drop(
                program
                    .variables
                    .insert(env::RUNNER_JOB_TTL.to_owned(), "60".to_owned()),
            )
        });
        facts.jobs = Ok(vec![job("slow", 100, json!({}))]);
    }),
    ("jobs-held", "failed", "team/stuck has been held", |facts| {
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T11:00:00Z", "finalizers": [finalizer::OUTCOME]}});
        facts.jobs = Ok(vec![job("stuck", 60, going)]);
    }),
    (
        "runs-blocked",
        "warning",
        "team/fix: MissingAgent",
        |facts| {
            let conditions =
                json!([{"type": "Blocked", "status": "True", "reason": "MissingAgent"}]);
            facts.runs = Ok(vec![run(&conditions, NOW)]);
        },
    ),
    ("runs-waiting", "warning", "waited for 3600 s", |facts| {
        let conditions = json!([{"type": "Blocked", "status": "True", "reason": "QueueLimit"}]);
        facts.runs = Ok(vec![run(&conditions, "2026-01-01T11:00:00Z")]);
    }),
];

fn lack(facts: &mut Facts, component: Component) {
    let lacking = vec!["no permission to get pods".to_owned()];
    facts.lacking.insert(component, Ok(lacking));
}

fn change(facts: &mut Facts, how: fn(&mut Program)) {
    facts.programs.as_mut().unwrap().iter_mut().for_each(how);
}

fn show(facts: &mut Facts, name: &str, days: i64) {
    let pem = certificate(name, days);
    facts.certificate = Ok(Presented::from_pem(pem.as_bytes()).unwrap());
}

fn refuse(facts: &mut Facts, words: &str) {
    facts.probe = Ok(Probe::Refused(words.to_owned()));
}

#[test]
fn each_fault_is_found_by_its_check() {
    for (id, word, said, fault) in FAULTS {
        let mut facts = healthy();
        fault(&mut facts);
        let verdict = verdict(id, &facts);
        assert_eq!(verdict.as_str(), *word, "{id}: {verdict:?}");
        assert!(verdict.text().contains(said), "{id}: {verdict:?}");
    }
    let tried: BTreeSet<&str> = FAULTS.iter().map(|(id, ..)| *id).collect();
    let untried: Vec<&str> = all()
        .map(|check| check.id)
        .filter(|id| !tried.contains(id))
        .collect();
    assert_eq!(untried, Vec::<&str>::new(), "checks without a fault");
}

#[test]
fn what_is_not_there_is_no_fault_where_it_is_not_meant_to_be() {
    let mut facts = healthy();
    facts.programs = Ok(vec![program(Component::Controllers)]);
    facts.registered = Ok(Registered::default());
    facts.groups = Ok(BTreeSet::new());
    facts.monitors = Err(Unseen::Absent("the kind ServiceMonitor".to_owned()));
    facts.values = Values {
        given: true,
        webhook: false,
        cert_manager: false,
        control_plane: false,
        ..Values::default()
    };
    for id in [
        "webhook",
        "control-plane",
        "webhook-registered",
        "webhook-answers",
        "cert-manager",
        "rollouts",
        "monitoring",
        "monitor-selected",
    ] {
        assert_eq!(verdict(id, &facts).as_str(), "skipped", "{id}");
    }
    facts.values.webhook = true;
    assert_eq!(verdict("webhook", &facts).as_str(), "failed");
    let quiet = other("", "pods", false, true, Some(0));
    let away = other("apps", "deployments", true, true, Some(0));
    facts.others = Ok(vec![quiet, away]);
    assert_eq!(verdict("other-webhooks", &facts).as_str(), "ok");
}
