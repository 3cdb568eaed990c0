//! A page, piece by piece: so many series of one family at a time, never the whole.
//!
//! Each piece is read under the lock of one family. A series that comes or goes while a page is being written is on it
//! or is not; none is on it twice.

use std::{collections::HashSet, sync::Arc};

use super::{
    accept::Style,
    plan::{Heading, plan},
    write::{LabelText, Ladder, Span, Writer},
};
use crate::{
    model::{Family, Kind, Labels, Series, Value},
    names::Escaping,
    store::{Shelf, Store},
};

/// A piece is cut when it has so many bytes.
pub(super) const PIECE: usize = 64 * 1024;
/// The most series that are read under one lock.
const BATCH: usize = 1_000;
/// What a series is thought to take before one has been seen.
const FIRST_GUESS: usize = 128;

/// One family and its series, wherever they are kept.
pub trait Source: Send + Sync {
    /// What all its series have in common.
    fn family(&self) -> Arc<Family>;

    /// Visits at most `most` series in byte order of their labels, after `after` if given. Says whether there are more,
    /// and moves `after` on.
    fn read(&self, after: &mut Option<Labels>, most: usize, visit: &mut dyn FnMut(&Series))
    -> bool;
}

/// All families that came in, wherever they are kept.
pub trait Families: Send + Sync {
    /// In byte order of their names.
    fn all(&self) -> Vec<Arc<dyn Source>>;
}

impl Families for Store {
    fn all(&self) -> Vec<Arc<dyn Source>> {
        let shelves = self.shelves().into_iter();
        shelves.map(|shelf| shelf as Arc<dyn Source>).collect()
    }
}

impl Source for Shelf {
    fn family(&self) -> Arc<Family> {
        Self::family(self)
    }

    fn read(
        &self,
        after: &mut Option<Labels>,
        most: usize,
        visit: &mut dyn FnMut(&Series),
    ) -> bool {
        Self::read(self, after, most, visit)
    }
}

/// All that is on a page: first the program's own families, then those that came in.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) all: Vec<Arc<dyn Source>>,
    pub(super) own: usize,
}

/// How a page is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) style: Style,
    /// Whether OpenMetrics 1.0 says in further lines when series began.
    pub(super) created: bool,
    /// Whether label names may be any UTF-8, so that escaping can make one of two.
    pub(super) utf8: bool,
}

/// What became of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Series written.
    pub(super) series: u64,
    /// Families left out, since another has their name.
    pub(super) collisions: u64,
    /// Series left out, since another of the family has their labels on this page.
    pub(super) duplicates: u64,
    /// Series left out, since the format cannot say them.
    pub(super) omitted: u64,
}

/// A page that is being written.
pub(super) struct Render {
    sources: Vec<Arc<dyn Source>>,
    headings: std::vec::IntoIter<(usize, Heading)>,
    current: Option<Current>,
    writer: Writer,
    labels: LabelText,
    order: Order,
    tally: Tally,
    is_done: bool,
}

struct Current {
    source: Arc<dyn Source>,
    heading: Heading,
    ladder: Option<Ladder>,
    /// Labels that are on the page, where two series could have the same.
    seen: Option<HashSet<Box<str>>>,
    after: Option<Labels>,
    is_begun: bool,
    bytes_per_series: usize,
}

impl Render {
    pub(super) fn new(sources: Sources, order: Order) -> Self {
        let families: Vec<_> = sources.all.iter().map(|source| source.family()).collect();
        let families: Vec<_> = families.iter().map(|family| &**family).collect();
        let plan = plan(&families, sources.own, order.style);
        Self {
            sources: sources.all,
            headings: plan.headings.into_iter(),
            current: None,
            writer: Writer::new(order.style, order.created),
            labels: LabelText::new(order.style.escaping),
            order,
            tally: Tally {
                collisions: plan.collisions,
                ..Tally::default()
            },
            is_done: false,
        }
    }

    /// Writes the next piece. Says whether there is more to come.
    pub(super) fn piece(&mut self, page: &mut Vec<u8>) -> bool {
        while !self.is_done && page.len() < PIECE {
            match self.current.take().or_else(|| self.next_family()) {
                Some(mut current) => {
                    if self.batch(&mut current, page) {
                        self.current = Some(current);
                    }
                }
                None => {
                    self.writer.finish(page);
                    self.is_done = true;
                }
            }
        }
        !self.is_done
    }

    /// What was written so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    fn next_family(&mut self) -> Option<Current> {
        let (index, heading) = self.headings.next()?;
        let source = Arc::clone(self.sources.get(index)?);
        let survey = self.survey(&*source, heading.kind);
        Some(Current {
            source,
            heading,
            ladder: survey.span.ladder(),
            seen: survey.has_quoted.then(HashSet::new),
            after: None,
            is_begun: false,
            bytes_per_series: FIRST_GUESS,
        })
    }

    /// Looks through a family beforehand, where what is written of one series depends on the others.
    fn survey(&self, source: &dyn Source, kind: Kind) -> Survey {
        let escapes = self.order.utf8 && self.order.style.escaping != Escaping::AllowUtf8;
        let mut survey = Survey::default();
        if !escapes && kind != Kind::Histogram {
            return survey;
        }
        let mut after = None;
        let mut visit = |series: &Series| {
            survey.has_quoted |= escapes && !series.labels.is_plain();
            if let Value::Exponential(histogram) = &series.value {
                survey.span.add(histogram);
            }
        };
        while source.read(&mut after, BATCH, &mut visit) {}
        survey
    }

    /// Writes as many series as fit. Says whether the family has more.
    fn batch(&mut self, current: &mut Current, page: &mut Vec<u8>) -> bool {
        let Current {
            source,
            heading,
            ladder,
            seen,
            after,
            is_begun,
            bytes_per_series,
        } = current;
        let Self {
            writer,
            labels,
            tally,
            ..
        } = self;
        let begin = page.len();
        let room = PIECE.saturating_sub(begin) / (*bytes_per_series).max(1);
        let most = room.clamp(1, BATCH);
        let mut is_open = false;
        let mut written = 0_usize;
        let has_more = source.read(after, most, &mut |series| {
            let mut on_page = || labels.of(&series.labels, None).into();
            if seen.as_mut().is_some_and(|seen| !seen.insert(on_page())) {
                tally.duplicates += 1;
                return;
            }
            if !is_open {
                writer.begin(heading, *ladder, !*is_begun, page);
                (is_open, *is_begun) = (true, true);
            }
            if writer.series(heading, series, page) {
                written += 1;
            } else {
                tally.omitted += 1;
            }
        });
        if is_open {
            writer.end(page);
        }
        tally.series += written as u64;
        let average = (page.len() - begin).checked_div(written);
        *bytes_per_series = average.unwrap_or(*bytes_per_series);
        has_more
    }
}

/// What must be known of a family before its first series is written.
#[derive(Default)]
struct Survey {
    span: Span,
    has_quoted: bool,
}

#[cfg(test)]
mod tests;
