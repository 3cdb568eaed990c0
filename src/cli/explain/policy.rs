//! What the policy in force says about a run, by the engine of the webhook.

use jiff::Timestamp;

use crate::admission::decision::{Finding, Rule};
use crate::admission::known::Known;
use crate::api::kind::Kind;
use crate::api::kinds::AgentRun;
use crate::api::policy::{Mode, Policy};
use crate::cli::check::judge::{Law, judge};
use crate::cli::check::{alone, input, installed};
use crate::cli::failure::Failure;
use crate::cli::session::Session;

/// What the policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No webhook runs, so there is no policy.
    NoPolicy,
    /// The run may be.
    Accepted,
    /// It may not, for these causes.
    Refused(Vec<String>),
}

/// What the policy that is in force says about a run.
pub(super) async fn verdict(
    session: &Session,
    named: Option<&str>,
    run: &AgentRun,
) -> Result<Verdict, Failure> {
    let namespace = match named {
        Some(namespace) => namespace.to_owned(),
        None => match installation(session).await? {
            Some(namespace) => namespace,
            None => return Ok(Verdict::NoPolicy),
        },
    };
    let policy = installed::policy(&session.client, &namespace).await?;
    judged(policy, &session.namespace, run)
}

/// Where the webhook runs that judges the runs of a namespace.
async fn installation(session: &Session) -> Result<Option<String>, Failure> {
    let mut all = installed::namespaces(&session.client).await?;
    if let Some(here) = all.take(&session.namespace) {
        return Ok(Some(here));
    }
    match all.len() {
        0 | 1 => Ok(all.pop_first()),
        _ => Err(Failure::new("webhooks run in several namespaces")
            .next("name the one that is meant with --policy-of")),
    }
}

/// Only what the policy refuses: what the rules of a spec say about a run that is stored, its status tells.
fn judged(policy: Policy, namespace: &str, run: &AgentRun) -> Result<Verdict, Failure> {
    let unread = |error: &(dyn std::error::Error + 'static)| {
        Failure::new("the run cannot be judged").because(error)
    };
    let object = serde_json::to_value(run).map_err(|error| unread(&error))?;
    let law = Law {
        in_force: &alone(policy),
        known: &Known::default(),
        stance: &input::stance(),
        now: Timestamp::now(),
    };
    let decision = judge(law, Kind::AgentRun, namespace, &object, None);
    let decision = decision.map_err(|error| unread(&error))?;
    let refuses = |finding: &&Finding| {
        finding.mode == Mode::Enforce && matches!(finding.rule, Rule::Policy(_))
    };
    let causes = decision.findings.iter().filter(refuses);
    let causes =
        causes.map(|finding| format!("{}: {}", finding.cause.field, finding.cause.message));
    let causes: Vec<_> = causes.collect();
    Ok(match causes.is_empty() {
        true => Verdict::Accepted,
        false => Verdict::Refused(causes),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_judged_by_the_policy_and_not_by_the_rules_of_its_kind() {
        let run: AgentRun = serde_json::from_value(json!({
            "metadata": {"name": "fix", "uid": "1"},
            "spec": {"agentRef": {"name": "coder"}, "runtime": {"type": "job"}},
            "status": {"phase": "Failed"},
        }))
        .unwrap();
        let mut strict = Policy::default();
        strict.labels.required = vec!["team".to_owned()];
        assert_eq!(
            judged(Policy::default(), "here", &run).unwrap(),
            Verdict::Accepted,
            "it has nothing to do, which is no matter of policy"
        );
        let Verdict::Refused(causes) = judged(strict, "here", &run).unwrap() else {
            panic!("accepted");
        };
        assert!(causes[0].contains("team"), "{causes:?}");
    }
}
