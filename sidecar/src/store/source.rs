//! Who sends what: a target, a scope within it, and a metric of that scope.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicU64},
};

use super::{Hint, Identity, Metric, Pair, Refusal, Sort, lock, shelf::Shelf};
use crate::{model::Kind, names::MetricType};

/// A target, as it described itself.
#[derive(Debug)]
pub struct Origin {
    pub(super) identity: u32,
    pub(super) who: Identity,
    pub(super) seen: AtomicU64,
    /// Whether the page has what it said of itself; else that is shown when it speaks again.
    pub(super) is_described: AtomicBool,
}

/// A library within a target, as it described itself.
#[derive(Debug)]
pub struct Scope {
    pub(super) id: u32,
    pub(super) labels: Vec<Pair>,
    pub(super) seen: AtomicU64,
}

/// One metric of one scope of one target: who may write its series.
#[derive(Debug)]
pub struct Stream {
    pub(super) id: u32,
    pub(super) identity: u32,
    pub(super) scope: u32,
    name: Box<str>,
    unit: Box<str>,
    pub(super) sort: Sort,
    hint: Hint,
    /// Labels of scope and target.
    pub(super) added: Vec<Pair>,
    /// Where its series are, or why it can have none.
    pub(super) shelf: Result<Arc<Shelf>, Refusal>,
    refused: Mutex<Vec<(Refusal, u64)>>,
    pub(super) seen: AtomicU64,
}

/// What tells one stream from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key<'a> {
    pub(super) identity: u32,
    pub(super) scope: u32,
    pub(super) name: &'a str,
    pub(super) unit: &'a str,
    pub(super) sort: Sort,
    pub(super) hint: Hint,
}

/// What became of a metric's name, and of its points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// As it was sent.
    pub original: String,
    /// As it was sent.
    pub unit: String,
    /// What sort of points it has.
    pub sort: Sort,
    /// What it is called on the page, if it is there.
    pub exposed: Option<String>,
    /// How many series it has.
    pub series: usize,
    /// Points refused since it is known, by reason.
    pub refused: Vec<(Refusal, u64)>,
}

impl Stream {
    pub(super) fn new(
        id: u32,
        key: Key<'_>,
        added: Vec<Pair>,
        shelf: Result<Arc<Shelf>, Refusal>,
        now: u64,
    ) -> Self {
        Self {
            id,
            identity: key.identity,
            scope: key.scope,
            name: key.name.into(),
            unit: key.unit.into(),
            sort: key.sort,
            hint: key.hint,
            added,
            shelf,
            refused: Mutex::default(),
            seen: now.into(),
        }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key {
            identity: self.identity,
            scope: self.scope,
            name: &self.name,
            unit: &self.unit,
            sort: self.sort,
            hint: self.hint,
        }
    }

    /// As it was sent.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Remembers refused points, for whoever asks where they are.
    pub fn refused(&self, refusal: Refusal, points: u64) {
        let mut refused = lock(&self.refused);
        match refused.iter_mut().find(|entry| entry.0 == refusal) {
            Some(entry) => entry.1 += points,
            None => refused.push((refusal, points)),
        }
    }

    pub(super) fn named(&self) -> Named {
        let shelf = self.shelf.as_ref().ok();
        Named {
            original: self.name.to_string(),
            unit: self.unit.to_string(),
            sort: self.sort,
            exposed: shelf.map(|shelf| shelf.family().name.to_string()),
            series: shelf.map_or(0, |shelf| lock(&shelf.state).len_of(self.id)),
            refused: lock(&self.refused).clone(),
        }
    }

    /// Why it can have no series, if it cannot.
    pub fn refusal(&self) -> Option<Refusal> {
        self.shelf.as_ref().err().copied()
    }
}

pub(super) fn kind(metric: &Metric<'_>) -> Kind {
    match (metric.sort, metric.hint) {
        (
            Sort::Sum {
                is_monotonic: true, ..
            },
            _,
        ) => Kind::Counter,
        (Sort::Histogram(_) | Sort::Exponential(_), _) => Kind::Histogram,
        (Sort::Summary, _) => Kind::Summary,
        (Sort::Gauge | Sort::Sum { .. }, Hint::None) => Kind::Gauge,
        (Sort::Gauge | Sort::Sum { .. }, Hint::Unknown) => Kind::Unknown,
        (Sort::Gauge | Sort::Sum { .. }, Hint::Info) => Kind::Info,
        (Sort::Gauge | Sort::Sum { .. }, Hint::StateSet) => Kind::StateSet,
    }
}

pub(super) fn metric_type(metric: &Metric<'_>) -> MetricType {
    match metric.sort {
        Sort::Gauge if metric.hint == Hint::Unknown => MetricType::Unknown,
        Sort::Gauge => MetricType::Gauge,
        Sort::Sum {
            is_monotonic: true, ..
        } => MetricType::Counter,
        Sort::Sum { .. } => MetricType::UpDown,
        Sort::Histogram(_) => MetricType::Histogram,
        Sort::Exponential(_) => MetricType::Exponential,
        Sort::Summary => MetricType::Summary,
    }
}

pub(super) fn is_identifying(name: &str) -> bool {
    ["service.name", "service.namespace", "service.instance.id"].contains(&name)
}

pub(super) fn identity(pairs: &[Pair]) -> Identity {
    let value = |name: &str| {
        let pair = pairs.iter().find(|pair| pair.name == name);
        pair.map(|pair| pair.value.as_str()).unwrap_or_default()
    };
    let (namespace, name) = (value("service.namespace"), value("service.name"));
    Identity {
        job: match (namespace, name) {
            ("", name) => name.to_owned(),
            (namespace, name) => format!("{namespace}/{name}"),
        },
        instance: value("service.instance.id").to_owned(),
    }
}

pub(super) fn target_labels(who: &Identity) -> [Pair; 2] {
    [("instance", &who.instance), ("job", &who.job)].map(|(name, value)| Pair {
        name: name.to_owned(),
        value: value.clone(),
    })
}
