//! Every right that a program needs is granted, and none that it does not.

mod tour;

use std::collections::BTreeSet;

use agents::{
    admission::known::Known,
    api::{contract::env, kind::Kind},
    cluster::{Need, Scope},
    kit::config::{Flags, Settings},
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::helm::{Helm, NAMESPACE, Rendered};

/// Where the webhook is registered.
const CONFIGURATIONS: [&str; 2] = [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
];

/// What may be done: where (empty for the whole cluster), group, resource and verb.
pub(super) type Right = (String, String, String, String);

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

/// What roles of a component grant.
pub(super) fn granted(rendered: &Rendered, component: &str) -> BTreeSet<Right> {
    let roles = rendered.all("Role").chain(rendered.all("ClusterRole"));
    let own =
        roles.filter(|role| role["metadata"]["labels"]["app.kubernetes.io/component"] == component);
    rights_of(own)
}

/// What roles grant, each right alone. Groups and resources of one rule belong together in pairs that exist.
fn rights_of<'a>(roles: impl Iterator<Item = &'a Value>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for role in roles {
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
    let mut told = rendered.plain_variables(container)?;
    // The cluster itself tells a pod where it is.
    told.insert(env::POD_NAMESPACE.to_owned(), NAMESPACE.to_owned());
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

/// What the controllers and their sidecar need, and what else they may do where they work.
fn of_controllers(
    controllers: &agents::controller::Config,
    sidecar: &agents_sidecar::jobs::Settings,
) -> BTreeSet<Right> {
    let main = needed(&agents::controller::needs(controllers));
    let lease = |(_, group, ..): &&Right| group == "coordination.k8s.io";
    let work: BTreeSet<_> = main.iter().filter(|right| !lease(right)).cloned().collect();
    let jobs = work.iter().filter(|(_, group, ..)| group == "batch");
    let jobs: BTreeSet<_> = jobs.cloned().collect();
    let mut wanted = &main | &needed(&agents_sidecar::jobs::needs(&sidecar.scopes));
    wanted.extend(welcome(&places(&work)));
    let jobs = places(&jobs);
    wanted.extend(
        jobs.iter()
            .map(|place| right(place, "", "namespaces", "get")),
    );
    wanted
}

/// What the webhook looks up in a place, notes and tells there, and that it judges how it is registered.
fn of_webhook(place: &str) -> BTreeSet<Right> {
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
    for kind in CONFIGURATIONS {
        wanted.insert(right("", "admissionregistration.k8s.io", kind, "get"));
    }
    wanted
}

/// Where the API server is may be looked up before something outside is called, but not where rights end at named namespaces.
fn of_calls(values: &Value, wanted: &BTreeSet<Right>) -> Option<Right> {
    let calls = |(_, _, resource, _): &Right| resource == "implementationsources";
    let is_wide = values["rbac"]["clusterScoped"] == true;
    let slices = right("default", "discovery.k8s.io", "endpointslices", "get");
    (is_wide && wanted.iter().any(calls)).then_some(slices)
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
        json!({"rbac": {"clusterScoped": true}, "controller": {"enabled": false, "namespaces": ["*"]}}),
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
        let mut wanted = of_controllers(&config, &sidecar);
        let found = granted(&rendered, "controllers");
        if values["rbac"]["clusterScoped"] == true {
            // A role in the whole cluster covers the lease's namespace as well, but the lease has its own.
            assert!(found.iter().any(|(place, ..)| place.is_empty()));
        }
        wanted.extend(of_calls(&values, &wanted));
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
        let mut wanted = of_webhook(place);
        assert_eq!(granted(&rendered, "webhook"), wanted);

        let mut own = values.clone();
        own["webhook"]["tls"]["source"] = json!("rotator");
        let rendered = helm.render(&own, &[]).await?;
        wanted.extend(["get", "update"].map(|verb| right(NAMESPACE, "", "secrets", verb)));
        for kind in CONFIGURATIONS {
            wanted.insert(right("", "admissionregistration.k8s.io", kind, "patch"));
        }
        assert_eq!(granted(&rendered, "webhook"), wanted);
    }
    Ok(())
}

#[tokio::test]
async fn the_rotator_has_rights_on_named_objects_only() -> Result<()> {
    let helm = Helm::new().await?;
    for (is_tried, names) in [
        (false, &["agents-webhook"][..]),
        (true, &["agents-webhook", "agents-webhook-canary"]),
    ] {
        let values =
            json!({"webhook": {"tls": {"source": "rotator"}, "canary": {"enabled": is_tried}}});
        let rendered = helm.render(&values, &[]).await?;
        let secrets: Vec<_> = names.iter().map(|name| format!("{name}-rotator")).collect();
        for (role, names) in [
            ("Role/agents-webhook-rotator", json!(secrets)),
            ("ClusterRole/agents-agents-webhook-rotator", json!(names)),
        ] {
            let rules = rendered.get(role)?["rules"].as_array();
            for rule in rules.context("rules")? {
                assert_eq!(rule["resourceNames"], names, "{role}");
            }
        }
        for secret in secrets {
            let secret = rendered.get(&format!("Secret/{secret}"))?;
            assert!(secret.get("data").is_none() && secret.get("stringData").is_none());
        }
    }
    Ok(())
}

#[tokio::test]
async fn of_the_namespace_default_nothing_but_the_addresses_of_the_api_server_is_read() -> Result<()>
{
    let values = json!({"rbac": {"clusterScoped": true}});
    let rendered = Helm::new().await?.render(&values, &[]).await?;
    let roles = rendered.all("Role").chain(rendered.all("RoleBinding"));
    let mut there: Vec<_> = roles
        .filter(|role| role["metadata"]["namespace"] == "default")
        .collect();
    let binding = there.pop().context("a binding")?;
    let role = there.pop().context("a role")?;
    assert_eq!(there, Vec::<&Value>::new());
    let rule = json!({
        "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
        "resourceNames": ["kubernetes"], "verbs": ["get"],
    });
    assert_eq!(role["rules"], json!([rule]));
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["namespace"], NAMESPACE);
    Ok(())
}

#[tokio::test]
async fn the_control_plane_gets_what_it_needs_and_no_more() -> Result<()> {
    let helm = Helm::new().await?;
    let cases = [
        json!({}),
        json!({"rbac": {"clusterScoped": true}, "controller": {"namespaces": ["*"]}}),
        json!({"controller": {"namespaces": ["a", "b"]}}),
        json!({"controller": {"leaderElection": {"leaseNamespace": "leases"}}}),
        json!({"controller": {"webhook": {"enabled": true}}}),
    ];
    for values in cases {
        let rendered = helm.render(&values, &[]).await?;
        let config: agents::serve::Config = settings(&rendered, "control-plane")?;
        let needs = agents::serve::needs(&config).context("the namespace of the lease")?;
        assert_eq!(
            granted(&rendered, "control-plane"),
            needed(&needs),
            "{values}"
        );
    }
    Ok(())
}

/// The reviews of callers are no rule of ours but a role that every cluster has.
#[tokio::test]
async fn the_control_plane_may_ask_who_calls_unless_its_value_says_no() -> Result<()> {
    let helm = Helm::new().await?;
    let rendered = helm.render(&json!({}), &[]).await?;
    let binding = rendered.get("ClusterRoleBinding/agents-agents-auth-delegator")?;
    assert_eq!(binding["roleRef"]["name"], "system:auth-delegator");
    let account =
        json!([{"kind": "ServiceAccount", "name": "agents-control-plane", "namespace": NAMESPACE}]);
    assert_eq!(binding["subjects"], account);
    let pod = rendered.get("Deployment/agents")?;
    let runs_as = pod.pointer("/spec/template/spec/serviceAccountName");
    assert_eq!(runs_as, Some(&Value::from("agents-control-plane")));
    let values = json!({"controlPlane": {"rbac": {"authDelegator": false}}});
    let rendered = helm.render(&values, &[]).await?;
    let bound = rendered.get("ClusterRoleBinding/agents-agents-auth-delegator");
    assert!(bound.is_err());
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
    let on = helm.render(&json!({}), &[]).await?;
    assert_eq!(
        wide(&on),
        [
            "agents-agents-auth-delegator",
            "agents-agents-webhook-configurations"
        ]
    );
    let off = json!({
        "controlPlane": {"rbac": {"authDelegator": false}},
        "webhook": {"rbac": {"readConfigurations": false}},
    });
    let mut off_too = off.clone();
    off_too["webhook"]["tls"] = json!({"source": "rotator"});
    let rotating = helm.render(&off_too, &[]).await?;
    assert_eq!(wide(&rotating), ["agents-agents-webhook-rotator"]);
    off_too["webhook"]["rbac"]["writeConfigurations"] = json!(false);
    let off_too = helm.render(&off_too, &[]).await?;
    assert_eq!(wide(&off_too), Vec::<String>::new());
    let off = helm.render(&off, &[]).await?;
    assert_eq!(wide(&off), Vec::<String>::new());
    assert_eq!(off.all("ClusterRole").count(), 0);
    let own = json!({"rbac": {"create": false}});
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
    let values = json!({"runnerServiceAccount": {"create": true, "rbac": {"create": true}}});
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
