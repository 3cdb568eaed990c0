//! Every reason for which a run can be held back is one for which this controller holds runs back.

use super::*;

/// What a pass sees that holds a run back for this.
fn seen_with(reason: Hindrance) -> Observed {
    match reason {
        Hindrance::ConcurrencyLimit | Hindrance::QueueLimit | Hindrance::RateLimit => {
            limited(reason)
        }
        Hindrance::Exceeded => {
            let spent = json!({"metadata": {"name": "b"}, "spec": {"limits": {"tokens": "1"}}, "status": {"used": {"tokens": "2"}}});
            finding(|found| found.budgets = vec![("b".to_owned(), Some(read(spent)))])
        }
        Hindrance::MissingAgent => finding(|found| found.agent = None),
        Hindrance::MissingProvider => finding(|found| found.provider = None),
        Hindrance::MissingImplementation => asking(
            json!({"implementation": null, "implementationSpecRef": {"name": "task"}}),
            |_| {},
        ),
        Hindrance::MissingMemory => asking(json!({"memoryRef": {"name": "m"}}), |_| {}),
        Hindrance::MissingBudget => finding(|found| found.budgets = vec![("b".to_owned(), None)]),
        Hindrance::MissingVcsProvider => asking(json!({"vcsRef": {"name": "host"}}), |_| {}),
        Hindrance::SecretNotFound => finding(|found| found.absent_secrets = vec!["s".to_owned()]),
        Hindrance::SecretKeyMissing => {
            let spec = json!({"vcsRef": {"name": "host"}, "parameters": {"repository": "o/r"}});
            asking(spec, |found| {
                let host = json!({"metadata": {"name": "host"}, "spec": {
                    "provider": "github", "auth": {"token": {"secretRef": {"name": "t"}}}}});
                found.hosts.insert("host".to_owned(), read(host));
                found
                    .secrets
                    .insert("t".to_owned(), ["other".to_owned()].into());
            })
        }
        Hindrance::ConfigMapNotFound => {
            finding(|found| found.absent_config_maps = vec!["c".to_owned()])
        }
        Hindrance::ConfigMapKeyMissing => {
            let prompt = json!({"kind": "ConfigMap", "name": "c", "key": "k"});
            asking(json!({"systemPromptRef": prompt}), |_| {})
        }
        Hindrance::ClaimNotFound => finding(|found| found.absent_claims = vec!["v".to_owned()]),
        Hindrance::JobNameConflict => Observed {
            in_the_way: Some("r-spec".to_owned()),
            ..seen(new(), Sight::Absent)
        },
        Hindrance::PodNotEnding => {
            steps::beside_an_earlier_pod(Some("2026-01-01T11:59:00Z"), json!(null))
        }
    }
}

/// A run that may not begin yet.
fn limited(reason: Hindrance) -> Observed {
    Observed {
        admission: Decision::Wait(Refusal {
            reason,
            scope: Sort::Cluster,
            message: "too many".to_owned(),
            until: None,
        }),
        ..seen(new(), Sight::Absent)
    }
}

/// A run that finds something else than all that it needs.
fn finding(change: impl FnOnce(&mut Found)) -> Observed {
    asking(json!({}), change)
}

/// The same, for a run that asks for more.
fn asking(spec: Value, change: impl FnOnce(&mut Found)) -> Observed {
    let mut found = found();
    change(&mut found);
    Observed {
        found: Some(found),
        ..seen(run(json!({}), spec, json!({})), Sight::Absent)
    }
}

#[test]
fn every_reason_to_be_held_back_has_its_cause() {
    for &reason in Hindrance::ALL {
        let plan = plan(&seen_with(reason), &settings());
        let next = one_status(&plan);
        let mut observed = next.observed.iter();
        let blocked = observed.find(|entry| entry.type_ == ConditionType::Blocked);
        let blocked = blocked.map(|entry| (entry.status.as_str(), entry.reason.as_str()));
        assert_eq!(blocked, Some(("True", reason.as_str())), "{next:?}");
    }
}
