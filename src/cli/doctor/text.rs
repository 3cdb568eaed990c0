//! A report for people.

use std::fmt::Write;

use super::check::Verdict;
use super::report::{Count, Done, Report, Wanted};
use crate::cli::shown::{Paint, Tone, plain};

/// The report as text.
pub(crate) fn text(report: &Report, paint: Paint) -> String {
    let mut text = String::new();
    for (name, done) in &report.parts {
        let line = "-".repeat(name.chars().count());
        // Writing to a text does not fail.
        let _ = writeln!(text, "{}\n{line}", paint.tone(Tone::Strong, name));
        for one in done {
            text += &shown(one, paint);
        }
        text.push('\n');
    }
    if let Wanted::Alert(alert) = report.wanted {
        let _ = writeln!(text, "The runbook of {} is {}", alert.name, alert.runbook());
    }
    text + &summary(report.count())
}

fn shown(done: &Done, paint: Paint) -> String {
    let Done { check, verdict } = done;
    let (mark, tone) = match verdict {
        Verdict::Good(_) => ("\u{221a}", Tone::Good),
        Verdict::Warning(_) => ("\u{203c}", Tone::Warn),
        Verdict::Bad(_) => ("\u{d7}", Tone::Bad),
        Verdict::Unseen(_) => ("?", Tone::Warn),
        Verdict::Beside(_) => ("-", Tone::Dim),
    };
    let said = plain(verdict.text());
    let mark = paint.tone(tone, mark);
    if !verdict.is_finding() {
        let said = paint.tone(Tone::Dim, &format!("({said})"));
        return format!("{mark} {} {said}\n", check.title);
    }
    let (title, hint, link) = (check.title, check.hint, check.link);
    format!("{mark} {title}\n    {said}\n    hint: {hint}\n    see {link}\n")
}

fn summary(count: Count) -> String {
    let Count {
        good,
        warnings,
        failed,
        unknown,
        skipped,
    } = count;
    let found = match (failed, warnings) {
        (0, 0) => "Nothing was found".to_owned(),
        (failed, warnings) => format!("{failed} failed, {warnings} to look at"),
    };
    let mut text = format!("{found}: {good} as they should be");
    for (number, what) in [
        (unknown, "could not be looked at"),
        (skipped, "without a meaning here"),
    ] {
        if number > 0 {
            let _ = write!(text, ", {number} {what}");
        }
    }
    text + "\n"
}
