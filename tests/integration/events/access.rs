//! What the emitter does with the rights that it has.

use agents::events::Severity;
use agents::events::metrics::{Failure, Group, Loss};
use k8s_openapi::api::core::v1::{Event as CoreEvent, Namespace as NamespaceObject};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::*;

/// A client that may do only this with Events of this group, in this namespace.
async fn allowed(namespace: &Namespace, group: &str, verbs: &[&str]) -> Result<Client> {
    let user = format!("someone-{group}-{}", verbs.join("-"));
    let mut role = Role {
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec!["events".to_owned()]),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..PolicyRule::default()
        }]),
        ..Role::default()
    };
    role.metadata.name = Some("events".to_owned());
    let mut binding = RoleBinding {
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: "events".to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "User".to_owned(),
            name: user.clone(),
            namespace: None,
        }]),
        ..RoleBinding::default()
    };
    binding.metadata.name = Some("events".to_owned());
    namespace
        .api()
        .create(&PostParams::default(), &role)
        .await?;
    namespace
        .api()
        .create(&PostParams::default(), &binding)
        .await?;
    let lab = support::lab::shared().await?;
    let mut config = support::cluster::config(lab.kubeconfig()).await?;
    config.auth_info.impersonate = Some(user);
    Ok(Client::try_from(config)?)
}

#[tokio::test]
async fn create_and_patch_are_all_the_rights_it_needs() -> Result<()> {
    within_the_hour(async || {
        let namespace = support::namespace("events").await?;
        let client = allowed(&namespace, "events.k8s.io", &["create", "patch"]).await?;
        for _ in 0..2 {
            let metrics = tell(&client, config(), async |emitter, metrics| {
                for _ in 0..3 {
                    say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
                }
                Ok(metrics.clone())
            })
            .await?;
            assert_eq!(metrics.errors(Failure::Forbidden), 0);
        }
        let found = stored(&namespace).await?;
        ensure!(found == [("a".to_owned(), 6)], "{found:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_program_that_may_only_write_core_events_does_so_within_the_same_limits() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let client = allowed(&namespace, "", &["create", "patch"]).await?;
    let note = "ä".repeat(2_000);
    let metrics = tell(&client, config(), async |emitter, metrics| {
        for _ in 0..5 {
            say(emitter, run(&namespace, "a"), Reason::Failed, &note);
        }
        Ok(metrics.clone())
    })
    .await?;
    let events = namespace
        .api::<CoreEvent>()
        .list(&ListParams::default())
        .await?
        .items;
    let [event] = events.as_slice() else {
        anyhow::bail!("not one Event but {events:?}")
    };
    let message = event.message.clone().unwrap_or_default();
    assert!(
        (1020..=1024).contains(&message.len()),
        "{} bytes",
        message.len()
    );
    assert!(event.first_timestamp.is_some() && event.last_timestamp.is_some());
    let expected = (Some(5), Some("Warning"), Some("Failed"), Some("Run"));
    let said = (
        event.count,
        event.type_.as_deref(),
        event.reason.as_deref(),
        event.action.as_deref(),
    );
    assert_eq!(said, expected);
    assert_eq!(metrics.emitted(Severity::Warning, Group::Core), 1);
    assert_eq!(
        metrics.errors(Failure::Forbidden),
        1,
        "the other group is asked once"
    );
    Ok(())
}

#[tokio::test]
async fn counts_that_may_not_be_written_are_lost_but_not_tried_with_every_repeat() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let client = allowed(&namespace, "", &["create"]).await?;
    tell(&client, config(), async |emitter, metrics| {
        say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        only(&namespace, |_| true).await?;
        say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        let lost = || async {
            anyhow::ensure!(metrics.dropped(Loss::Undelivered) == 1, "{metrics:?}");
            Ok(())
        };
        wait::retry("the count is lost", DEADLINE, lost).await?;
        let asked = metrics.errors(Failure::Forbidden);
        for _ in 0..50 {
            say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        }
        say(emitter, run(&namespace, "b"), Reason::Failed, "It failed");
        all(&namespace, |list| list.len() == 2).await?;
        assert_eq!(metrics.errors(Failure::Forbidden), asked);
        Ok(())
    })
    .await?;
    assert_eq!(
        stored(&namespace).await?,
        [("a".to_owned(), 1), ("b".to_owned(), 1)]
    );
    Ok(())
}

#[tokio::test]
async fn without_any_right_events_are_dropped_and_counted() -> Result<()> {
    let namespace = support::namespace("events").await?;
    let client = allowed(&namespace, "", &["list"]).await?;
    let metrics = tell(&client, config(), async |emitter, metrics| {
        say(emitter, run(&namespace, "a"), Reason::Failed, "It failed");
        Ok(metrics.clone())
    })
    .await?;
    assert_eq!(metrics.dropped(Loss::Undelivered), 1);
    assert_eq!(metrics.errors(Failure::Forbidden), 2);
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_is_gone_or_going_is_not_asked_twice() -> Result<()> {
    let gone = Regarding::named(Kind::AgentRun, "no-such-namespace", "a");
    let namespace = support::namespace("events").await?;
    hold(&namespace).await?;
    let all: Api<NamespaceObject> = Api::all(namespace.client.clone());
    all.delete(&namespace.name, &DeleteParams::default())
        .await?;
    let terminating = |object: &NamespaceObject| object.metadata.deletion_timestamp.is_some();
    wait::until(&all, &namespace.name, DEADLINE, terminating).await?;
    for (what, regarding) in [("gone", gone), ("going", run(&namespace, "a"))] {
        let metrics = tell(&namespace.client, config(), async |emitter, metrics| {
            say(emitter, regarding, Reason::Failed, "It failed");
            Ok(metrics.clone())
        })
        .await?;
        let said = (
            metrics.errors(Failure::NamespaceGone),
            metrics.dropped(Loss::Undelivered),
        );
        assert_eq!(said, (1, 1), "{what}");
    }
    release(&namespace).await
}

/// Keeps the namespace from going away as soon as it is asked to.
async fn hold(namespace: &Namespace) -> Result<()> {
    let mut object = config_map(namespace, "hold").await?;
    object
        .finalizers_mut()
        .push("agents.proompteng.ai/test".to_owned());
    let change = json!({ "metadata": { "finalizers": object.finalizers() } });
    let maps = namespace.api::<ConfigMap>();
    maps.patch("hold", &PatchParams::default(), &Patch::Merge(change))
        .await?;
    Ok(())
}

async fn release(namespace: &Namespace) -> Result<()> {
    let change = json!({ "metadata": { "finalizers": null } });
    let maps = namespace.api::<ConfigMap>();
    maps.patch("hold", &PatchParams::default(), &Patch::Merge(change))
        .await?;
    Ok(())
}
