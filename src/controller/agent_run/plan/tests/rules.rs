//! What the policy, SecretBindings and Budgets say when a run is about to begin.

use super::*;
use crate::api::policy::Policy;

fn with(policy: &str, change: impl FnOnce(&mut Found)) -> Found {
    let mut found = found();
    found.policy = Arc::new(Policy::parse(policy).unwrap());
    change(&mut found);
    found
}

fn strict(found: &mut Found) {
    found.agent = Some(read(json!({
        "metadata": {"name": "coder"},
        "spec": {"providerRef": {"name": "shell"}, "security": {"allowedSecrets": ["ours"], "allowedServiceAccounts": ["runner"]}},
    })));
}

fn about(run: Arc<AgentRun>, found: Found) -> Observed {
    Observed {
        found: Some(found),
        ..seen(run, Sight::Absent)
    }
}

fn asking(spec: Value) -> Arc<AgentRun> {
    run(json!({}), spec, json!({}))
}

#[test]
fn a_run_does_not_begin_against_the_policy() {
    let binding = read(json!({"metadata": {"name": "b"}, "spec": {
        "subjects": [{"kind": "Agent", "name": "coder"}], "allowedSecrets": ["ours"]}}));
    let lists = "the Agent does not allow secret \"prod\"; allowed: \"ours\"";
    let account = "the Agent does not allow service account \"default\"; allowed: \"runner\"";
    let refused = format!(
        "Failed SecretNotAllowed: spec.secrets[0]: {lists}; spec.runtime.config.serviceAccount: {account} [PolicyDenied]"
    );
    check(vec![
        (
            "lists of an Agent that came after the run, all causes at once",
            about(asking(json!({"secrets": ["prod"]})), with("{}", strict)),
            &[&refused],
        ),
        (
            "what is blocked is told before its Agent is there",
            about(
                asking(json!({"secrets": ["root"]})),
                with("blockedSecrets: [root]", |found| found.agent = None),
            ),
            &[
                "Failed SecretBlocked: spec.secrets[0]: secret \"root\" may not be used here; use another one [PolicyDenied]",
            ],
        ),
        (
            "a secret that no binding gives",
            about(
                asking(json!({"secrets": ["theirs"]})),
                with("{}", |found| found.bindings = vec![binding]),
            ),
            &[
                "Failed SecretNotAllowed: spec.secrets[0]: no SecretBinding gives secret \"theirs\" to Agent \"coder\"; add it to one that names the Agent [PolicyDenied]",
            ],
        ),
        (
            "a rule that only warns",
            about(
                new(),
                with(
                    "{images: {denied: ['runner:*']}, modes: {DeniedImages: warn}}",
                    |_| {},
                ),
            ),
            &[
                "admit",
                "Pending Pending: the Job is about to be made [PolicyDenied]",
            ],
        ),
        (
            "a rule that only watches",
            about(
                new(),
                with(
                    "{images: {denied: ['runner:*']}, modes: {DeniedImages: audit}}",
                    |_| {},
                ),
            ),
            &["admit", "Pending Pending: the Job is about to be made []"],
        ),
    ]);
}

#[test]
fn a_warning_of_the_policy_stays_and_is_told_once() {
    let mut status = reserved();
    status["conditions"] = json!([{"type": "Warning", "status": "True", "reason": "ImageBlocked", "message": "m",
        "lastTransitionTime": NOW}]);
    let plan = plan(
        &seen(run(json!({}), json!({}), status), active()),
        &settings(),
    );
    let Some(Step::Status(standing)) = plan.steps.first() else {
        panic!("a status: {plan:?}");
    };
    let warning = standing.observed.iter();
    let warning = warning.filter(|entry| entry.type_.as_str() == "Warning");
    let warning: Vec<_> = warning
        .map(|entry| {
            (
                entry.status.as_str(),
                entry.reason.as_str(),
                entry.message.as_str(),
            )
        })
        .collect();
    assert_eq!(warning, [("True", "ImageBlocked", "m")]);
    let told: Vec<_> = standing
        .notices
        .iter()
        .map(|notice| notice.reason.as_str())
        .collect();
    assert_eq!(told, ["Submitted"]);
}

#[test]
fn a_budget_that_is_used_up_holds_a_run_back_until_it_has_begun() {
    let spent = |found: &mut Found| {
        let budget = json!({"metadata": {"name": "b"}, "spec": {"limits": {"tokens": "1"}}, "status": {"used": {"tokens": "2"}}});
        found.budgets = vec![("b".to_owned(), Some(read(budget)))];
    };
    let missing = |found: &mut Found| found.budgets = vec![("b".to_owned(), None)];
    let held = "Pending Exceeded: more was used of Budget b than allowed: tokens [Blocked]";
    check(vec![
        ("used up", about(new(), with("{}", spent)), &[held]),
        (
            "used up while it works",
            about(run(json!({}), json!({}), reserved()), with("{}", spent)),
            &["make r-spec", "make r-job"],
        ),
        (
            "not there yet",
            about(new(), with("{}", missing)),
            &["Pending MissingBudget: Budget b does not exist yet [ReferenceMissing]"],
        ),
    ]);
    let blocked = json!([{"type": "Blocked", "status": "True", "reason": "Exceeded", "lastTransitionTime": "2020-01-01T00:00:00Z"}]);
    let waiting = run(
        json!({}),
        json!({}),
        json!({"phase": "Pending", "conditions": blocked}),
    );
    assert_eq!(
        status::missing_since(&*waiting),
        None,
        "there is no grace to be over"
    );
}
