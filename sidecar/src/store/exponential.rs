//! Exponential histograms: brought to what Prometheus can hold, and added up.

use super::{Refusal, Scaled};
use crate::model::{Buckets, Exponential};

/// As fine as a native histogram can be.
const FINEST: i32 = 8;
/// As coarse as one can be.
const COARSEST: i32 = -4;
/// Buckets of one side; beyond it they are made coarser, none is dropped.
const MOST: usize = 160;

/// A point as it is kept.
pub(super) fn of(point: &Scaled<'_>) -> Result<Exponential, Refusal> {
    let side = |(offset, counts): (i32, &[u64])| Buckets {
        offset,
        counts: counts.to_vec(),
    };
    let mut histogram = Exponential {
        scale: point.scale,
        zero_threshold: point.zero_threshold,
        zero_count: point.zero_count,
        positive: trimmed(side(point.positive)),
        negative: trimmed(side(point.negative)),
        count: point.count,
        sum: point.sum,
        exemplars: Vec::new(),
    };
    let in_buckets = [&histogram.positive, &histogram.negative]
        .into_iter()
        .flat_map(|side| &side.counts)
        .try_fold(point.zero_count, |all, count| all.checked_add(*count));
    // Observations that are no number are in the count only.
    let is_consistent = in_buckets.is_some_and(|counted| counted <= point.count);
    let is_threshold = point.zero_threshold >= 0.0 && point.zero_threshold.is_finite();
    let is_finite = [&histogram.positive, &histogram.negative]
        .into_iter()
        .all(|side| side.counts.is_empty() || is_a_number(side, point.scale));
    if !(COARSEST..=20).contains(&point.scale) || !is_consistent || !is_threshold || !is_finite {
        return Err(Refusal::Buckets);
    }
    // Without a sum an average would be wrong, so OpenTelemetry has such a point dropped.
    if point.sum.is_none() {
        return Err(Refusal::Value);
    }
    if histogram.scale > FINEST {
        coarsen(&mut histogram, FINEST)?;
    }
    fit(&mut histogram)?;
    Ok(histogram)
}

/// Adds one to what is known. Examples are the newer ones.
pub(super) fn add(known: &mut Exponential, added: Exponential) -> Result<(), Refusal> {
    let mut added = added;
    let scale = known.scale.min(added.scale);
    coarsen(known, scale)?;
    coarsen(&mut added, scale)?;
    share_zero(known, &mut added);
    known.positive = together(&known.positive, &added.positive)?;
    known.negative = together(&known.negative, &added.negative)?;
    let sums = |one: u64, other: u64| one.checked_add(other).ok_or(Refusal::Value);
    known.zero_count = sums(known.zero_count, added.zero_count)?;
    known.count = sums(known.count, added.count)?;
    known.sum = known.sum.zip(added.sum).map(|(one, other)| one + other);
    known.exemplars = added.exemplars;
    fit(known)
}

/// Where a bucket ends.
pub(super) fn end(index: i64, scale: i32) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "indexes are far below 2^53, as they come from 32 bits"
    )]
    let index = (index + 1) as f64;
    (index * f64::from(-scale).exp2()).exp2()
}

fn is_a_number(side: &Buckets, scale: i32) -> bool {
    let last = i64::from(side.offset) + side.counts.len() as i64 - 1;
    // The last bucket may end beyond the largest number, as long as it begins below it.
    end(last - 1, scale).is_finite() && end(i64::from(side.offset), scale) > 0.0
}

fn trimmed(mut side: Buckets) -> Buckets {
    let leading = side.counts.iter().take_while(|count| **count == 0).count();
    if leading == side.counts.len() {
        return Buckets::default();
    }
    side.counts.drain(..leading);
    side.offset = side.offset.saturating_add_unsigned(leading as u32);
    let trailing = side
        .counts
        .iter()
        .rev()
        .take_while(|count| **count == 0)
        .count();
    side.counts.truncate(side.counts.len() - trailing);
    side
}

fn coarsen(histogram: &mut Exponential, scale: i32) -> Result<(), Refusal> {
    let steps = histogram.scale.saturating_sub(scale);
    if steps <= 0 {
        return Ok(());
    }
    histogram.positive = coarser(&histogram.positive, steps)?;
    histogram.negative = coarser(&histogram.negative, steps)?;
    histogram.scale = scale;
    Ok(())
}

/// Every step puts two buckets into one.
fn coarser(side: &Buckets, steps: i32) -> Result<Buckets, Refusal> {
    let steps = steps.min(31);
    let place = |index: usize| (i64::from(side.offset) + index as i64) >> steps;
    let first = place(0);
    let mut counts: Vec<u64> = Vec::new();
    for (index, count) in side.counts.iter().enumerate() {
        let at = usize::try_from(place(index) - first).map_err(|_| Refusal::Buckets)?;
        if at >= counts.len() {
            counts.resize(at + 1, 0);
        }
        if let Some(place) = counts.get_mut(at) {
            *place = place.checked_add(*count).ok_or(Refusal::Value)?;
        }
    }
    Ok(Buckets {
        offset: i32::try_from(first).map_err(|_| Refusal::Buckets)?,
        counts,
    })
}

/// Makes it as coarse as it has to be.
fn fit(histogram: &mut Exponential) -> Result<(), Refusal> {
    while histogram
        .positive
        .counts
        .len()
        .max(histogram.negative.counts.len())
        > MOST
    {
        if histogram.scale <= COARSEST {
            return Err(Refusal::Buckets);
        }
        coarsen(histogram, histogram.scale - 1)?;
    }
    Ok(())
}

fn together(one: &Buckets, other: &Buckets) -> Result<Buckets, Refusal> {
    if one.counts.is_empty() {
        return Ok(other.clone());
    }
    if other.counts.is_empty() {
        return Ok(one.clone());
    }
    let first = one.offset.min(other.offset);
    let end = |side: &Buckets| i64::from(side.offset) + side.counts.len() as i64;
    let length = end(one).max(end(other)) - i64::from(first);
    // Two far apart are made coarser before they are laid side by side, so that nobody can ask for all memory.
    if length > 1 << 16 {
        return Err(Refusal::Buckets);
    }
    let mut counts = vec![0_u64; usize::try_from(length).map_err(|_| Refusal::Buckets)?];
    for side in [one, other] {
        let from = usize::try_from(i64::from(side.offset) - i64::from(first));
        let places = counts.iter_mut().skip(from.map_err(|_| Refusal::Buckets)?);
        for (place, count) in places.zip(&side.counts) {
            *place = place.checked_add(*count).ok_or(Refusal::Value)?;
        }
    }
    Ok(Buckets {
        offset: first,
        counts,
    })
}

/// Both have the same zero afterwards. A bucket that it cuts is zero as a whole.
fn share_zero(one: &mut Exponential, other: &mut Exponential) {
    let mut threshold = one.zero_threshold.max(other.zero_threshold);
    loop {
        let cut = [&*one, &*other]
            .into_iter()
            .flat_map(|histogram| {
                [&histogram.positive, &histogram.negative].map(|side| (histogram.scale, side))
            })
            .find_map(|(scale, side)| cut_by(side, scale, threshold));
        match cut {
            Some(end) => threshold = end,
            None => break,
        }
    }
    for histogram in [one, other] {
        let scale = histogram.scale;
        let swallowed = swallow(&mut histogram.positive, scale, threshold)
            + swallow(&mut histogram.negative, scale, threshold);
        histogram.zero_count = histogram.zero_count.saturating_add(swallowed);
        histogram.zero_threshold = threshold;
    }
}

/// The end of the bucket with something in it that begins below the threshold and ends above.
fn cut_by(side: &Buckets, scale: i32, threshold: f64) -> Option<f64> {
    let indexes = i64::from(side.offset)..;
    let mut filled = indexes.zip(&side.counts).filter(|(_, count)| **count > 0);
    filled.find_map(|(index, _)| {
        let to = end(index, scale);
        (end(index - 1, scale) < threshold && to > threshold).then_some(to)
    })
}

/// Takes away what lies within the threshold.
fn swallow(side: &mut Buckets, scale: i32, threshold: f64) -> u64 {
    let indexes = i64::from(side.offset)..;
    let within = indexes
        .zip(&side.counts)
        .take_while(|(index, _)| end(*index, scale) <= threshold)
        .count();
    let swallowed = side.counts.drain(..within).fold(0, u64::saturating_add);
    side.offset = side.offset.saturating_add_unsigned(within as u32);
    *side = trimmed(std::mem::take(side));
    swallowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point<'a>(scale: i32, offset: i32, counts: &'a [u64]) -> Scaled<'a> {
        Scaled {
            scale,
            count: counts.iter().sum(),
            sum: Some(1.0),
            zero_threshold: 0.0,
            zero_count: 0,
            positive: (offset, counts),
            negative: (0, &[]),
        }
    }

    fn positive(histogram: &Exponential) -> (i32, i32, &[u64]) {
        let Buckets { offset, counts } = &histogram.positive;
        (histogram.scale, *offset, counts)
    }

    #[test]
    fn finer_than_prometheus_is_made_coarser_without_counting_twice() {
        let kept = of(&point(9, 1, &[5, 3, 2])).unwrap();
        assert_eq!(positive(&kept), (8, 0, &[5, 5][..]));
        let kept = of(&point(9, -3, &[1, 2, 3])).unwrap();
        assert_eq!(positive(&kept), (8, -2, &[1, 5][..]));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let good = point(0, 0, &[1, 2]);
        let refused = |change: fn(&mut Scaled<'_>)| {
            let mut point = good;
            change(&mut point);
            of(&point).unwrap_err()
        };
        assert_eq!(refused(|point| point.scale = -5), Refusal::Buckets);
        assert_eq!(refused(|point| point.scale = 21), Refusal::Buckets);
        assert_eq!(refused(|point| point.count = 2), Refusal::Buckets);
        assert_eq!(
            refused(|point| point.zero_threshold = -1.0),
            Refusal::Buckets
        );
        assert_eq!(refused(|point| point.positive.0 = 2_000), Refusal::Buckets);
        assert_eq!(
            refused(|point| point.positive.0 = i32::MIN),
            Refusal::Buckets
        );
        assert_eq!(refused(|point| point.sum = None), Refusal::Value);
        let mut no_numbers = good;
        no_numbers.count = 4;
        assert_eq!(of(&no_numbers).unwrap().count, 4);
    }

    #[test]
    fn too_many_buckets_are_made_coarser() {
        let kept = of(&point(8, 0, &[1; 400])).unwrap();
        let (scale, offset, counts) = positive(&kept);
        assert_eq!((scale, offset, counts.len()), (6, 0, 100));
        assert!(counts.iter().all(|count| *count == 4));
    }

    #[test]
    fn those_of_different_scale_and_place_add_up() {
        let mut known = of(&point(1, 2, &[1, 1])).unwrap();
        add(&mut known, of(&point(0, -1, &[7])).unwrap()).unwrap();
        assert_eq!(positive(&known), (0, -1, &[7, 0, 2][..]));
        assert_eq!((known.count, known.sum), (9, Some(2.0)));
    }

    #[test]
    fn a_wider_zero_swallows_whole_buckets() {
        let mut known = of(&point(0, 0, &[1, 2, 4])).unwrap(); // (1,2] (2,4] (4,8]
        let mut other = point(0, 5, &[8]);
        (other.zero_threshold, other.zero_count, other.count) = (3.0, 1, 9);
        add(&mut known, of(&other).unwrap()).unwrap();
        assert_eq!(known.zero_threshold, 4.0);
        assert_eq!(known.zero_count, 4);
        assert_eq!(positive(&known), (0, 2, &[4, 0, 0, 8][..]));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_invented(
            scales in (COARSEST..=12, COARSEST..=12),
            offsets in (-40..40_i32, -40..40_i32),
            one in proptest::collection::vec(0..9_u64, 0..200),
            other in proptest::collection::vec(0..9_u64, 0..200),
        ) {
            // Far from zero a coarse bucket lies beyond all numbers.
            let near = |scale: i32, offset: i32| if scale < 0 { 0 } else { offset };
            let given = [point(scales.0, near(scales.0, offsets.0), &one), point(scales.1, near(scales.1, offsets.1), &other)];
            let [Ok(mut known), Ok(added)] = [of(&given[0]), of(&given[1])] else { return Ok(()) };
            let all = known.count + added.count;
            add(&mut known, added).unwrap();
            let counted: u64 = known.positive.counts.iter().sum::<u64>() + known.zero_count;
            prop_assert_eq!(counted, all);
            prop_assert_eq!(known.count, all);
            prop_assert!(known.positive.counts.len() <= MOST);
        }
    }
}
