//! The tour of the lab starts its programs from manifests of its own. They grant in the whole cluster what the chart would
//! grant place by place: all that each program needs, and no more.

use std::collections::BTreeSet;
use std::fs;

use agents::api::kind::Kind;
use anyhow::{Context, Result};
use serde_json::Value;
use support::fixtures::repository;
use support::helm::Rendered;

use super::{Right, needed, of_controllers, of_webhook, right, rights_of, settings};

fn manifests() -> Result<Rendered> {
    let file = repository().join("tests/lab/tour/programs.yaml");
    Rendered::read(&fs::read_to_string(file)?)
}

/// What the pods of a Deployment may do in the whole cluster, by the roles that their account is bound to.
fn granted(tour: &Rendered, deployment: &str) -> Result<BTreeSet<Right>> {
    let pods = tour.get(&format!("Deployment/{deployment}"))?;
    let account = pods.pointer("/spec/template/spec/serviceAccountName");
    let account = account.context("an account")?;
    let namespace = &pods["metadata"]["namespace"];
    let is_theirs = |subject: &Value| {
        subject["kind"] == "ServiceAccount"
            && subject["name"] == *account
            && subject["namespace"] == *namespace
    };
    let bindings = tour.all("ClusterRoleBinding").filter(|binding| {
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.clone().any(is_theirs)
    });
    let names: Vec<_> = bindings
        .map(|binding| &binding["roleRef"]["name"])
        .collect();
    let roles = tour.all("ClusterRole");
    let roles = roles.filter(|role| names.contains(&&role["metadata"]["name"]));
    Ok(rights_of(roles).into_iter().flat_map(spelt_out).collect())
}

/// A right on everything in a group of ours, kind by kind.
fn spelt_out(granted: Right) -> Vec<Right> {
    let (place, group, resource, verb) = granted;
    let Some(part) = resource.strip_prefix('*') else {
        return vec![(place, group, resource, verb)];
    };
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.group() == group);
    let each = kinds.map(|kind| {
        let resource = format!("{}{part}", kind.plural());
        right(&place, &group, &resource, &verb)
    });
    each.collect()
}

/// The same in the whole cluster.
fn everywhere(rights: BTreeSet<Right>) -> BTreeSet<Right> {
    let each = rights.into_iter();
    each.map(|(_, group, resource, verb)| (String::new(), group, resource, verb))
        .collect()
}

#[test]
fn the_tour_grants_what_its_programs_need_and_no_more() -> Result<()> {
    let tour = manifests()?;
    let controllers = of_controllers(
        &settings(&tour, "controller")?,
        &settings(&tour, "sidecar")?,
    );
    let config: agents::serve::Config = settings(&tour, "control-plane")?;
    let control_plane = agents::serve::needs(&config).context("the namespace of the lease")?;
    for (deployment, needed) in [
        ("agents-controllers", controllers),
        ("agents-webhook", of_webhook("")),
        ("agents", needed(&control_plane)),
    ] {
        let (granted, needed) = (granted(&tour, deployment)?, everywhere(needed));
        let missing: Vec<_> = needed.difference(&granted).collect();
        let unused: Vec<_> = granted.difference(&needed).collect();
        assert_eq!((missing, unused), (vec![], vec![]), "{deployment}");
    }
    Ok(())
}

/// Each role stands for one program, so none is left over, and rights in single namespaces would not have been looked at.
#[test]
fn the_tour_has_no_role_but_those_of_its_programs() -> Result<()> {
    let tour = manifests()?;
    assert_eq!(tour.all("Role").count(), 0);
    let accounts: BTreeSet<_> = tour
        .all("ServiceAccount")
        .map(|account| &account["metadata"]["name"])
        .filter_map(Value::as_str)
        .collect();
    let roles = tour.all("ClusterRole");
    let roles: BTreeSet<_> = roles
        .filter_map(|role| role["metadata"]["name"].as_str())
        .collect();
    assert_eq!(roles, accounts);
    Ok(())
}
