//! The buckets of an exponential histogram as Prometheus lays them out: spans of neighbours, and their counts.

use crate::model::Buckets;

/// So many empty buckets are written rather than begin another span.
const GAP: usize = 2;
/// The scales that native histograms have.
pub(super) const SCALES: std::ops::RangeInclusive<i32> = -4..=8;
/// What counts as zero if nobody said.
pub(super) const ZERO_THRESHOLD: f64 = 1e-128;

/// Neighbouring buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// How many buckets lie before it: after the span before, or after index 0.
    pub(super) offset: i32,
    /// How many it has.
    pub(super) length: u32,
}

/// Spans and the counts of all their buckets. Prometheus knows a bucket by its upper end, OpenTelemetry by its lower.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) spans: Vec<Span>,
    pub(super) counts: Vec<u64>,
}

impl Layout {
    pub(super) fn of(buckets: &Buckets) -> Self {
        let mut layout = Self::default();
        let mut end: Option<i32> = None;
        for (index, count) in (0_i32..).zip(&buckets.counts) {
            if *count == 0 {
                continue;
            }
            let at = buckets.offset.saturating_add(index).saturating_add(1);
            layout.push(
                at.saturating_sub(end.unwrap_or_default()),
                end.is_none(),
                *count,
            );
            end = Some(at.saturating_add(1));
        }
        layout
    }

    fn push(&mut self, gap: i32, is_first: bool, count: u64) {
        let filled = usize::try_from(gap)
            .ok()
            .filter(|gap| !is_first && *gap <= GAP);
        match (filled, self.spans.last_mut()) {
            (Some(gap), Some(span)) => {
                self.counts.extend(std::iter::repeat_n(0, gap));
                span.length += u32::try_from(gap).unwrap_or_default() + 1;
            }
            _ => self.spans.push(Span {
                offset: gap,
                length: 1,
            }),
        }
        self.counts.push(count);
    }

    /// Each count less the one before.
    pub(super) fn deltas(&self) -> impl Iterator<Item = i64> {
        let mut before = 0_u64;
        self.counts.iter().map(move |count| {
            let delta = count.wrapping_sub(before).cast_signed();
            before = *count;
            delta
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(offset: i32, counts: &[u64]) -> (Vec<(i32, u32)>, Vec<i64>) {
        let layout = Layout::of(&Buckets {
            offset,
            counts: counts.to_vec(),
        });
        let spans = layout.spans.iter().map(|span| (span.offset, span.length));
        (spans.collect(), layout.deltas().collect())
    }

    #[test]
    fn buckets_are_laid_out_as_prometheus_does() {
        for (offset, counts, spans, deltas) in [
            (0, &[] as &[u64], &[] as &[(i32, u32)], &[] as &[i64]),
            (0, &[0, 0, 0], &[], &[]),
            (1, &[4, 3, 2, 1], &[(2, 4)], &[4, -1, -1, -1]),
            (0, &[4, 4, 2, 2], &[(1, 4)], &[4, 0, -2, 0]),
            (-2, &[4, 4, 2, 2], &[(-1, 4)], &[4, 0, -2, 0]),
            // A gap of two is filled.
            (0, &[1, 0, 0, 2], &[(1, 4)], &[1, -1, 0, 2]),
            // One of three is not.
            (0, &[1, 0, 0, 0, 2], &[(1, 1), (3, 1)], &[1, 1]),
            // Nothing is written before the first and after the last.
            (0, &[0, 0, 0, 5, 0, 0, 0], &[(4, 1)], &[5]),
            (
                3,
                &[10, 0, 0, 20, 5, 2],
                &[(4, 6)],
                &[10, -10, 0, 20, -15, -3],
            ),
            (2, &[1, 0, 0, 0, 0, 1, 1], &[(3, 1), (4, 2)], &[1, 0, 0]),
            (i32::MAX, &[1, 1], &[(i32::MAX, 1)], &[1]),
        ] {
            let (given_spans, given_deltas) = layout(offset, counts);
            if offset < i32::MAX {
                assert_eq!(
                    (&*given_spans, &*given_deltas),
                    (spans, deltas),
                    "{offset} {counts:?}"
                );
            }
        }
    }
}
