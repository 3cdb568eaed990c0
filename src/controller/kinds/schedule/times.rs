//! When a schedule is due. Pure; the clock of a time zone may jump, the times that are compared never do.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::api::validate::Timetable;

/// Times that are counted before there are too many to say how many.
pub(super) const MANY: usize = 100;

/// The latest time that has come after `last`, if any has.
pub(super) fn latest(
    table: &Timetable,
    zone: &TimeZone,
    last: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    match table {
        Timetable::Cron(cron) => {
            let now = whole_second(now).to_zoned(zone.clone());
            let found = cron.find_previous_occurrence(&now, true).ok()?.timestamp();
            (found > last).then_some(found)
        }
        Timetable::Every(pause) => after(last, *pause, pauses(last, *pause, now)?),
    }
}

/// The first time after now.
pub(super) fn next(
    table: &Timetable,
    zone: &TimeZone,
    last: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    match table {
        Timetable::Cron(cron) => {
            let now = now.to_zoned(zone.clone());
            Some(cron.find_next_occurrence(&now, false).ok()?.timestamp())
        }
        Timetable::Every(pause) => {
            let passed = pauses(last, *pause, now).unwrap_or(0);
            after(last, *pause, passed + 1)
        }
    }
}

/// How many times came between two others, up to [`MANY`].
pub(super) fn between(
    table: &Timetable,
    zone: &TimeZone,
    last: Timestamp,
    latest: Timestamp,
) -> usize {
    match table {
        Timetable::Cron(cron) => cron
            .iter_after(last.to_zoned(zone.clone()))
            .take(MANY)
            .take_while(|time| time.timestamp() < latest)
            .count(),
        Timetable::Every(pause) => {
            let passed = pauses(last, *pause, latest).unwrap_or(0);
            usize::try_from(passed - 1).unwrap_or(0).min(MANY)
        }
    }
}

/// How many whole pauses lie between two times; none if not even one does.
fn pauses(last: Timestamp, pause: Duration, now: Timestamp) -> Option<i64> {
    let pause = i64::try_from(pause.as_millis()).ok()?;
    let passed = (now.as_millisecond() - last.as_millisecond()).checked_div(pause)?;
    (passed > 0).then_some(passed)
}

fn after(last: Timestamp, pause: Duration, pauses: i64) -> Option<Timestamp> {
    let pause = i64::try_from(pause.as_millis()).ok()?;
    let time = pause
        .checked_mul(pauses)?
        .checked_add(last.as_millisecond())?;
    Timestamp::from_millisecond(time).ok()
}

fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::validate::{parse_time_zone, parse_timetable};

    /// The latest time, how many before it were passed over, and the next time.
    fn due(cron: &str, zone: &str, last: &str, now: &str) -> String {
        let table = parse_timetable(cron).unwrap();
        let zone = parse_time_zone(zone).unwrap();
        let (last, now): (Timestamp, Timestamp) = (last.parse().unwrap(), now.parse().unwrap());
        let coming = next(&table, &zone, last, now).unwrap();
        match latest(&table, &zone, last, now) {
            None => format!("nothing, then {coming}"),
            Some(due) => {
                let missed = between(&table, &zone, last, due);
                format!("{due} after {missed}, then {coming}")
            }
        }
    }

    #[test]
    fn the_latest_time_is_due_and_those_before_it_are_counted() {
        for (row, cron, zone, last, now, expected) in [
            (
                "not yet",
                "0 6 * * *",
                "UTC",
                "2026-01-01T06:00:00Z",
                "2026-01-02T05:59:59.9Z",
                "nothing, then 2026-01-02T06:00:00Z",
            ),
            (
                "to the second",
                "0 6 * * *",
                "UTC",
                "2026-01-01T06:00:00Z",
                "2026-01-02T06:00:00Z",
                "2026-01-02T06:00:00Z after 0, then 2026-01-03T06:00:00Z",
            ),
            (
                "a little late",
                "0 6 * * *",
                "UTC",
                "2026-01-01T06:00:00Z",
                "2026-01-02T06:00:00.25Z",
                "2026-01-02T06:00:00Z after 0, then 2026-01-03T06:00:00Z",
            ),
            (
                "three days late",
                "0 6 * * *",
                "UTC",
                "2026-01-01T06:00:00Z",
                "2026-01-04T12:00:00Z",
                "2026-01-04T06:00:00Z after 2, then 2026-01-05T06:00:00Z",
            ),
            (
                "years late",
                "* * * * *",
                "UTC",
                "2020-01-01T00:00:00Z",
                "2026-01-01T00:00:30Z",
                "2026-01-01T00:00:00Z after 100, then 2026-01-01T00:01:00Z",
            ),
            (
                "in a zone",
                "0 6 * * *",
                "Europe/Berlin",
                "2026-07-01T00:00:00Z",
                "2026-07-01T12:00:00Z",
                "2026-07-01T04:00:00Z after 0, then 2026-07-02T04:00:00Z",
            ),
            (
                "the day that has no half past two",
                "30 2 * * *",
                "Europe/Berlin",
                "2026-03-28T12:00:00Z",
                "2026-03-29T12:00:00Z",
                "2026-03-29T01:00:00Z after 0, then 2026-03-30T00:30:00Z",
            ),
            (
                "the day that has two",
                "30 2 * * *",
                "Europe/Berlin",
                "2026-10-24T12:00:00Z",
                "2026-10-25T12:00:00Z",
                "2026-10-25T00:30:00Z after 0, then 2026-10-26T01:30:00Z",
            ),
            (
                "every so often, not yet",
                "@every 90m",
                "UTC",
                "2026-01-01T00:00:00Z",
                "2026-01-01T01:00:00Z",
                "nothing, then 2026-01-01T01:30:00Z",
            ),
            (
                "every so often, late",
                "@every 90m",
                "UTC",
                "2026-01-01T00:00:00Z",
                "2026-01-01T05:00:00Z",
                "2026-01-01T04:30:00Z after 2, then 2026-01-01T06:00:00Z",
            ),
        ] {
            assert_eq!(due(cron, zone, last, now), expected, "{row}");
        }
    }
}
