//! The labels of a series: attributes of the point, of the scope and of the target, under names that Prometheus knows.

use std::collections::BTreeMap;

use super::{Limits, Pair, Refusal, Sort};
use crate::{
    model::Labels,
    names::{LabelOptions, label},
};

/// Put before a label of a user that has the name of one of ours.
const EXPORTED: &str = "exported_";

/// The labels of a series, and whether two names had to share one.
pub(super) struct Labelled {
    pub(super) labels: Labels,
    pub(super) is_joined: bool,
}

/// Of attributes, with labels that are added as they are: those of the scope and of the target.
pub(super) fn of(
    attributes: Vec<Pair>,
    added: &[Pair],
    sort: Sort,
    options: LabelOptions,
    limits: &Limits,
) -> Result<Labelled, Refusal> {
    let mut attributes = attributes;
    // Values that share a name are joined in the order of the names that were sent.
    attributes.sort();
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let mut is_joined = false;
    for Pair { name, value } in attributes {
        if name == "__name__" || value.is_empty() {
            continue;
        }
        let name = label(&name, options).map_err(|_| Refusal::LabelName)?;
        let name = match is_ours(&name, sort, added) {
            true => format!("{EXPORTED}{name}"),
            false => name.into_owned(),
        };
        if name.len() > limits.name_bytes || value.len() > limits.value_bytes {
            return Err(Refusal::TooLong);
        }
        join(&mut labels, name, &value, &mut is_joined);
    }
    for Pair { name, value } in added {
        labels.insert(name.clone(), value.clone());
    }
    if labels.len() > limits.labels {
        return Err(Refusal::TooLong);
    }
    let pairs = labels.iter().map(|(name, value)| (&**name, &**value));
    Ok(Labelled {
        labels: Labels::of(pairs),
        is_joined,
    })
}

/// Several attributes as one set, for a target or a scope: no limit is exceeded silently, the rest is left out.
pub(super) fn described(
    attributes: Vec<Pair>,
    options: LabelOptions,
    limits: &Limits,
) -> Vec<Pair> {
    let mut attributes = attributes;
    attributes.sort();
    let mut labels = BTreeMap::new();
    let mut is_joined = false;
    for Pair { name, value } in attributes {
        let Ok(name) = label(&name, options) else {
            continue;
        };
        if name.len() <= limits.name_bytes && value.len() <= limits.value_bytes {
            join(&mut labels, name.into_owned(), &value, &mut is_joined);
        }
    }
    let pairs = labels.into_iter().take(limits.labels);
    pairs.map(|(name, value)| Pair { name, value }).collect()
}

fn join(labels: &mut BTreeMap<String, String>, name: String, value: &str, is_joined: &mut bool) {
    match labels.get_mut(&name) {
        Some(joined) => {
            *is_joined = true;
            joined.push(';');
            joined.push_str(value);
        }
        None => drop(labels.insert(name, value.to_owned())),
    }
}

/// Whether the page itself needs a name.
fn is_ours(name: &str, sort: Sort, added: &[Pair]) -> bool {
    let is_synthetic = match sort {
        Sort::Histogram(_) | Sort::Exponential(_) => name == "le",
        Sort::Summary => name == "quantile",
        Sort::Gauge | Sort::Sum { .. } => false,
    };
    is_synthetic || added.iter().any(|pair| pair.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Temporality;

    type Given<'a> = &'a [(&'a str, &'a str)];

    fn pairs(given: &[(&str, &str)]) -> Vec<Pair> {
        let pair = |(name, value): &(&str, &str)| Pair {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        given.iter().map(pair).collect()
    }

    fn text(given: &[(&str, &str)], added: &[(&str, &str)], sort: Sort) -> Result<String, Refusal> {
        let limits = Limits::default();
        let made = of(
            pairs(given),
            &pairs(added),
            sort,
            LabelOptions::default(),
            &limits,
        )?;
        Ok(made.labels.as_str().to_owned())
    }

    #[test]
    fn labels_are_named_joined_and_kept_apart_from_ours() {
        let histogram = Sort::Histogram(Temporality::Cumulative);
        let cases: &[(Given<'_>, Given<'_>, Sort, &str)] = &[
            (
                &[
                    ("hello_world", "c"),
                    ("hello-world", "a"),
                    ("hello.world", "b"),
                ],
                &[],
                Sort::Gauge,
                r#"hello_world="a;b;c""#,
            ),
            (&[("le", "x")], &[], Sort::Gauge, r#"le="x""#),
            (&[("le", "x")], &[], histogram, r#"exported_le="x""#),
            (
                &[("quantile", "x")],
                &[],
                Sort::Summary,
                r#"exported_quantile="x""#,
            ),
            (
                &[("job", "mine"), ("a", "1")],
                &[("job", "shop/cart")],
                Sort::Gauge,
                r#"a="1",exported_job="mine",job="shop/cart""#,
            ),
            (&[("__name__", "x"), ("empty", "")], &[], Sort::Gauge, ""),
        ];
        for (given, added, sort, expected) in cases {
            assert_eq!(
                text(given, added, *sort).as_deref(),
                Ok(*expected),
                "{given:?}"
            );
        }
    }

    #[test]
    fn what_is_too_long_or_has_no_name_is_refused() {
        let long = "x".repeat(Limits::default().value_bytes + 1);
        assert_eq!(
            text(&[("a", &long)], &[], Sort::Gauge),
            Err(Refusal::TooLong)
        );
        assert_eq!(
            text(&[("", "x")], &[], Sort::Gauge),
            Err(Refusal::LabelName)
        );
        let names: Vec<_> = (0..=Limits::default().labels)
            .map(|n| format!("l{n}"))
            .collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
        assert_eq!(text(&many, &[], Sort::Gauge), Err(Refusal::TooLong));
    }
}
