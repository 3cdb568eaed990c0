//! The points of one request on their way to their series.

use std::sync::{Arc, MutexGuard, atomic::Ordering};

use super::{
    Metric, Oddity, Origin, Pair, Point, Refusal, Scope, Store, Stream, Tally, exemplars,
    index::Index,
    labels::{self, Labelled},
    limits::At,
    lock,
    merge::{self, Taken},
    shelf::State,
    weight,
};
use crate::model::{Labels, Series, Value};

/// The label of the series in which all are that are too many.
const OVERFLOW: (&str, &str) = ("otel_metric_overflow", "true");

/// One request.
#[derive(Debug)]
pub struct Intake<'s> {
    store: &'s Store,
    now: u64,
    grown: usize,
    /// What became of its points so far.
    pub tally: Tally,
}

impl<'s> Intake<'s> {
    pub(super) fn new(store: &'s Store, now: u64) -> Self {
        Self {
            store,
            now,
            grown: 0,
            tally: Tally::default(),
        }
    }

    /// Asks the index for a source that takes so much if it is new; that counts towards what the request may take.
    fn known<T>(
        &mut self,
        weight: usize,
        ask: impl FnOnce(&mut Index, At<'_>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let rules = &self.store.rules;
        let at = At {
            rules,
            now: self.now,
            is_full: self.store.is_full(),
            has_room: self.grown + weight <= rules.limits.bytes_per_request,
        };
        let mut index = lock(&self.store.index);
        let before = index.sources();
        let source = ask(&mut index, at)?;
        if index.sources() > before {
            self.grown += weight;
        }
        Ok(source)
    }

    /// The target that describes itself by these bytes.
    pub fn origin(
        &mut self,
        described: &[u8],
        read: impl FnOnce() -> Result<Vec<Pair>, Refusal>,
    ) -> Result<Arc<Origin>, Refusal> {
        let weight = weight::of_described(described);
        let (origin, swept) = self.known(weight, |index, at| index.origin(described, at, read))?;
        self.store.gone(&swept);
        Ok(origin)
    }

    /// The library that describes itself by these bytes.
    pub fn scope(
        &mut self,
        described: &[u8],
        read: impl FnOnce() -> Result<Vec<Pair>, Refusal>,
    ) -> Result<Arc<Scope>, Refusal> {
        let weight = weight::of_described(described);
        self.known(weight, |index, at| index.scope(described, at, read))
    }

    /// The stream of a metric.
    pub fn stream(
        &mut self,
        origin: &Origin,
        scope: &Scope,
        metric: &Metric<'_>,
    ) -> Result<Arc<Stream>, Refusal> {
        let weight = weight::of_metric(metric, scope);
        let (stream, is_described_otherwise) =
            self.known(weight, |index, at| index.stream(origin, scope, metric, at))?;
        if is_described_otherwise {
            self.tally.note(Oddity::Help);
        }
        Ok(stream)
    }

    /// A series takes another room than before.
    fn reweigh(&mut self, before: usize, after: usize) {
        self.grown += after.saturating_sub(before);
        self.store.reweigh(before, after);
    }

    /// Opens the family of a stream for its points, if it has one.
    pub fn open<'i>(&'i mut self, stream: &'i Stream) -> Option<Open<'i, 's>> {
        let shelf = stream.shelf.as_ref().ok()?;
        Some(Open {
            state: lock(&shelf.state),
            stream,
            intake: self,
        })
    }
}

/// A family that takes points.
#[derive(Debug)]
pub struct Open<'i, 's> {
    state: MutexGuard<'i, State>,
    stream: &'i Stream,
    intake: &'i mut Intake<'s>,
}

impl Open<'_, '_> {
    /// Takes a point, or counts why not.
    #[inline]
    pub fn take(&mut self, point: &Point<'_>) {
        let taken = match self.state.find(self.stream.id, point.attributes) {
            Some(at) => self.update(at, point),
            None => self.meet(point),
        };
        match taken {
            Ok(Taken::Stored) => {}
            Ok(Taken::Again) => self.intake.tally.note(Oddity::Again),
            Ok(Taken::AfterGap) => self.intake.tally.note(Oddity::Gap),
            Err(refusal) => return self.refuse(refusal),
        }
        self.intake.tally.taken += 1;
    }

    /// Counts a point that is not taken.
    pub fn refuse(&mut self, refusal: Refusal) {
        self.stream.refused(refusal, 1);
        self.intake.tally.refuse(refusal, 1, self.stream.name());
    }

    #[inline]
    fn update(&mut self, at: u32, point: &Point<'_>) -> Result<Taken, Refusal> {
        let Self {
            state,
            stream,
            intake,
        } = self;
        let Some(slot) = state.get_mut(at) else {
            return Err(Refusal::Collision);
        };
        if point.is_absent {
            slot.seen = intake.now;
            slot.is_shown = false;
            return Ok(Taken::Stored);
        }
        let weight = weight::of_value(&slot.series.value);
        has_room_for(weight::of_point(point).saturating_sub(weight), intake)?;
        let has_examples = !point.exemplars.is_empty() || has_examples(&slot.series.value);
        let before = has_examples.then(|| slot.series.value.clone());
        let taken = merge::next(&mut slot.series, stream.sort, point)?;
        // Only now: what is refused must not keep alive what it is refused for. A clock that was wrong once, and whose time is
        // far ahead, would have its series refused for ever.
        slot.seen = intake.now;
        if has_examples {
            let Store {
                read_attributes,
                rules,
                ..
            } = intake.store;
            exemplars::attach(
                &mut slot.series.value,
                before,
                point,
                *read_attributes,
                rules.names,
            );
        }
        slot.is_shown = true;
        intake.reweigh(weight, weight::of_value(&slot.series.value));
        Ok(taken)
    }

    /// A point whose attributes are new, or written in another way.
    #[cold]
    fn meet(&mut self, point: &Point<'_>) -> Result<Taken, Refusal> {
        let store = self.intake.store;
        let attributes = (store.read_attributes)(point.attributes)?;
        let made = labels::of(
            attributes,
            &self.stream.added,
            self.stream.sort,
            store.rules.names,
            &store.rules.limits,
        )?;
        let Labelled { labels, is_joined } = made;
        if is_joined {
            self.intake.tally.note(Oddity::JoinedLabels);
        }
        let stream = self.stream.id;
        if let Some(at) = self.state.find_named(&labels) {
            let Some(slot) = self.state.get_mut(at) else {
                return Err(Refusal::Collision);
            };
            if slot.stream == stream {
                self.remember(point.attributes, at);
                return self.update(at, point);
            }
            if slot.is_shown {
                return Err(Refusal::Collision);
            }
            if !point.is_absent {
                self.take_over(at, point)?;
                self.remember(point.attributes, at);
            }
            return Ok(Taken::Stored);
        }
        if point.is_absent {
            return Ok(Taken::Stored);
        }
        match self.has_room(&labels, point) {
            Ok(()) => {
                let at = self.create(labels, point)?;
                self.remember(point.attributes, at);
                Ok(Taken::Stored)
            }
            Err(Refusal::MetricLimit) if merge::can_pour(self.stream.sort) => self.pour(point),
            Err(refusal) => Err(refusal),
        }
    }

    /// Whoever wrote a series has stopped: it begins anew with another writer. That stores the point; it must not be added to
    /// itself.
    fn take_over(&mut self, at: u32, point: &Point<'_>) -> Result<(), Refusal> {
        let Self {
            state,
            stream,
            intake,
        } = self;
        let Some(slot) = state.get_mut(at) else {
            return Err(Refusal::Collision);
        };
        let before = weight::of_value(&slot.series.value);
        has_room_for(weight::of_point(point).saturating_sub(before), intake)?;
        slot.series.value = first(intake.store, stream, point)?;
        slot.series.start = merge::start(stream.sort, point);
        slot.series.time = point.time;
        slot.stream = stream.id;
        slot.seen = intake.now;
        slot.is_shown = true;
        intake.reweigh(before, weight::of_value(&slot.series.value));
        let dropped = state.drop_keys(at);
        intake.reweigh(dropped, 0);
        Ok(())
    }

    /// Has the next point with these attributes find its series without reading them, if there is room for that.
    fn remember(&mut self, attributes: &[u8], at: u32) {
        if has_room_for(attributes.len(), self.intake).is_ok() {
            let weight = self.state.remember(self.stream.id, attributes, at);
            self.intake.reweigh(0, weight);
        }
    }

    fn has_room(&self, labels: &Labels, point: &Point<'_>) -> Result<(), Refusal> {
        let Store { rules, series, .. } = self.intake.store;
        let limits = &rules.limits;
        if self.state.len() >= limits.series_per_metric {
            Err(Refusal::MetricLimit)
        } else if series.load(Ordering::Relaxed) >= limits.series {
            Err(Refusal::SeriesLimit)
        } else {
            let weight = weight::of_series(labels, point.attributes);
            has_room_for(weight + weight::of_point(point), self.intake)
        }
    }

    fn create(&mut self, labels: Labels, point: &Point<'_>) -> Result<u32, Refusal> {
        let Self {
            state,
            stream,
            intake,
        } = self;
        let value = first(intake.store, stream, point)?;
        // What it is found by is weighed where it is remembered.
        let weight = weight::of_series(&labels, &[]) + weight::of_value(&value);
        let series = Series {
            labels,
            start: merge::start(stream.sort, point),
            time: point.time,
            value,
        };
        let at = state.put(series, stream.id, intake.now);
        intake.store.series.fetch_add(1, Ordering::Relaxed);
        intake.reweigh(0, weight);
        Ok(at)
    }

    /// Adds a point to the series in which all are that are too many.
    fn pour(&mut self, point: &Point<'_>) -> Result<Taken, Refusal> {
        self.intake.tally.note(Oddity::Overflow);
        let labels = Labels::of([OVERFLOW]);
        let Some(at) = self.state.find_named(&labels) else {
            return self.create(labels, point).map(|_| Taken::Stored);
        };
        let Self {
            state,
            stream,
            intake,
        } = self;
        let Some(slot) = state.get_mut(at) else {
            return Err(Refusal::MetricLimit);
        };
        slot.seen = intake.now;
        slot.is_shown = true;
        let before = weight::of_value(&slot.series.value);
        let taken = merge::pour(&mut slot.series, stream.sort, point);
        intake.reweigh(before, weight::of_value(&slot.series.value));
        taken
    }
}

/// The first value of a series, with the observations that its point has.
fn first(store: &Store, stream: &Stream, point: &Point<'_>) -> Result<Value, Refusal> {
    let mut value = merge::first(stream.sort, point)?;
    if !point.exemplars.is_empty() {
        let names = store.rules.names;
        exemplars::attach(&mut value, None, point, store.read_attributes, names);
    }
    Ok(value)
}

/// Whether a request may take so much more of the memory.
#[inline]
fn has_room_for(more: usize, intake: &Intake<'_>) -> Result<(), Refusal> {
    let limits = &intake.store.rules.limits;
    if more == 0 {
        Ok(())
    } else if intake.store.weight() + more > limits.bytes {
        Err(Refusal::SeriesLimit)
    } else if intake.grown + more > limits.bytes_per_request {
        Err(Refusal::RequestLimit)
    } else {
        Ok(())
    }
}

fn has_examples(value: &Value) -> bool {
    match value {
        Value::Total(_, exemplar) => exemplar.is_some(),
        Value::Histogram(histogram) => !histogram.exemplars.is_empty(),
        Value::Exponential(histogram) => !histogram.exemplars.is_empty(),
        Value::Number(_) | Value::Summary(_) => false,
    }
}
