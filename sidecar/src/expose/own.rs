//! The program's own metrics as families, so that they are on the page in every format.
//!
//! The registry can only write itself, in OpenMetrics 1.0; that text is read back. It is small and comes from us, so what
//! cannot be read is left out.

use std::{collections::BTreeMap, fmt, sync::Arc};

use prometheus_client::{encoding::text::encode_registry, registry::Registry};

use super::render::Source;
use crate::model::{Family, Histogram, Kind, Labels, Number, Series, Value};

/// A family with all its series in memory.
#[derive(Debug)]
pub(super) struct Own {
    family: Arc<Family>,
    series: BTreeMap<Labels, Series>,
}

impl Source for Own {
    fn family(&self) -> Arc<Family> {
        Arc::clone(&self.family)
    }

    fn read(
        &self,
        after: &mut Option<Labels>,
        most: usize,
        visit: &mut dyn FnMut(&Series),
    ) -> bool {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = after.as_ref().map_or(Unbounded, Excluded);
        let mut rest = self.series.range::<Labels, _>((from, Unbounded));
        let mut last = None;
        for (labels, series) in rest.by_ref().take(most) {
            visit(series);
            last = Some(labels.clone());
        }
        let has_more = rest.next().is_some();
        if last.is_some() {
            *after = last;
        }
        has_more
    }
}

/// All families of a registry, by name.
pub(super) fn families(registry: &Registry) -> Result<Vec<Own>, fmt::Error> {
    let mut page = String::new();
    encode_registry(&mut page, registry)?;
    Ok(read(&page))
}

/// What is known of the family whose lines are being read.
struct Draft<'a> {
    name: &'a str,
    help: &'a str,
    unit: &'a str,
    kind: Kind,
}

fn read(page: &str) -> Vec<Own> {
    let mut families = BTreeMap::new();
    let mut draft = Draft {
        name: "",
        help: "",
        unit: "",
        kind: Kind::Unknown,
    };
    for line in page.lines() {
        if let Some((name, help)) = comment(line, "# HELP ") {
            draft = Draft {
                name,
                help,
                unit: "",
                kind: Kind::Unknown,
            };
        } else if let Some((_, kind)) = comment(line, "# TYPE ") {
            draft.kind = kind_of(kind);
        } else if let Some((_, unit)) = comment(line, "# UNIT ") {
            draft.unit = unit;
        } else if let Some(sample) = Sample::read(line) {
            add(&mut families, &draft, &sample);
        }
    }
    families.into_values().collect()
}

fn comment<'a>(line: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let rest = line.strip_prefix(word)?;
    Some(rest.split_once(' ').unwrap_or((rest, "")))
}

fn kind_of(word: &str) -> Kind {
    match word {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "histogram" => Kind::Histogram,
        "info" => Kind::Info,
        _ => Kind::Unknown,
    }
}

/// One line.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(String, String)>,
    value: &'a str,
}

impl<'a> Sample<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at_checked(end)?;
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Vec::new(), rest),
        };
        let value = rest.trim_start().split(' ').next()?;
        Some(Self {
            name,
            labels,
            value,
        })
    }

    fn number(&self) -> Option<Number> {
        let whole = self.value.parse().map(Number::Integer);
        whole
            .or_else(|_| self.value.parse().map(Number::Float))
            .ok()
    }
}

type Pairs = Vec<(String, String)>;

/// Labels up to the closing brace, and what comes after it.
fn labels(mut rest: &str) -> Option<(Pairs, &str)> {
    let mut pairs = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((pairs, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match letters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        pairs.push((name.to_owned(), value));
        rest = after.get(end + 1..)?;
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn add(families: &mut BTreeMap<String, Own>, draft: &Draft<'_>, sample: &Sample<'_>) {
    let suffix = match draft.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram | Kind::Summary | Kind::Unknown | Kind::StateSet => "",
    };
    let name = format!("{}{suffix}", draft.name);
    let own = families.entry(name).or_insert_with_key(|name| Own {
        family: Arc::new(Family {
            name: name.as_str().into(),
            kind: draft.kind,
            help: draft.help.into(),
            unit: draft.unit.into(),
        }),
        series: BTreeMap::new(),
    });
    let Some(number) = sample.number() else {
        return;
    };
    let mut pairs: Vec<_> = sample
        .labels
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    pairs.sort_unstable();
    let bound = pairs
        .iter()
        .find(|(name, _)| *name == "le")
        .map(|(_, value)| *value);
    if draft.kind == Kind::Histogram {
        pairs.retain(|(name, _)| *name != "le");
    }
    let labels = Labels::of(pairs);
    let value = match draft.kind {
        Kind::Histogram => None,
        Kind::Counter => Some(Value::Total(number, None)),
        Kind::Gauge | Kind::Info | Kind::Summary | Kind::Unknown | Kind::StateSet => {
            Some(Value::Number(number))
        }
    };
    let series = own.series.entry(labels.clone()).or_insert_with(|| Series {
        labels,
        start: 0,
        time: 0,
        value: value.unwrap_or_else(|| Value::Histogram(Box::new(empty()))),
    });
    if let Value::Histogram(histogram) = &mut series.value {
        let suffix = sample.name.strip_prefix(draft.name).unwrap_or_default();
        observe(histogram, suffix, bound, number);
    }
}

fn empty() -> Histogram {
    Histogram {
        bounds: Arc::from([]),
        counts: Box::from([]),
        count: 0,
        sum: None,
        exemplars: Vec::new(),
    }
}

/// Takes one line of a histogram in. Buckets come in order, added up.
fn observe(histogram: &mut Histogram, suffix: &str, bound: Option<&str>, number: Number) {
    let count = match number {
        Number::Integer(count) => u64::try_from(count).unwrap_or_default(),
        Number::Float(_) => 0,
    };
    match (suffix, bound) {
        ("_sum", _) => histogram.sum = Some(number.as_f64()),
        ("_count", _) => histogram.count = count,
        ("_bucket", Some(bound)) => {
            let before = histogram.counts.iter().sum();
            let mut counts = std::mem::take(&mut histogram.counts).into_vec();
            counts.push(count.saturating_sub(before));
            histogram.counts = counts.into();
            if let Some(bound) = bound.parse().ok().filter(|bound: &f64| bound.is_finite()) {
                histogram.bounds = histogram.bounds.iter().copied().chain([bound]).collect();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{
        metrics::{
            counter::Counter, family::Family as Labelled, gauge::Gauge,
            histogram::Histogram as Observed, info::Info,
        },
        registry::Unit,
    };

    use super::*;

    type Pair = (&'static str, &'static str);

    fn registry() -> Registry {
        let mut registry = Registry::default();
        let calls = Labelled::<[Pair; 2], Counter>::default();
        calls
            .get_or_create(&[("path", "/a\"b\\\n,}"), ("code", "200")])
            .inc_by(7);
        registry.register("calls", "Calls answered", calls);
        let age = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
        age.set(1.5);
        registry.register_with_unit("age", "Age of it", Unit::Seconds, age);
        registry.register("build", "The build", Info::new([("version", "1")]));
        let took = Observed::new([0.5, 1.0]);
        took.observe(0.4);
        took.observe(0.7);
        took.observe(3.0);
        registry.register("took", "Time it took", took);
        registry
    }

    #[test]
    fn a_registry_is_read_back_as_families() {
        let families = families(&registry()).expect("families");
        let found: Vec<_> = families
            .iter()
            .map(|own| (&*own.family.name, own.family.kind, &*own.family.unit))
            .collect();
        let expected = [
            ("age_seconds", Kind::Gauge, "seconds"),
            ("build_info", Kind::Info, ""),
            ("calls_total", Kind::Counter, ""),
            ("took", Kind::Histogram, ""),
        ];
        assert_eq!(found, expected);
        assert_eq!(&*families[2].family.help, "Calls answered.");

        let series: Vec<_> = families
            .iter()
            .flat_map(|own| own.series.values())
            .collect();
        assert_eq!(series[0].value, Value::Number(Number::Float(1.5)));
        assert_eq!(
            series[2].labels,
            Labels::of([("code", "200"), ("path", "/a\"b\\\n,}")])
        );
        assert_eq!(series[2].value, Value::Total(Number::Integer(7), None));
        let expected = Histogram {
            bounds: Arc::from([0.5, 1.0]),
            counts: Box::from([1, 1, 1]),
            count: 3,
            sum: Some(4.1),
            exemplars: Vec::new(),
        };
        assert_eq!(series[3].value, Value::Histogram(Box::new(expected)));
    }
}
