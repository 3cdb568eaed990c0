//! Every right that a program needs is granted, and none that it does not.

use std::collections::BTreeSet;

use agents::{
    admission::known::Known,
    cluster::{Need, Scope},
    kit::config::{Flags, Settings},
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::helm::{Helm, NAMESPACE, Rendered};

/// What may be done: where (empty for the whole cluster), group, resource and verb.
type Right = (String, String, String, String);

fn right(place: &str, group: &str, resource: &str, verb: &str) -> Right {
    (
        place.to_owned(),
        group.to_owned(),
        resource.to_owned(),
        verb.to_owned(),
    )
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// What roles of a component grant, each right alone. Groups and resources of one rule belong together in pairs that exist.
fn granted(rendered: &Rendered, component: &str) -> BTreeSet<Right> {
    let roles = rendered.all("Role").chain(rendered.all("ClusterRole"));
    let own =
        roles.filter(|role| role["metadata"]["labels"]["app.kubernetes.io/component"] == component);
    let mut rights = BTreeSet::new();
    for role in own {
        let place = role["metadata"]["namespace"].as_str().unwrap_or_default();
        for rule in role["rules"].as_array().into_iter().flatten() {
            for group in strings(&rule["apiGroups"]) {
                for resource in strings(&rule["resources"]).filter(|one| exists(group, one)) {
                    for verb in strings(&rule["verbs"]) {
                        rights.insert(right(place, group, resource, verb));
                    }
                }
            }
        }
    }
    rights
}

/// Whether a resource is in a group, as far as ours are concerned.
fn exists(group: &str, resource: &str) -> bool {
    use agents::api::kind::Kind;
    let plain = resource.trim_end_matches("/status");
    match Kind::ALL.into_iter().find(|kind| kind.plural() == plain) {
        Some(kind) => kind.group() == group,
        None => true,
    }
}

fn needed(needs: &[Need]) -> BTreeSet<Right> {
    let each = needs.iter().flat_map(|need| {
        let place = match &need.scope {
            Scope::Cluster => "",
            Scope::Namespace(name) => name,
        };
        let verbs = need.verbs.iter();
        verbs.map(move |verb| right(place, need.group, &need.resource, verb))
    });
    each.collect()
}

/// The settings of a container, read as the program would.
fn settings<S: Settings>(rendered: &Rendered, container: &str) -> Result<S> {
    let told = rendered.plain_variables(container)?;
    let read = Flags::<S>::default().resolve(told);
    let (settings, _) = read.with_context(|| format!("{container} would not start"))?;
    Ok(settings)
}

/// Without these the work goes on, so they are not among the needs.
fn welcome(places: &BTreeSet<String>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for place in places {
        for group in ["", "events.k8s.io"] {
            rights.extend(["create", "patch"].map(|verb| right(place, group, "events", verb)));
        }
    }
    rights
}

fn places(rights: &BTreeSet<Right>) -> BTreeSet<String> {
    rights.iter().map(|(place, ..)| place.clone()).collect()
}

#[tokio::test]
async fn the_controllers_get_what_they_and_their_sidecar_need_and_no_more() -> Result<()> {
    let helm = Helm::new().await?;
    let cases = [
        json!({}),
        json!({"rbac": {"clusterScoped": true}, "controller": {"namespaces": ["*"]}}),
        json!({"controller": {"namespaces": ["a", "b"]}}),
        json!({"controller": {"vcsProviders": {"enabled": false}, "leaderElection": {"enabled": false}}}),
        json!({"controller": {"leaderElection": {"leaseNamespace": "leases"}}}),
        json!({"orchestrationController": {"enabled": false}, "supportingController": {"enabled": false}}),
        json!({"controller": {"enabled": false}, "supportingController": {"enabled": false}}),
        json!({"controller": {"enabled": false}, "orchestrationController": {"enabled": false}}),
        json!({
            "controller": {"namespaces": ["a"]}, "orchestrationController": {"namespaces": ["b"]},
            "supportingController": {"namespaces": ["a", "c"]},
        }),
        json!({"supportingController": {"enabled": false}, "orchestrationController": {"enabled": false}, "sidecar": {"jobs": {"enabled": false}}}),
    ];
    for values in cases {
        let rendered = helm.render(&values, &[]).await?;
        let config: agents::controller::Config = settings(&rendered, "controllers")?;
        let sidecar: agents_sidecar::jobs::Settings = settings(&rendered, "sidecar")?;
        let main = needed(&agents::controller::needs(&config));
        let mut wanted = &main | &needed(&agents_sidecar::jobs::needs(&sidecar.scopes));
        let lease = |(_, group, ..): &Right| group == "coordination.k8s.io";
        let work: BTreeSet<_> = main.iter().filter(|right| !lease(right)).cloned().collect();
        wanted.extend(welcome(&places(&work)));
        let jobs = work.iter().filter(|(_, group, ..)| group == "batch");
        let jobs: BTreeSet<_> = jobs.cloned().collect();
        wanted.extend(
            places(&jobs)
                .iter()
                .map(|place| right(place, "", "namespaces", "get")),
        );
        let found = granted(&rendered, "controllers");
        if values["rbac"]["clusterScoped"] == true {
            // A role in the whole cluster covers the lease's namespace as well, but the lease has its own.
            assert!(found.iter().any(|(place, ..)| place.is_empty()));
        }
        let missing: Vec<_> = wanted.difference(&found).collect();
        let unused: Vec<_> = found.difference(&wanted).collect();
        assert_eq!((missing, unused), (vec![], vec![]), "{values}");
    }
    Ok(())
}

#[tokio::test]
async fn the_webhook_gets_what_it_looks_up_and_its_own_configurations() -> Result<()> {
    let helm = Helm::new().await?;
    for (values, place) in [
        (json!({}), NAMESPACE),
        (
            json!({"rbac": {"clusterScoped": true}, "controller": {"namespaces": ["*"]}}),
            "",
        ),
    ] {
        let rendered = helm.render(&values, &[]).await?;
        let kinds = Known::followed().map(|(kind, _)| kind);
        let mut wanted: BTreeSet<_> = kinds
            .flat_map(|kind| {
                ["list", "watch"].map(|verb| right(place, kind.group(), kind.plural(), verb))
            })
            .collect();
        wanted.extend(welcome(&[place.to_owned()].into()));
        for (group, runs) in [
            ("agents.proompteng.ai", "agentruns"),
            ("tools.proompteng.ai", "toolruns"),
        ] {
            wanted.insert(right(place, group, runs, "patch"));
        }
        for kind in [
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
        ] {
            wanted.insert(right("", "admissionregistration.k8s.io", kind, "get"));
        }
        assert_eq!(granted(&rendered, "webhook"), wanted);
    }
    Ok(())
}

#[tokio::test]
async fn each_right_in_the_whole_cluster_can_be_switched_off() -> Result<()> {
    let helm = Helm::new().await?;
    let wide = |rendered: &Rendered| -> Vec<String> {
        let bindings = rendered.all("ClusterRoleBinding");
        let names = bindings.filter_map(|binding| binding["metadata"]["name"].as_str());
        names.map(str::to_owned).collect()
    };
    let on = helm
        .render(&json!({"controlPlane": {"enabled": true}}), &[])
        .await?;
    assert_eq!(
        wide(&on),
        [
            "agents-agents-auth-delegator",
            "agents-agents-webhook-configurations"
        ]
    );
    let off = json!({
        "controlPlane": {"enabled": true, "rbac": {"authDelegator": false}},
        "webhook": {"rbac": {"readConfigurations": false}},
    });
    let off = helm.render(&off, &[]).await?;
    assert_eq!(wide(&off), Vec::<String>::new());
    assert_eq!(off.all("ClusterRole").count(), 0);
    let own = json!({"controlPlane": {"enabled": true}, "rbac": {"create": false}});
    let own = helm.render(&own, &[]).await?;
    let rbac = own.objects.iter().filter(|object| {
        object["apiVersion"]
            .as_str()
            .is_some_and(|version| version.starts_with("rbac."))
    });
    assert_eq!(rbac.count(), 0, "who grants by hand gets no role");
    Ok(())
}

#[tokio::test]
async fn a_sentence_stands_above_every_rule() -> Result<()> {
    let values = json!({"controlPlane": {"enabled": true}, "runnerServiceAccount": {"create": true, "rbac": {"create": true}}});
    let rendered = Helm::new().await?.render(&values, &[]).await?;
    let lines: Vec<_> = rendered.text.lines().map(str::trim_start).collect();
    let mut rules = 0;
    for pair in lines.windows(2) {
        if pair[1].starts_with("- apiGroups: [") {
            rules += 1;
            let said = pair[0].starts_with("# ") && pair[0].ends_with('.');
            assert!(said, "{} has no sentence above it but {}", pair[1], pair[0]);
        }
    }
    assert!(rules > 40, "found only {rules} rules");
    Ok(())
}
