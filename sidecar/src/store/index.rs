//! All targets, scopes and metrics, and the family that each metric belongs to.

mod sweep;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::BuildHasher,
    sync::{Arc, atomic::Ordering},
};

use hashbrown::HashTable;

use super::{
    Cause, Identity, Metric, Pair, Refusal, Targets,
    census::{Census, Change},
    hashing::Hashing,
    labels,
    limits::At,
    lock,
    shelf::{Shelf, Slot, Swept},
    source::{
        Key, Origin, Scope, Stream, identity, is_identifying, kind, metric_type, target_labels,
    },
};
use crate::{
    model::{Family, Kind, Labels, Number, Series, Value},
    names,
};

/// Where all that is known about a target is shown.
const TARGET_INFO: &str = "target_info";
/// Names that begin so are the sidecar's own.
const OWN: &str = "agents_sidecar_";

/// What the lock of the store guards.
#[derive(Debug)]
pub(super) struct Index {
    shelves: BTreeMap<Box<str>, Arc<Shelf>>,
    origins: HashMap<Box<[u8]>, Arc<Origin>, Hashing>,
    scopes: HashMap<Box<[u8]>, Arc<Scope>, Hashing>,
    streams: HashTable<Arc<Stream>>,
    identities: BTreeMap<Identity, u32>,
    next: u32,
    census: Census,
    hasher: Hashing,
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
            hasher: Hashing::default(),
        }
    }

    /// Targets, scopes and metrics that are known.
    pub(super) fn sources(&self) -> usize {
        self.origins.len() + self.scopes.len() + self.streams.len()
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
        at: At<'_>,
        read: impl FnOnce() -> Result<Vec<Pair>, Refusal>,
    ) -> Result<(Arc<Origin>, Swept), Refusal> {
        let now = at.now;
        let mut swept = Swept::default();
        if let Some(origin) = self.origins.get(described) {
            let origin = Arc::clone(origin);
            origin.seen.store(now, Ordering::Relaxed);
            swept += self.hear(&origin.who, now);
            // If all is forgotten now, it is met anew.
            if self.origins.contains_key(described) {
                if !origin.is_described.swap(true, Ordering::Relaxed) {
                    self.describe(origin.identity, &origin.who, read()?, at);
                }
                return Ok((origin, swept));
            }
        }
        at.admits(self.origins.len())?;
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
        self.describe(identity, &who, pairs, at);
        let origin = Arc::new(Origin {
            identity,
            who,
            seen: now.into(),
            is_described: true.into(),
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
        for origin in self.origins.values() {
            let is_described = Some(origin.identity) == current;
            origin
                .is_described
                .fetch_and(is_described, Ordering::Relaxed);
        }
        let swept = self.shelves.iter().map(|(name, shelf)| {
            let is_over = |slot: &Slot| others.contains(&slot.stream);
            let cause = |slot: &Slot| is_over(slot).then_some(Cause::TargetReplaced);
            counted(name, lock(&shelf.state).sweep(cause, |_| false))
        });
        swept.sum()
    }

    /// All series have other labels from now on.
    fn forget_all(&mut self) -> Swept {
        self.origins.clear();
        self.streams.clear();
        let shelves = std::mem::take(&mut self.shelves);
        let swept = shelves.iter().map(|(name, shelf)| {
            let swept = lock(&shelf.state).sweep(|_| None, |_| true);
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
        At { rules, now, .. }: At<'_>,
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
        state.sweep(|_| None, |slot| slot.stream == identity);
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
        at: At<'_>,
        read: impl FnOnce() -> Result<Vec<Pair>, Refusal>,
    ) -> Result<Arc<Scope>, Refusal> {
        let At { rules, now, .. } = at;
        if let Some(scope) = self.scopes.get(described) {
            scope.seen.store(now, Ordering::Relaxed);
            return Ok(Arc::clone(scope));
        }
        at.admits(self.scopes.len())?;
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
        at: At<'_>,
    ) -> Result<(Arc<Stream>, bool), Refusal> {
        let now = at.now;
        let key = Key {
            identity: origin.identity,
            scope: scope.id,
            name: metric.name,
            unit: metric.unit,
            sort: metric.sort,
            hint: metric.hint,
        };
        let hash = self.hasher.hash_one(key);
        let is_it = |stream: &Arc<Stream>| stream.key() == key;
        if let Some(stream) = self.streams.find(hash, is_it) {
            stream.seen.store(now, Ordering::Relaxed);
            return Ok((Arc::clone(stream), false));
        }
        at.admits(self.streams.len())?;
        let (shelf, is_described_otherwise) = match self.shelf(metric, at) {
            Ok((shelf, is_otherwise)) => (Ok(shelf), is_otherwise),
            // Nothing is kept of a name that comes when all is full: who invents series invents names as well.
            Err(Refusal::SeriesLimit) => return Err(Refusal::SeriesLimit),
            Err(refusal) => (Err(refusal), false),
        };
        let mut added = scope.labels.clone();
        if self.census.is_federated() {
            added.extend(target_labels(&origin.who));
        }
        let stream = Arc::new(Stream::new(self.number(), key, added, shelf, now));
        let hasher = &self.hasher;
        let rehash = |stream: &Arc<Stream>| hasher.hash_one(stream.key());
        self.streams
            .insert_unique(hash, Arc::clone(&stream), rehash);
        Ok((stream, is_described_otherwise))
    }

    /// The family of a metric. A new one must have room for a series at least.
    fn shelf(
        &mut self,
        metric: &Metric<'_>,
        At { rules, is_full, .. }: At<'_>,
    ) -> Result<(Arc<Shelf>, bool), Refusal> {
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
        let help = shortened(metric.description, rules.limits.value_bytes);
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
        if is_full {
            return Err(Refusal::SeriesLimit);
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
        let makes_it = |suffix: &&'static str| {
            let base = name.strip_suffix(*suffix);
            let base = base.and_then(|base| self.shelves.get(base));
            base.is_some_and(|shelf| has_parts(shelf.family().kind))
        };
        let is_made_by_it =
            |suffix: &&'static str| self.shelves.contains_key(&*format!("{name}{suffix}"));
        SUFFIXES.iter().any(makes_it) || (has_parts(kind) && SUFFIXES.iter().any(is_made_by_it))
    }
}

/// As much of a text as fits.
fn shortened(text: &str, most: usize) -> &str {
    let is_end = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=most.min(text.len())).rev().find(is_end);
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// What targets say of themselves counts as no series: it is ours, and there are few.
fn counted(family: &str, swept: Swept) -> Swept {
    let series = Some(swept).filter(|_| family != TARGET_INFO);
    series.unwrap_or_default()
}
