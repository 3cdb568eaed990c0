//! An exponential histogram as one with fixed bounds, for formats and scrapers without native histograms.
//!
//! All series of a family get the same bounds, since sums over series with different ones are wrong: powers of two, or
//! of a power of two, from below the smallest observation to above the largest. The ends lie on a coarse grid, so that
//! they move rarely.

use crate::model::{Buckets, Exponential};

/// The most bounds above zero, and as many below if something was observed there.
const MOST: i64 = 40;
/// The ends of a ladder are multiples of this, in powers of two: a factor of sixteen.
const GRID: i64 = 4;
/// Exponents between which bounds lie, and nearly all doubles; on every grid that can come of it.
const RANGE: (i64, i64) = (-960, 960);

/// Bounds that are `2^lowest`, `2^(lowest + step)` and so on, up to `2^highest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Ladder {
    lowest: i64,
    highest: i64,
    step: i64,
    has_negative: bool,
}

/// What has been seen of a family, from which its ladder is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Span {
    range: Option<(i64, i64)>,
    has_negative: bool,
    has_any: bool,
}

impl Span {
    /// Takes one more series in.
    pub(in super::super) fn add(&mut self, histogram: &Exponential) {
        self.has_any = true;
        for buckets in [&histogram.positive, &histogram.negative] {
            let mut counted = counted(buckets).map(|(index, _)| index);
            let Some(first) = counted.next() else {
                continue;
            };
            let last = counted.last().unwrap_or(first);
            let low = exponent_below(first, histogram.scale);
            let high = exponent_above(last, histogram.scale);
            let (lowest, highest) = self.range.unwrap_or((low, high));
            self.range = Some((lowest.min(low), highest.max(high)));
        }
        self.has_negative |= counted(&histogram.negative).next().is_some();
    }

    /// Nothing if there was no exponential histogram.
    pub(in super::super) fn ladder(self) -> Option<Ladder> {
        if !self.has_any {
            return None;
        }
        let (low, high) = self.range.unwrap_or((0, 0));
        let (low, high) = (low.clamp(RANGE.0, RANGE.1), high.clamp(RANGE.0, RANGE.1));
        let mut step = 1;
        loop {
            let grid = GRID.max(step);
            let lowest = low.div_euclid(grid) * grid;
            let highest = (high + grid - 1).div_euclid(grid) * grid;
            if (highest - lowest) / step < MOST {
                return Some(Ladder {
                    lowest,
                    highest,
                    step,
                    has_negative: self.has_negative,
                });
            }
            step *= 2;
        }
    }
}

impl Ladder {
    fn rungs(self) -> usize {
        usize::try_from((self.highest - self.lowest) / self.step + 1).unwrap_or_default()
    }

    /// The bounds, rising, without the infinite one.
    pub(in super::super) fn bounds(self) -> Vec<f64> {
        let rungs = (0..).take(self.rungs());
        let above: Vec<f64> = rungs
            .map(|rung| power(self.lowest + rung * self.step))
            .collect();
        let below = above.iter().rev().filter(|_| self.has_negative);
        below
            .map(|bound| -bound)
            .chain(above.iter().copied())
            .collect()
    }

    /// How many fell between the bounds, and last beyond them. A bucket that lies across a bound counts above it.
    pub(in super::super) fn counts(self, histogram: &Exponential, counts: &mut Vec<u64>) {
        let rungs = self.rungs();
        let first_above = if self.has_negative { rungs } else { 0 };
        let all = first_above + rungs + 1;
        counts.clear();
        counts.resize(all, 0);
        let mut add = |at: usize, count: u64| {
            if let Some(place) = counts.get_mut(at.min(all - 1)) {
                *place = place.saturating_add(count);
            }
        };
        for (index, count) in counted(&histogram.positive) {
            let above = exponent_above(index, histogram.scale);
            add(first_above + self.rung_at_least(above), count);
        }
        for (index, count) in counted(&histogram.negative) {
            // All of the bucket is at or below a negative bound if its end towards zero is.
            let below = exponent_below(index, histogram.scale);
            let at = match self.rung_at_most(below) {
                Some(rung) => first_above.saturating_sub(rung + 1),
                None => first_above,
            };
            add(at, count);
        }
        if histogram.zero_count > 0 {
            let above = exponent_of(histogram.zero_threshold);
            add(
                first_above + above.map_or(0, |above| self.rung_at_least(above)),
                histogram.zero_count,
            );
        }
        // Observations that are no number are in the count and in no bucket; here they belong to the last.
        let counted = counts
            .iter()
            .fold(0_u64, |sum, count| sum.saturating_add(*count));
        if let Some(last) = counts.last_mut() {
            *last = last.saturating_add(histogram.count.saturating_sub(counted));
        }
    }

    /// The lowest rung that is not below; beyond the last if there is none.
    fn rung_at_least(self, exponent: i64) -> usize {
        let above = (exponent - self.lowest).max(0);
        usize::try_from((above + self.step - 1) / self.step).unwrap_or(usize::MAX / 4)
    }

    /// The highest rung that is not above.
    fn rung_at_most(self, exponent: i64) -> Option<usize> {
        let above = exponent.min(self.highest) - self.lowest;
        usize::try_from(above.div_euclid(self.step)).ok()
    }
}

/// Buckets that counted something, by index.
fn counted(buckets: &Buckets) -> impl Iterator<Item = (i64, u64)> {
    let counts = (i64::from(buckets.offset)..).zip(buckets.counts.iter().copied());
    counts.filter(|(_, count)| *count > 0)
}

/// The smallest whole exponent of two that is not below the upper end of a bucket.
fn exponent_above(index: i64, scale: i32) -> i64 {
    -exponent(-(index + 1), scale)
}

/// The largest whole exponent of two that is not above the lower end of a bucket.
fn exponent_below(index: i64, scale: i32) -> i64 {
    exponent(index, scale)
}

/// `index / 2^scale`, rounded down.
fn exponent(index: i64, scale: i32) -> i64 {
    match scale {
        0.. => index >> scale.min(62),
        ..0 => index << (-scale).min(16),
    }
}

/// The smallest whole exponent of two whose power is not below the number; nothing for zero and less.
fn exponent_of(number: f64) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the exponent of a double has four digits"
    )]
    (number > 0.0).then(|| number.log2().ceil() as i64)
}

/// Exact, as the text of a bound must be: the exponent is put where a double has it.
fn power(exponent: i64) -> f64 {
    f64::from_bits(u64::try_from(exponent + 1023).unwrap_or_default() << 52)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(
        scale: i32,
        positive: (i32, &[u64]),
        negative: (i32, &[u64]),
        zero: u64,
    ) -> Exponential {
        let buckets = |(offset, counts): (i32, &[u64])| Buckets {
            offset,
            counts: counts.to_vec(),
        };
        let count = zero + positive.1.iter().sum::<u64>() + negative.1.iter().sum::<u64>();
        Exponential {
            scale,
            zero_threshold: 0.0,
            zero_count: zero,
            positive: buckets(positive),
            negative: buckets(negative),
            count,
            sum: Some(0.0),
            exemplars: Vec::new(),
        }
    }

    fn ladder(histograms: &[&Exponential]) -> Ladder {
        let mut span = Span::default();
        histograms.iter().for_each(|histogram| span.add(histogram));
        span.ladder().expect("a ladder")
    }

    fn counts(histogram: &Exponential) -> (Vec<f64>, Vec<u64>) {
        let ladder = ladder(&[histogram]);
        let mut counts = Vec::new();
        ladder.counts(histogram, &mut counts);
        (ladder.bounds(), counts)
    }

    #[test]
    fn buckets_end_at_powers_of_two() {
        // At scale 1 a bucket is half a power of two: ]1, 1.41], ]1.41, 2], ]2, 2.83].
        let (bounds, counts) = counts(&histogram(1, (0, &[1, 2, 3]), (0, &[]), 4));
        assert_eq!(bounds, [1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(counts, [4, 3, 3, 0, 0, 0]);
    }

    #[test]
    fn negative_bounds_come_first_and_rise() {
        // ]1, 2] and ]2, 4], and the same below zero.
        let (bounds, counts) = counts(&histogram(0, (0, &[1, 2]), (0, &[3, 4]), 5));
        assert_eq!(
            bounds,
            [-16.0, -8.0, -4.0, -2.0, -1.0, 1.0, 2.0, 4.0, 8.0, 16.0]
        );
        assert_eq!(counts, [0, 0, 0, 4, 3, 5, 1, 2, 0, 0, 0]);
    }

    #[test]
    fn a_wide_family_gets_coarser_steps() {
        let wide = histogram(0, (-100, &[1]), (0, &[]), 0);
        let far = histogram(0, (100, &[1]), (0, &[]), 0);
        let ladder = ladder(&[&wide, &far]);
        assert_eq!(ladder.step, 8);
        let bounds = ladder.bounds();
        assert!(bounds.len() <= 40, "{}", bounds.len());
        assert!(bounds[0] <= 2_f64.powi(-100) && bounds[bounds.len() - 1] >= 2_f64.powi(101));
    }

    #[test]
    fn bounds_do_not_move_with_every_observation() {
        let one = ladder(&[&histogram(3, (1, &[1]), (0, &[]), 0)]);
        let two = ladder(&[&histogram(3, (1, &[1, 0, 7, 0, 0, 1]), (0, &[]), 9)]);
        assert_eq!(one, two);
    }

    #[test]
    fn nothing_observed_is_still_a_histogram() {
        let (bounds, counts) = counts(&histogram(0, (0, &[]), (0, &[]), 0));
        assert_eq!((bounds, counts), (vec![1.0], vec![0, 0]));
        assert_eq!(Span::default().ladder(), None);
    }

    #[test]
    fn what_is_no_number_is_counted_beyond_all_bounds() {
        let mut given = histogram(0, (0, &[1]), (0, &[]), 0);
        given.count = 3;
        let (_, counts) = counts(&given);
        assert_eq!(counts.iter().sum::<u64>(), 3);
        assert_eq!(counts.last(), Some(&2));
    }

    #[test]
    fn a_wide_zero_counts_from_its_edge() {
        let mut given = histogram(0, (0, &[1, 1]), (0, &[]), 2);
        given.zero_threshold = 2.0;
        let (bounds, counts) = counts(&given);
        assert_eq!(bounds[..3], [1.0, 2.0, 4.0]);
        assert_eq!(counts[..3], [0, 3, 1]);
    }

    proptest! {
        /// Every bucket is counted at the lowest bound that all of it is at or below.
        #[test]
        fn no_bound_claims_too_much(
            scale in -4_i32..=8,
            offset in -2_000_i32..2_000,
            up in proptest::collection::vec(0_u64..5, 0..20),
            down in proptest::collection::vec(0_u64..5, 0..20),
            zero in 0_u64..3,
        ) {
            let given = histogram(scale, (offset, &up), (-offset, &down), zero);
            let (bounds, counts) = counts(&given);
            prop_assert_eq!(counts.len(), bounds.len() + 1);
            prop_assert_eq!(counts.iter().sum::<u64>(), given.count);
            prop_assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
            let base = 2_f64.powf(2_f64.powi(-scale));
            let mut sum = 0;
            for (bound, count) in bounds.iter().zip(&counts) {
                sum += count;
                let slack = 1.0 + 1e-9; // powers are not exact
                let above = counted(&given.positive)
                    .filter(|(index, _)| base.powf(*index as f64 + 1.0) <= bound * slack)
                    .map(|(_, count)| count).sum::<u64>();
                let below = counted(&given.negative)
                    .filter(|(index, _)| -base.powf(*index as f64) <= bound / slack.copysign(*bound).abs() || *bound > 0.0)
                    .map(|(_, count)| count).sum::<u64>();
                let zeros = if *bound > 0.0 { zero } else { 0 };
                prop_assert!(sum <= above + below + zeros, "{} {} {}", bound, sum, above + below + zeros);
            }
        }
    }
}
