//! Which families a page has, and what each is called on it.
//!
//! Every name that a page will have is claimed once. Two families whose names become one, or where one is called as a
//! sample of the other (`x_count` and a histogram `x`), cannot both be on the page: the first keeps the name.

use std::collections::HashSet;

use super::accept::{Format, Style};
use crate::{
    model::{Family, Kind},
    names::{escape, escape_label, is_metric},
};

/// A name as it is on the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: Box<str>,
    /// Whether it can stand without quotes.
    pub(super) is_plain: bool,
}

impl Name {
    fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            is_plain: is_metric(text),
        }
    }
}

/// What a family is on the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Heading {
    /// In the lines about the family.
    pub(super) family: Name,
    /// In the lines of its samples, before any suffix of the format: `x_total`.
    pub(super) sample: Name,
    /// What the page says that it is.
    pub(super) kind: Kind,
    /// What it means; may be empty.
    pub(super) help: Box<str>,
    /// Its unit, if the page says it.
    pub(super) unit: Option<Box<str>>,
}

/// What is on a page, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Which of the families, and what it is called.
    pub(super) headings: Vec<(usize, Heading)>,
    /// How many could not be on it.
    pub(super) collisions: u64,
}

/// Plans a page. The first `own` families are the program's; they win over all, and a name that needs no escaping wins
/// over one that does. The family `target_info` comes first, as OpenMetrics wants it.
pub(super) fn plan(families: &[&Family], own: usize, style: Style) -> Plan {
    let escaped = |index: &usize| {
        families
            .get(*index)
            .map(|family| escape(&family.name, style.escaping))
    };
    let mut order: Vec<usize> = (0..families.len()).collect();
    order.sort_by_key(|index| {
        let is_changed =
            escaped(index) != families.get(*index).map(|family| (&*family.name).into());
        (*index >= own, *index >= own && is_changed, *index)
    });
    let mut claimed = HashSet::new();
    let mut headings = Vec::with_capacity(families.len());
    for index in order {
        let Some(family) = families.get(index) else {
            continue;
        };
        if let Some(heading) = claim(family, style, &mut claimed) {
            headings.push((index, heading));
        }
    }
    let collisions = families.len() - headings.len();
    headings.sort_by_key(|(index, heading)| (&*heading.sample.text != "target_info", *index));
    Plan {
        headings,
        collisions: u64::try_from(collisions).unwrap_or(u64::MAX),
    }
}

/// The first of the headings that a family may have whose names are all free.
fn claim(family: &Family, style: Style, claimed: &mut HashSet<String>) -> Option<Heading> {
    candidates(family, style)
        .into_iter()
        .flatten()
        .find(|heading| {
            let names = names(heading, style.format);
            let is_free = names.iter().all(|name| !claimed.contains(name));
            if is_free {
                claimed.extend(names);
            }
            is_free
        })
}

/// What a family may be called: what it is, and where OpenMetrics demands a suffix that it has not, or that another
/// family stands in the way of, what it is at least.
fn candidates(family: &Family, style: Style) -> [Option<Heading>; 2] {
    let name = escape(&family.name, style.escaping);
    let heading = |stem: &str, kind: Kind| Heading {
        family: Name::new(stem),
        sample: Name::new(&name),
        kind,
        help: family.help.clone(),
        unit: unit(family, stem, kind, style.format),
    };
    let stem = |suffix: &str| name.strip_suffix(suffix).filter(|stem| !stem.is_empty());
    let has_own_label = || escape_label(&family.name, style.escaping) == name;
    match (style.format, family.kind) {
        (Format::OpenMetrics1, Kind::Counter) => [
            stem("_total").map(|stem| heading(stem, Kind::Counter)),
            Some(heading(&name, Kind::Unknown)),
        ],
        (Format::OpenMetrics1, Kind::Info) => [
            stem("_info").map(|stem| heading(stem, Kind::Info)),
            Some(heading(&name, Kind::Gauge)),
        ],
        (Format::OpenMetrics2, Kind::Info) if name.ends_with("_info") => {
            [Some(heading(&name, Kind::Info)), None]
        }
        (Format::OpenMetrics1 | Format::OpenMetrics2, Kind::StateSet) if has_own_label() => {
            [Some(heading(&name, Kind::StateSet)), None]
        }
        (_, Kind::Info | Kind::StateSet) => [Some(heading(&name, Kind::Gauge)), None],
        (_, kind) => [Some(heading(&name, kind)), None],
    }
}

/// The unit, where the format has one. OpenMetrics 1.0 wants it at the end of the name; nothing else can be said.
fn unit(family: &Family, stem: &str, kind: Kind, format: Format) -> Option<Box<str>> {
    let unit = &*family.unit;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    let ends = stem
        .strip_suffix(unit)
        .is_some_and(|rest| rest.ends_with('_'));
    let is_said = match format {
        Format::Text004 | Format::Text100 => false,
        Format::OpenMetrics1 => ends && unit.bytes().all(is_word),
        Format::OpenMetrics2 => unit.bytes().all(is_word),
        Format::Protobuf => true,
    };
    let may_have = !matches!(kind, Kind::Info | Kind::StateSet);
    (is_said && may_have && !unit.is_empty()).then(|| unit.into())
}

/// Every name that a family takes.
fn names(heading: &Heading, format: Format) -> Vec<String> {
    let stem = &*heading.family.text;
    let open_metrics = format == Format::OpenMetrics1;
    let suffixes: &[&str] = match (heading.kind, open_metrics) {
        (Kind::Counter, true) => &["", "_total", "_created"],
        (Kind::Info, true) => &["", "_info"],
        (Kind::Histogram, true) => &["", "_bucket", "_sum", "_count", "_created"],
        (Kind::Histogram, false) => &["", "_bucket", "_sum", "_count"],
        (Kind::Summary, true) => &["", "_sum", "_count", "_created"],
        (Kind::Summary, false) => &["", "_sum", "_count"],
        (Kind::Counter | Kind::Info | Kind::Gauge | Kind::Unknown | Kind::StateSet, _) => &[""],
    };
    suffixes
        .iter()
        .map(|suffix| format!("{stem}{suffix}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Escaping;

    fn family(name: &str, kind: Kind) -> Family {
        Family {
            name: name.into(),
            kind,
            help: "".into(),
            unit: "".into(),
        }
    }

    fn planned(
        families: &[(&str, Kind)],
        own: usize,
        style: Style,
    ) -> (Vec<(String, String, Kind)>, u64) {
        let families: Vec<_> = families
            .iter()
            .map(|(name, kind)| family(name, *kind))
            .collect();
        let plan = plan(&families.iter().collect::<Vec<_>>(), own, style);
        let headings = plan.headings.into_iter().map(|(_, heading)| {
            let Name { text: family, .. } = heading.family;
            (family.into(), heading.sample.text.into(), heading.kind)
        });
        (headings.collect(), plan.collisions)
    }

    fn samples(families: &[(&str, Kind)], own: usize, style: Style) -> (Vec<String>, u64) {
        let (headings, collisions) = planned(families, own, style);
        (
            headings.into_iter().map(|(_, sample, _)| sample).collect(),
            collisions,
        )
    }

    fn style(format: Format, escaping: Escaping) -> Style {
        Style { format, escaping }
    }

    #[test]
    fn openmetrics_wants_suffixes() {
        let om1 = style(Format::OpenMetrics1, Escaping::AllowUtf8);
        let given = [
            ("a.b_total", Kind::Counter),
            ("build_info", Kind::Info),
            ("calls", Kind::Counter),
            ("facts", Kind::Info),
            ("state", Kind::StateSet),
            ("a:state", Kind::StateSet),
        ];
        let (headings, collisions) = planned(&given, 0, om1);
        let expected = [
            ("a.b", "a.b_total", Kind::Counter),
            ("build", "build_info", Kind::Info),
            ("calls", "calls", Kind::Unknown),
            ("facts", "facts", Kind::Gauge),
            ("state", "state", Kind::StateSet),
            ("a:state", "a:state", Kind::StateSet),
        ];
        let expected =
            expected.map(|(family, sample, kind)| (family.to_owned(), sample.to_owned(), kind));
        assert_eq!((headings, collisions), (expected.to_vec(), 0));
    }

    #[test]
    fn the_older_text_has_fewer_kinds() {
        let given = [
            ("build_info", Kind::Info),
            ("calls", Kind::Counter),
            ("state", Kind::StateSet),
        ];
        let (headings, _) = planned(&given, 0, style(Format::Text004, Escaping::Underscores));
        let kinds: Vec<_> = headings.into_iter().map(|(_, _, kind)| kind).collect();
        assert_eq!(kinds, [Kind::Gauge, Kind::Counter, Kind::Gauge]);
    }

    #[test]
    fn of_two_names_that_become_one_the_first_is_kept() {
        let text = style(Format::Text004, Escaping::Underscores);
        let utf8 = style(Format::Text100, Escaping::AllowUtf8);
        let given = [
            ("a.b", Kind::Gauge),
            ("a_b", Kind::Gauge),
            ("a-c", Kind::Gauge),
            ("a.c", Kind::Gauge),
        ];
        assert_eq!(
            samples(&given, 0, text),
            (vec!["a_b".to_owned(), "a_c".to_owned()], 2)
        );
        assert_eq!(samples(&given, 0, utf8).1, 0);
        // The program's own name is kept, wherever it comes from.
        let (headings, _) = planned(&[("a.b", Kind::Counter), ("a_b", Kind::Gauge)], 1, text);
        assert_eq!(
            headings,
            [("a_b".to_owned(), "a_b".to_owned(), Kind::Counter)]
        );
    }

    #[test]
    fn a_name_that_is_a_sample_of_another_is_left_out() {
        let text = style(Format::Text004, Escaping::Underscores);
        let om1 = style(Format::OpenMetrics1, Escaping::AllowUtf8);
        for (given, format, left_out) in [
            ([("x", Kind::Histogram), ("x_count", Kind::Gauge)], text, 1),
            ([("x", Kind::Summary), ("x_sum", Kind::Gauge)], text, 1),
            ([("x", Kind::Summary), ("x_bucket", Kind::Gauge)], text, 0),
            (
                [("x", Kind::Histogram), ("x_created", Kind::Gauge)],
                text,
                0,
            ),
            ([("x", Kind::Histogram), ("x_created", Kind::Gauge)], om1, 1),
            ([("x_count", Kind::Gauge), ("x", Kind::Histogram)], text, 1),
        ] {
            assert_eq!(samples(&given, 0, format).1, left_out, "{given:?}");
        }
    }

    #[test]
    fn a_counter_beside_a_gauge_of_its_name_keeps_its_samples() {
        let om1 = style(Format::OpenMetrics1, Escaping::AllowUtf8);
        let (headings, collisions) =
            planned(&[("x", Kind::Gauge), ("x_total", Kind::Counter)], 0, om1);
        assert_eq!(collisions, 0);
        assert_eq!(
            headings[1],
            ("x_total".to_owned(), "x_total".to_owned(), Kind::Unknown)
        );
    }

    #[test]
    fn the_target_comes_first() {
        let given = [
            ("a", Kind::Gauge),
            ("target_info", Kind::Info),
            ("z", Kind::Gauge),
        ];
        let (names, _) = samples(&given, 1, style(Format::OpenMetrics1, Escaping::AllowUtf8));
        assert_eq!(names, ["target_info", "a", "z"]);
    }

    #[test]
    fn a_unit_is_said_where_it_may_be() {
        let seconds = |name: &str, kind| Family {
            unit: "seconds".into(),
            ..family(name, kind)
        };
        let given = [
            (
                seconds("x_seconds", Kind::Gauge),
                Format::OpenMetrics1,
                true,
            ),
            (
                seconds("x_seconds_total", Kind::Counter),
                Format::OpenMetrics1,
                true,
            ),
            (seconds("seconds", Kind::Gauge), Format::OpenMetrics1, false),
            (seconds("x", Kind::Gauge), Format::OpenMetrics1, false),
            (seconds("x", Kind::Gauge), Format::OpenMetrics2, true),
            (seconds("x_seconds", Kind::Gauge), Format::Text100, false),
            (seconds("x", Kind::Gauge), Format::Protobuf, true),
            (
                seconds("x_seconds_info", Kind::Info),
                Format::OpenMetrics1,
                false,
            ),
        ];
        for (family, format, expected) in given {
            let plan = plan(&[&family], 0, style(format, Escaping::AllowUtf8));
            let unit = plan.headings[0].1.unit.as_deref();
            assert_eq!(unit, expected.then_some("seconds"), "{family:?} {format:?}");
        }
    }
}
