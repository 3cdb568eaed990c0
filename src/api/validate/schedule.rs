//! Schedule: times that come, in a zone that exists, for something that can be started.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{DateTime, date};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use thiserror::Error;

use super::SPEC;
use super::shared::check_name;
use crate::api::kind::Kind;
use crate::api::kinds::ScheduleSpec;
use crate::api::kinds::schedule::TargetRef;
use crate::api::object::cause::{Causes, Path, Reason, did_you_mean, listed, not_one_of, quoted};
use crate::api::text::duration::parse_duration;
use crate::api::text::names::Form;

/// Longest text that is read as cron; five fields with every value listed are shorter.
const LONGEST: usize = 512;

/// Shortest pause between two times.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// Kinds that a schedule can start.
const TARGETS: [Kind; 2] = [Kind::AgentRun, Kind::OrchestrationRun];

/// Why a text is no usable schedule, and what would be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CronError {
    /// A zone is named in the text.
    #[error("names a time zone; write the zone into timezone, and only the five fields here")]
    Zone,
    /// The text is longer than any schedule.
    #[error("is longer than {LONGEST} characters; write five short fields")]
    TooLong,
    /// The text is not cron.
    #[error(
        "is not cron; write five fields: minute, hour, day, month, weekday, e.g. \"0 6 * * 1\", or \"@daily\", or \"@every 90m\""
    )]
    Syntax,
    /// The pause is none.
    #[error("has a pause that cannot be kept; write one of a second or more, e.g. \"@every 90m\"")]
    Pause,
    /// No day has this date.
    #[error("never comes; write a day that its month has")]
    Never,
}

/// When something is to happen again and again.
#[derive(Clone, Debug)]
pub enum Timetable {
    /// At the times that five fields describe.
    Cron(Box<Cron>),
    /// After a pause, counted from the last time.
    Every(Duration),
}

/// Reads everything that CronJobs take: five fields, a nickname such as `@daily`, or `@every` and a pause. Beyond that,
/// 7 is a Sunday too, and `L`, `W` and `#` mean what they mean elsewhere.
///
/// # Errors
///
/// When the text is none of these, or never comes.
pub fn parse_timetable(text: &str) -> Result<Timetable, CronError> {
    if text.len() > LONGEST {
        return Err(CronError::TooLong);
    }
    if text.contains("TZ=") {
        return Err(CronError::Zone);
    }
    if let Some(pause) = text.trim().strip_prefix("@every ") {
        let pause = parse_duration(pause.trim()).filter(|pause| *pause >= SHORTEST_PAUSE);
        return pause.map(Timetable::Every).ok_or(CronError::Pause);
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    let cron = parser.parse(text).map_err(|_| CronError::Syntax)?;
    // Any start will do: the calendar repeats itself.
    let start: DateTime = date(2024, 1, 1).at(0, 0, 0, 0);
    cron.find_next_occurrence(&start, true)
        .map_err(|_| CronError::Never)?;
    Ok(Timetable::Cron(Box::new(cron)))
}

/// The time zone of this name, from the data that comes with the program. None for a name that does not exist.
pub fn parse_time_zone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

pub(super) fn check(causes: &mut Causes, spec: &ScheduleSpec) {
    if let Err(error) = parse_timetable(&spec.cron) {
        let message = format!("{} {error}", quoted(&spec.cron));
        causes.add(&SPEC.field("cron"), Reason::InvalidCron, message);
    }
    if let Some(zone) = &spec.timezone
        && parse_time_zone(zone).is_none()
    {
        causes.add(
            &SPEC.field("timezone"),
            Reason::InvalidTimeZone,
            no_such_zone(zone),
        );
    }
    check_target(causes, &SPEC.field("targetRef"), &spec.target_ref);
}

fn no_such_zone(zone: &str) -> String {
    let database = TimeZoneDatabase::bundled();
    let names: Vec<String> = database
        .available()
        .map(|name| name.as_str().to_owned())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hint = did_you_mean(zone, &names).map(|name| format!(" did you mean {}?", quoted(name)));
    format!(
        "{} is not a time zone;{} write a name of the IANA database, e.g. \"Europe/Berlin\"",
        quoted(zone),
        hint.unwrap_or_default()
    )
}

fn check_target(causes: &mut Causes, at: &Path<'_>, target: &TargetRef) {
    let known = TARGETS.map(Kind::as_str);
    match TARGETS
        .into_iter()
        .find(|kind| kind.as_str() == target.kind.trim())
    {
        None => causes.add(
            &at.field("kind"),
            Reason::UnsupportedTarget,
            match Kind::ALL
                .iter()
                .any(|kind| kind.as_str() == target.kind.trim())
            {
                true => format!(
                    "{} cannot be started by a schedule; allowed: {}",
                    quoted(&target.kind),
                    listed(&known)
                ),
                false => not_one_of(&target.kind, &known),
            },
        ),
        Some(kind) => {
            let right = kind.api_version();
            let given = target
                .api_version
                .as_deref()
                .filter(|given| !given.trim().is_empty());
            if let Some(given) = given.filter(|given| *given != right) {
                let message = format!(
                    "{} has no {kind}; write {} or leave it out",
                    quoted(given),
                    quoted(&right)
                );
                causes.add(&at.field("apiVersion"), Reason::UnsupportedTarget, message);
            }
        }
    }
    check_name(causes, &at.field("name"), &target.name, Form::DnsSubdomain);
    if let Some(namespace) = &target.namespace {
        check_name(causes, &at.field("namespace"), namespace, Form::DnsLabel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::validate::shared::testing::{brief, faults, with_spec};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn schedule(cron: &str, zone: Option<&str>) -> Value {
        let mut spec = json!({"cron": cron, "targetRef": {"kind": "AgentRun", "name": "nightly"}});
        if let Some(zone) = zone {
            spec["timezone"] = json!(zone);
        }
        spec
    }

    #[test]
    fn what_cronjobs_take_is_taken_and_what_never_comes_is_not() {
        for right in [
            "0 6 * * 1",
            "*/5 * * * *",
            "0 0 1,15 * *",
            "0 9-17 * * MON-FRI",
            "@daily",
            "@hourly",
            "@every 1h30m",
            "0 0 ? * SUN",
            "0 0 29 2 *",
            "0 0 * * 7",
            "  0 6 * * 1 ",
        ] {
            assert!(parse_timetable(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "* * * *",
            "* * * * * *",
            "61 * * * *",
            "* 25 * * *",
            "daily",
            "@yesterday",
            "0 0 31 2 *",
            "TZ=Europe/Berlin 0 6 * * 1",
            "CRON_TZ=UTC 0 6 * * 1",
            "0 6 * * 1; rm -rf",
            "@every",
            "@every soon",
            "@every 10ms",
            "@every -1h",
        ] {
            assert!(parse_timetable(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(
            parse_timetable(&"1,".repeat(400)),
            Err(CronError::TooLong)
        ));
    }

    #[test]
    fn zones_are_those_of_the_database() {
        for right in [
            "UTC",
            "Europe/Berlin",
            "America/Argentina/Buenos_Aires",
            "Etc/UTC",
        ] {
            assert!(parse_time_zone(right).is_some(), "{right}");
        }
        for wrong in [
            "",
            "Berlin",
            "Mars/Olympus",
            "+02:00",
            "CEST",
            "../../etc/passwd",
        ] {
            assert!(parse_time_zone(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn each_fault_of_a_schedule_is_named() {
        for (row, spec, expected) in [
            (
                "right",
                schedule("0 6 * * 1", Some("Europe/Berlin")),
                vec![],
            ),
            (
                "cron and zone",
                schedule("6 o'clock", Some("Nowhere")),
                vec!["spec.cron InvalidCron", "spec.timezone InvalidTimeZone"],
            ),
            (
                "target",
                json!({"cron": "@daily", "targetRef": {"kind": "ToolRun", "name": "", "namespace": "A"}}),
                vec![
                    "spec.targetRef.kind UnsupportedTarget",
                    "spec.targetRef.name Required",
                    "spec.targetRef.namespace InvalidName",
                ],
            ),
            (
                "target in the wrong group",
                json!({"cron": "@daily", "targetRef": {"apiVersion": "batch/v1", "kind": "AgentRun", "name": "n"}}),
                vec!["spec.targetRef.apiVersion UnsupportedTarget"],
            ),
        ] {
            assert_eq!(brief(Kind::Schedule, spec), expected, "{row}");
        }
    }

    #[test]
    fn a_refusal_says_what_was_probably_meant() {
        assert_eq!(
            faults(
                Kind::Schedule,
                &with_spec(schedule("0 0 30 2 *", Some("Europe/Berln")))
            ),
            [
                "spec.cron InvalidCron: \"0 0 30 2 *\" never comes; write a day that its month has",
                "spec.timezone InvalidTimeZone: \"Europe/Berln\" is not a time zone; did you mean \"Europe/Berlin\"? write a name of the IANA database, e.g. \"Europe/Berlin\"",
            ]
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_fall_over(text in "\\PC{0,40}", fields in "[0-9*/,LW#?+A-Z@ -]{0,30}") {
            let _ = parse_timetable(&text);
            let _ = parse_timetable(&fields);
            let _ = parse_time_zone(&text);
        }
    }
}
