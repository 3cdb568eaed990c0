//! What holds for every definition.

use super::*;
use std::collections::BTreeSet;

fn root(kind: Kind) -> JSONSchemaProps {
    let mut versions = definition(kind).spec.versions;
    assert_eq!(versions.len(), 1);
    versions
        .remove(0)
        .schema
        .unwrap()
        .open_api_v3_schema
        .unwrap()
}

/// Calls `visit` for the schema and every schema in it, with its path.
fn visit_all(path: &str, schema: &JSONSchemaProps, visit: &mut impl FnMut(&str, &JSONSchemaProps)) {
    visit(path, schema);
    for (name, property) in schema.properties.iter().flatten() {
        visit_all(&format!("{path}.{name}"), property, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        visit_all(&format!("{path}[]"), items, visit);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        visit_all(&format!("{path}{{}}"), values, visit);
    }
}

#[test]
fn names_agree_with_the_table_of_kinds() {
    for (kind, crd) in Kind::ALL.into_iter().zip(all()) {
        let names = &crd.spec.names;
        let lower = kind.as_str().to_lowercase();
        assert_eq!(
            crd.metadata.name,
            Some(format!("{}.{}", kind.plural(), kind.group()))
        );
        assert_eq!(crd.spec.group, kind.group());
        assert_eq!(crd.spec.scope, "Namespaced");
        assert_eq!(crd.spec.versions[0].name, contract::VERSION);
        assert_eq!(names.kind, kind.as_str());
        assert_eq!(names.plural, kind.plural());
        assert_eq!(names.singular.as_ref(), Some(&lower));
        assert_eq!(names.list_kind, Some(format!("{kind}List")));
        assert_eq!(names.categories, Some(vec!["agents-all".to_owned()]));
    }
}

#[test]
fn short_names_are_unique_and_free_in_a_plain_cluster() {
    let mut taken: BTreeSet<String> = [
        "cm", "cs", "ep", "ev", "limits", "ns", "no", "pvc", "pv", "po", "rc", "quota", "sa",
        "svc", "crd", "crds", "ds", "deploy", "rs", "sts", "hpa", "cj", "csr", "ing", "netpol",
        "pdb", "pc", "sc", "ip", "vac",
    ]
    .map(str::to_owned)
    .into();
    for crd in all() {
        let short = crd.spec.names.short_names.unwrap();
        assert_eq!(short.len(), 1);
        for name in short {
            assert!(taken.insert(name.clone()), "{name} is taken");
        }
    }
}

#[test]
fn only_the_core_kinds_demand_a_spec() {
    for kind in Kind::ALL {
        let wanted = (kind.group() == contract::GROUP).then(|| vec!["spec".to_owned()]);
        assert_eq!(root(kind).required, wanted, "{kind}");
    }
}

#[test]
fn nothing_is_nullable_and_only_three_fields_have_a_default() {
    let mut defaults = Vec::new();
    for kind in Kind::ALL {
        visit_all("", &root(kind), &mut |path, schema| {
            assert_eq!(schema.nullable, None, "{kind} {path}");
            if let Some(default) = &schema.default {
                defaults.push(format!("{kind} {path} {}", default.0));
            }
        });
    }
    assert_eq!(
        defaults,
        [
            "ImplementationSource .spec.sync.enabled false",
            "ImplementationSource .spec.webhook.enabled false",
            "Memory .spec.default false"
        ]
    );
}

#[test]
fn every_named_field_is_described_in_one_short_line() {
    for kind in Kind::ALL {
        visit_all("", &root(kind), &mut |path, schema| {
            if path.ends_with("[]") || path.ends_with("{}") {
                return;
            }
            let text = schema.description.as_deref().unwrap_or_default();
            assert!(
                !text.contains('\n') && text.len() < 120,
                "{kind} {path}: {text}"
            );
            assert!(text.ends_with('.'), "{kind} {path} has no sentence: {text}");
        });
    }
}

#[test]
fn conditions_are_one_per_type() {
    for kind in Kind::ALL {
        let status = root(kind).properties.unwrap().remove("status").unwrap();
        let conditions = status.properties.unwrap().remove("conditions").unwrap();
        assert_eq!(conditions.x_kubernetes_list_type.as_deref(), Some("map"));
        assert_eq!(
            conditions.x_kubernetes_list_map_keys,
            Some(vec!["type".to_owned()])
        );
    }
}

#[test]
fn since_when_a_kind_is_ready_is_the_time_of_its_last_change() {
    let since = columns::of(Kind::Agent)
        .into_iter()
        .find(|column| column.name == "Since");
    let since = since.unwrap();
    assert_eq!(
        (since.type_.as_str(), since.json_path.as_str()),
        (
            "date",
            r#".status.conditions[?(@.type=="Ready")].lastTransitionTime"#
        )
    );
}

#[test]
fn every_kind_says_what_it_is_doing_why_and_since_when() {
    for kind in Kind::ALL {
        let names: Vec<_> = columns::of(kind)
            .into_iter()
            .map(|column| column.name)
            .collect();
        assert!(["Phase", "Ready"].contains(&names[0].as_str()), "{kind}");
        assert!(names.contains(&"Reason".to_owned()), "{kind}");
        let since = ["Since", "StartTime"].map(|name| names.iter().any(|known| known == name));
        assert!(since[0] != since[1], "{kind}");
        assert_eq!(names.last().unwrap(), "Age", "{kind}");
        assert_eq!(BTreeSet::from_iter(&names).len(), names.len(), "{kind}");
    }
}
