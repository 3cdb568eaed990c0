//! Who sends what: targets, scopes and metrics, and the family that each metric belongs to.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::BuildHasher,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{
    Hint, Identity, Metric, Pair, Refusal, Rules, Sort, Targets,
    census::{Census, Change},
    labels, lock,
    shelf::{Shelf, Swept},
};
use crate::{
    model::{Family, Kind, Labels, Number, Series, Value},
    names::{self, MetricType},
};

/// Where all that is known about a target is shown.
const TARGET_INFO: &str = "target_info";
/// Names that begin so are the sidecar's own.
const OWN: &str = "agents_sidecar_";

/// A target, as it described itself.
#[derive(Debug)]
pub struct Origin {
    identity: u32,
    who: Identity,
    seen: AtomicU64,
}

/// A library within a target, as it described itself.
#[derive(Debug)]
pub struct Scope {
    id: u32,
    labels: Vec<Pair>,
    seen: AtomicU64,
}

/// One metric of one scope of one target: who may write its series.
#[derive(Debug)]
pub struct Stream {
    pub(super) id: u32,
    identity: u32,
    scope: u32,
    name: Box<str>,
    unit: Box<str>,
    pub(super) sort: Sort,
    hint: Hint,
    /// Labels of scope and target.
    pub(super) added: Vec<Pair>,
    /// Where its series are, or why it can have none.
    pub(super) shelf: Result<Arc<Shelf>, Refusal>,
    refused: Mutex<Vec<(Refusal, u64)>>,
    seen: AtomicU64,
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

/// What the lock of the store guards.
#[derive(Debug)]
pub(super) struct Index {
    shelves: BTreeMap<Box<str>, Arc<Shelf>>,
    origins: HashMap<Box<[u8]>, Arc<Origin>, DefaultHashBuilder>,
    scopes: HashMap<Box<[u8]>, Arc<Scope>, DefaultHashBuilder>,
    streams: HashTable<Arc<Stream>>,
    identities: BTreeMap<Identity, u32>,
    next: u32,
    census: Census,
    hasher: DefaultHashBuilder,
}

impl Index {
    pub(super) fn new(targets: Targets) -> Self {
        Self {
            shelves: BTreeMap::new(),
            origins: HashMap::default(),
            scopes: HashMap::default(),
            streams: HashTable::new(),
            identities: BTreeMap::new(),
            next: 0,
            census: Census::new(targets),
            hasher: DefaultHashBuilder::default(),
        }
    }

    pub(super) fn shelves(&self) -> Vec<Arc<Shelf>> {
        self.shelves.values().map(Arc::clone).collect()
    }

    /// The streams, each counted without holding up the others.
    pub(super) fn streams(&self) -> Vec<Arc<Stream>> {
        self.streams.iter().map(Arc::clone).collect()
    }

    pub(super) fn targets(&self) -> usize {
        self.census.len()
    }

    fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// The target that describes itself by these bytes.
    pub(super) fn origin(
        &mut self,
        described: &[u8],
        rules: &Rules,
        now: u64,
        read: impl FnOnce() -> Result<Vec<Pair>, Refusal>,
    ) -> Result<(Arc<Origin>, Swept), Refusal> {
        let mut swept = Swept::default();
        if let Some(origin) = self.origins.get(described) {
            let origin = Arc::clone(origin);
            origin.seen.store(now, Ordering::Relaxed);
            swept += self.hear(&origin.who, now);
            // If all is forgotten now, it is met anew.
            if self.origins.contains_key(described) {
                return Ok((origin, swept));
            }
        }
        if self.origins.len() >= rules.limits.sources {
            return Err(Refusal::SeriesLimit);
        }
        let pairs = read()?;
        let who = identity(&pairs);
        swept += self.hear(&who, now);
        let identity = match self.identities.get(&who) {
            Some(number) => *number,
            None => {
                let number = self.number();
                self.identities.insert(who.clone(), number);
                number
            }
        };
        self.describe(identity, &who, pairs, rules, now);
        let origin = Arc::new(Origin {
            identity,
            who,
            seen: now.into(),
        });
        self.origins.insert(described.into(), Arc::clone(&origin));
        Ok((origin, swept))
    }

    fn hear(&mut self, who: &Identity, now: u64) -> Swept {
        match self.census.hear(who, now) {
            Change::None => Swept::default(),
            Change::Successor => self.hide_others(who),
            Change::Relabelled => self.forget_all(),
        }
    }

    /// What was said by targets that are over is no longer shown.
    fn hide_others(&mut self, who: &Identity) -> Swept {
        let current = self.identities.get(who).copied();
        let streams = self.streams.iter();
        let others: BTreeSet<u32> = streams
            .filter(|stream| Some(stream.identity) != current)
            .map(|stream| stream.id)
            .chain(
                self.identities
                    .values()
                    .copied()
                    .filter(|it| Some(*it) != current),
            )
            .collect();
        let shelves = self.shelves.values();
        let swept = shelves.map(|shelf| {
            let is_over = |slot: &super::shelf::Slot| others.contains(&slot.stream);
            lock(&shelf.state).sweep(is_over, |_| false)
        });
        swept.sum()
    }

    /// All series have other labels from now on.
    fn forget_all(&mut self) -> Swept {
        self.origins.clear();
        self.streams.clear();
        let shelves = std::mem::take(&mut self.shelves);
        let swept = shelves.iter().map(|(name, shelf)| {
            let swept = lock(&shelf.state).sweep(|_| true, |_| true);
            counted(name, swept)
        });
        swept.sum()
    }

    /// Shows what a target says of itself, in place of what it said before.
    fn describe(
        &mut self,
        identity: u32,
        who: &Identity,
        pairs: Vec<Pair>,
        rules: &Rules,
        now: u64,
    ) {
        let is_federated = self.census.is_federated();
        let pairs = pairs
            .into_iter()
            .filter(|pair| !(is_federated && is_identifying(&pair.name)))
            .collect();
        let mut labels = labels::described(pairs, rules.names, &rules.limits);
        if labels.is_empty() {
            return;
        }
        if is_federated {
            labels.extend(target_labels(who));
            labels.sort();
        }
        let shelf = self.shelves.entry(TARGET_INFO.into()).or_insert_with(|| {
            Arc::new(Shelf::new(Family {
                name: TARGET_INFO.into(),
                kind: Kind::Info,
                help: "Target metadata".into(),
                unit: "".into(),
            }))
        });
        let mut state = lock(&shelf.state);
        state.sweep(|_| false, |slot| slot.stream == identity);
        let labels = Labels::of(labels.iter().map(|pair| (&*pair.name, &*pair.value)));
        // Two targets that say the same of themselves are shown once.
        if state.find_named(&labels).is_none() {
            let series = Series {
                labels,
                start: 0,
                time: 0,
                value: Value::Number(Number::Integer(1)),
            };
            state.put(series, identity, now);
        }
    }

    /// The library that describes itself by these bytes.
    pub(super) fn scope(
        &mut self,
        described: &[u8],
        rules: &Rules,
        now: u64,
        read: impl FnOnce() -> Result<Vec<Pair>, Refusal>,
    ) -> Result<Arc<Scope>, Refusal> {
        if let Some(scope) = self.scopes.get(described) {
            scope.seen.store(now, Ordering::Relaxed);
            return Ok(Arc::clone(scope));
        }
        if self.scopes.len() >= rules.limits.sources {
            return Err(Refusal::SeriesLimit);
        }
        let labels = match rules.has_scope_labels {
            true => labels::described(read()?, rules.names, &rules.limits),
            false => Vec::new(),
        };
        let scope = Arc::new(Scope {
            id: self.number(),
            labels,
            seen: now.into(),
        });
        self.scopes.insert(described.into(), Arc::clone(&scope));
        Ok(scope)
    }

    /// The stream of a metric, and whether its description is another one than that of its family.
    pub(super) fn stream(
        &mut self,
        origin: &Origin,
        scope: &Scope,
        metric: &Metric<'_>,
        rules: &Rules,
        now: u64,
    ) -> Result<(Arc<Stream>, bool), Refusal> {
        let hash = self.hasher.hash_one((
            origin.identity,
            scope.id,
            metric.name,
            metric.unit,
            metric.sort,
            metric.hint,
        ));
        let is_it = |stream: &Arc<Stream>| {
            stream.identity == origin.identity
                && stream.scope == scope.id
                && *stream.name == *metric.name
                && *stream.unit == *metric.unit
                && (stream.sort, stream.hint) == (metric.sort, metric.hint)
        };
        if let Some(stream) = self.streams.find(hash, is_it) {
            stream.seen.store(now, Ordering::Relaxed);
            return Ok((Arc::clone(stream), false));
        }
        if self.streams.len() >= rules.limits.sources {
            return Err(Refusal::SeriesLimit);
        }
        let (shelf, is_described_otherwise) = match self.shelf(metric, rules) {
            Ok((shelf, is_otherwise)) => (Ok(shelf), is_otherwise),
            Err(refusal) => (Err(refusal), false),
        };
        let mut added = scope.labels.clone();
        if self.census.is_federated() {
            added.extend(target_labels(&origin.who));
        }
        let stream = Arc::new(Stream {
            id: self.number(),
            identity: origin.identity,
            scope: scope.id,
            name: metric.name.into(),
            unit: metric.unit.into(),
            sort: metric.sort,
            hint: metric.hint,
            added,
            shelf,
            refused: Mutex::default(),
            seen: now.into(),
        });
        let hasher = &self.hasher;
        self.streams
            .insert_unique(hash, Arc::clone(&stream), |stream| {
                hasher.hash_one((
                    stream.identity,
                    stream.scope,
                    &*stream.name,
                    &*stream.unit,
                    stream.sort,
                    stream.hint,
                ))
            });
        Ok((stream, is_described_otherwise))
    }

    /// The family of a metric.
    fn shelf(&mut self, metric: &Metric<'_>, rules: &Rules) -> Result<(Arc<Shelf>, bool), Refusal> {
        let strategy = rules.names.strategy;
        let kind = kind(metric);
        let named = names::metric(metric.name, metric.unit, metric_type(metric), strategy);
        let mut name = named.map_err(|_| Refusal::Name)?.into_owned();
        if kind == Kind::Info && !name.ends_with("_info") {
            name.push_str("_info");
        }
        if name.len() > rules.limits.name_bytes || metric.unit.len() > rules.limits.name_bytes {
            return Err(Refusal::TooLong);
        }
        if name == TARGET_INFO || name.starts_with(OWN) {
            return Err(Refusal::Reserved);
        }
        let mut help = metric.description;
        if help.len() > rules.limits.value_bytes {
            help = help
                .get(..help.floor_char_boundary(rules.limits.value_bytes))
                .unwrap_or_default();
        }
        if let Some(shelf) = self.shelves.get(&*name) {
            let family = shelf.family();
            return match family.kind == kind {
                true => Ok((Arc::clone(shelf), *family.help != *help)),
                false => Err(Refusal::TypeConflict),
            };
        }
        if self.clashes(&name, kind) {
            return Err(Refusal::TypeConflict);
        }
        let unit = match strategy.adds_suffixes() {
            true => names::unit(metric.unit, strategy).into_owned(),
            false => String::new(),
        };
        let shelf = Arc::new(Shelf::new(Family {
            name: name.as_str().into(),
            kind,
            help: help.into(),
            unit: unit.into(),
        }));
        self.shelves.insert(name.into(), Arc::clone(&shelf));
        Ok((shelf, false))
    }

    /// Whether samples of two families would have the same name on a page.
    fn clashes(&self, name: &str, kind: Kind) -> bool {
        const SUFFIXES: [&str; 4] = ["_bucket", "_sum", "_count", "_created"];
        let has_parts = |kind| matches!(kind, Kind::Histogram | Kind::Summary);
        let makes_it = |suffix: &&str| {
            let base = name.strip_suffix(*suffix);
            let base = base.and_then(|base| self.shelves.get(base));
            base.is_some_and(|shelf| has_parts(shelf.family().kind))
        };
        let is_made_by_it = |suffix: &&str| self.shelves.contains_key(&*format!("{name}{suffix}"));
        SUFFIXES.iter().any(|suffix| makes_it(suffix))
            || (has_parts(kind) && SUFFIXES.iter().any(|suffix| is_made_by_it(suffix)))
    }

    /// See [`super::Store::sweep`].
    pub(super) fn sweep(&mut self, shown: u64, known: u64) -> Swept {
        let mut swept = Swept::default();
        if self.census.forget(shown) == Change::Relabelled {
            return self.forget_all();
        }
        for (name, shelf) in &self.shelves {
            // What a target says of itself is over when it is silent, not when nothing of it changes.
            let is_info = **name == *TARGET_INFO;
            let live = |slot: &super::shelf::Slot| {
                let mut origins = self.origins.values();
                is_info
                    && origins.any(|it| {
                        it.identity == slot.stream && it.seen.load(Ordering::Relaxed) >= shown
                    })
            };
            let gone = lock(&shelf.state).sweep(
                |slot| slot.seen < shown && !live(slot),
                |slot| slot.seen < known && !live(slot),
            );
            swept += counted(name, gone);
        }
        let is_used = |seen: &AtomicU64| seen.load(Ordering::Relaxed) >= known;
        // Who holds one is about to write; the lock of the index keeps anyone else from getting it.
        self.streams
            .retain(|stream| is_used(&stream.seen) || Arc::strong_count(stream) > 1);
        self.scopes.retain(|_, scope| is_used(&scope.seen));
        self.origins.retain(|_, origin| is_used(&origin.seen));
        let numbers: BTreeSet<u32> = self
            .origins
            .values()
            .map(|origin| origin.identity)
            .collect();
        self.identities.retain(|_, number| numbers.contains(number));
        self.shelves
            .retain(|_, shelf| Arc::strong_count(shelf) > 1 || lock(&shelf.state).len() > 0);
        swept
    }
}

/// What targets say of themselves counts as no series: it is ours, and there are few.
fn counted(family: &str, swept: Swept) -> Swept {
    match family == TARGET_INFO {
        true => Swept::default(),
        false => swept,
    }
}

fn kind(metric: &Metric<'_>) -> Kind {
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

fn metric_type(metric: &Metric<'_>) -> MetricType {
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

fn is_identifying(name: &str) -> bool {
    ["service.name", "service.namespace", "service.instance.id"].contains(&name)
}

fn identity(pairs: &[Pair]) -> Identity {
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

fn target_labels(who: &Identity) -> [Pair; 2] {
    [("instance", &who.instance), ("job", &who.job)].map(|(name, value)| Pair {
        name: name.to_owned(),
        value: value.clone(),
    })
}
