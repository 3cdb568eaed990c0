use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{super::accept::Format, *};
use crate::model::{Histogram, Number};
use line::{Metadata, Sample, Sort};

/// The grammar, as the strict reader of the integration tests has it.
#[expect(dead_code, reason = "that reader looks at more than names and values")]
#[path = "../../../../tests/support/open_metrics/line.rs"]
mod line;

/// A family in memory.
struct Kept {
    family: Arc<Family>,
    series: BTreeMap<Labels, Series>,
}

impl Source for Kept {
    fn family(&self) -> Arc<Family> {
        Arc::clone(&self.family)
    }

    fn read(
        &self,
        after: &mut Option<Labels>,
        most: usize,
        visit: &mut dyn FnMut(&Series),
    ) -> bool {
        assert!(most <= BATCH);
        let rest: Vec<_> = self
            .series
            .values()
            .filter(|series| after.as_ref().is_none_or(|after| series.labels > *after))
            .collect();
        for series in rest.iter().take(most) {
            visit(series);
            *after = Some(series.labels.clone());
        }
        rest.len() > most
    }
}

fn kept(
    name: &str,
    kind: Kind,
    series: impl IntoIterator<Item = (Labels, Value)>,
) -> Arc<dyn Source> {
    let family = Family {
        name: name.into(),
        kind,
        help: "".into(),
        unit: "".into(),
    };
    let series = series.into_iter().map(|(labels, value)| {
        let series = Series {
            labels: labels.clone(),
            start: 1,
            time: 2,
            value,
        };
        (labels, series)
    });
    Arc::new(Kept {
        family: Arc::new(family),
        series: series.collect(),
    })
}

fn gauge(labels: &[(&str, &str)], value: f64) -> (Labels, Value) {
    (
        Labels::of(labels.iter().copied()),
        Value::Number(Number::Float(value)),
    )
}

fn order(format: Format, escaping: Escaping) -> Order {
    Order {
        style: Style { format, escaping },
        created: false,
        utf8: true,
    }
}

/// The pieces of a page.
fn pieces(all: Vec<Arc<dyn Source>>, own: usize, order: Order) -> (Vec<Vec<u8>>, Tally) {
    let mut render = Render::new(Sources { all, own }, order);
    let mut pieces = Vec::new();
    loop {
        let mut piece = Vec::new();
        let has_more = render.piece(&mut piece);
        pieces.push(piece);
        if !has_more {
            return (pieces, render.tally());
        }
    }
}

fn page(all: Vec<Arc<dyn Source>>, order: Order) -> (String, Tally) {
    let (pieces, tally) = pieces(all, 0, order);
    (String::from_utf8(pieces.concat()).expect("text"), tally)
}

#[test]
fn a_large_family_comes_in_pieces_and_is_headed_once() {
    let many = (0..5_000).map(|at| {
        gauge(
            &[("id", &format!("{at:06}")), ("more", &"x".repeat(40))],
            f64::from(at),
        )
    });
    let (pieces, tally) = pieces(
        vec![kept("x", Kind::Gauge, many)],
        0,
        order(Format::OpenMetrics1, Escaping::AllowUtf8),
    );
    assert!(pieces.len() > 4, "{} pieces", pieces.len());
    assert!(pieces.iter().all(|piece| piece.len() < 2 * PIECE));
    let page = String::from_utf8(pieces.concat()).expect("text");
    assert_eq!(page.matches("# TYPE").count(), 1);
    assert_eq!(page.lines().count(), 5_000 + 2);
    assert_eq!(tally.series, 5_000);
    assert!(page.ends_with("# EOF\n"));
}

#[test]
fn a_family_without_series_is_not_on_the_page() {
    let (text, _) = page(
        vec![kept("x", Kind::Gauge, [])],
        order(Format::Text004, Escaping::Underscores),
    );
    assert_eq!(text, "");
}

#[test]
fn series_whose_labels_become_one_are_there_once() {
    let all = || {
        vec![kept(
            "x",
            Kind::Gauge,
            [
                gauge(&[("a.b", "1")], 1.0),
                gauge(&[("a_b", "1")], 2.0),
                gauge(&[("a_b", "2")], 3.0),
            ],
        )]
    };
    let (text, tally) = page(all(), order(Format::Text004, Escaping::Underscores));
    assert_eq!(text, "# TYPE x gauge\nx{a_b=\"1\"} 1\nx{a_b=\"2\"} 3\n");
    assert_eq!(tally.duplicates, 1);
    let (_, tally) = page(all(), order(Format::Text100, Escaping::AllowUtf8));
    assert_eq!((tally.series, tally.duplicates), (3, 0));
}

#[test]
fn own_names_win() {
    let given = vec![
        kept("mine", Kind::Gauge, [gauge(&[], 1.0)]),
        kept("a", Kind::Gauge, [gauge(&[], 2.0)]),
        kept("mine", Kind::Gauge, [gauge(&[], 3.0)]),
    ];
    let (pieces, tally) = pieces(given, 1, order(Format::Text004, Escaping::Underscores));
    let text = String::from_utf8(pieces.concat()).expect("text");
    assert_eq!(text, "# TYPE mine gauge\nmine 1\n# TYPE a gauge\na 2\n");
    assert_eq!(tally.collisions, 1);
}

/// A sample as it is read from a page: its name and its labels.
type Key = (String, BTreeMap<String, String>);

/// Reads a page as a strict scraper does: every line is a sample of the family that was headed last, and none is twice.
fn read(page: &str) -> BTreeMap<Key, f64> {
    let mut samples = BTreeMap::new();
    let mut families = BTreeSet::new();
    let mut family = String::new();
    for line in page.lines().filter(|line| *line != "# EOF") {
        if line.starts_with('#') {
            let metadata = Metadata::of(line).expect(line);
            if metadata.sort == Sort::Type {
                family = metadata.name;
                assert!(families.insert(family.clone()), "{family} is headed twice");
            }
            continue;
        }
        let sample = Sample::of(line).expect(line);
        let suffix = sample.name.strip_prefix(&family);
        let suffix = suffix.expect("a sample of the family");
        assert!(
            ["", "_total", "_info", "_bucket", "_sum", "_count"].contains(&suffix),
            "{line}"
        );
        let before = samples.insert((sample.name, sample.labels), sample.value);
        assert!(before.is_none(), "twice: {line}");
    }
    samples
}

fn any_labels() -> impl proptest::strategy::Strategy<Value = Labels> {
    use proptest::strategy::Strategy as _;
    let name = prop_oneof![Just("le".to_owned()), "[a-c._]{1,3}", ".{1,3}"];
    proptest::collection::btree_map(name, ".{0,4}", 0..3)
        .prop_map(|pairs| Labels::of(pairs.iter().map(|(name, value)| (&**name, &**value))))
}

fn any_family() -> impl proptest::strategy::Strategy<Value = (String, Kind, Vec<(Labels, Value)>)> {
    use proptest::strategy::Strategy as _;
    let kind = prop_oneof![
        Just(Kind::Gauge),
        Just(Kind::Counter),
        Just(Kind::Histogram),
        Just(Kind::Info),
        Just(Kind::Unknown),
    ];
    let name = prop_oneof!["[ab._]{1,3}(_total|_count|_sum|_bucket|_info|)", ".{1,4}"];
    let series = proptest::collection::vec((any_labels(), any::<f64>(), 0_u64..9), 0..4);
    (name, kind, series).prop_map(|(name, kind, series)| {
        let series = series.into_iter().map(|(labels, number, count)| {
            let value = match kind {
                Kind::Histogram => Value::Histogram(Box::new(Histogram {
                    bounds: Arc::from([0.5, 1e6]),
                    counts: Box::from([count, 1, 0]),
                    count: count + 1,
                    sum: Some(number),
                    exemplars: Vec::new(),
                })),
                Kind::Counter => Value::Total(Number::Float(number), None),
                Kind::Gauge | Kind::Info | Kind::Unknown | Kind::Summary | Kind::StateSet => {
                    Value::Number(Number::Float(number))
                }
            };
            (labels, value)
        });
        (name, kind, series.collect())
    })
}

proptest! {
    /// Whatever is kept, the page can be read, no name and no label set is on it twice, and a second page is the same.
    #[test]
    fn every_page_can_be_read_back(families in proptest::collection::vec(any_family(), 0..6)) {
        let mut families = families;
        families.sort_by(|one, other| one.0.cmp(&other.0));
        families.dedup_by(|one, other| one.0 == other.0);
        let sources = || families.iter().map(|(name, kind, series)| kept(name, *kind, series.clone())).collect::<Vec<_>>();
        for escaping in Escaping::ALL {
            for format in [Format::Text004, Format::Text100, Format::OpenMetrics1] {
                if format == Format::Text004 && escaping == Escaping::AllowUtf8 {
                    continue;
                }
                let (text, tally) = page(sources(), order(format, escaping));
                let samples = read(&text);
                prop_assert!(samples.len() as u64 >= tally.series);
                let (again, _) = page(sources(), order(format, escaping));
                prop_assert_eq!(text, again);
            }
        }
    }

    /// In UTF-8 nothing is lost but what has a name that cannot stand beside another.
    #[test]
    fn names_and_values_come_back_as_they_were(names in proptest::collection::btree_set(".{1,6}", 1..5), value in any::<f64>()) {
        let sources = names.iter().map(|name| kept(name, Kind::Gauge, [gauge(&[("k.\"", name)], value)])).collect();
        let (text, tally) = page(sources, order(Format::Text100, Escaping::AllowUtf8));
        prop_assert_eq!(tally.collisions, 0);
        for ((name, labels), read) in read(&text) {
            prop_assert!(names.contains(&name));
            prop_assert_eq!(&labels["k.\""], &name);
            prop_assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan());
        }
    }
}
