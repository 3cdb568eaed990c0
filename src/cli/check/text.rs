//! A report for people: each finding with its line and a mark under the place, then how much there is.

use std::fmt::Write;

use super::document::Place;
use super::report::{Count, Fault, Finding, Judged, Level, Report};
use crate::cli::shown::{Paint, Tone};

/// Characters of a line that are shown.
const WIDTH: usize = 160;
/// Characters that stand before a place far to the right.
const BEFORE: usize = 40;

/// The report as text.
pub(crate) fn text(report: &Report, paint: Paint) -> String {
    let lines = report.sources.iter();
    let lines = lines.map(|source| source.text.lines().collect()).collect();
    let page = Page {
        report,
        lines,
        paint,
    };
    let mut out = String::new();
    for fault in &report.faults {
        page.show_fault(&mut out, fault);
    }
    for judged in &report.judged {
        for finding in &judged.findings {
            page.show(&mut out, judged, finding);
        }
    }
    out + &summary(report, paint)
}

/// What is shown, and the lines of its texts.
struct Page<'a> {
    report: &'a Report,
    lines: Vec<Vec<&'a str>>,
    paint: Paint,
}

impl Page<'_> {
    fn show_fault(&self, out: &mut String, fault: &Fault) {
        let whose = fault.whose.as_ref().map(ToString::to_string);
        let head = format!("error[{}]", fault.reason);
        let head = self.paint.tone(Tone::Bad, &head);
        put(out, &format!("{head}: {}", fault.message));
        let at = (fault.source, fault.place);
        self.excerpt(out, at, whose.as_deref(), Tone::Bad);
    }

    fn show(&self, out: &mut String, judged: &Judged, finding: &Finding) {
        let Finding {
            level,
            rule: _,
            reason,
            field,
            message,
            place,
        } = finding;
        let (tone, paint) = (tone(*level), self.paint);
        let head = paint.tone(tone, &format!("{}[{reason}]", level.as_str()));
        let field = match field.is_empty() {
            true => String::new(),
            false => format!("{}: ", paint.tone(Tone::Strong, field)),
        };
        put(out, &format!("{head}: {field}{message}"));
        let whose = judged.whose.to_string();
        self.excerpt(out, (judged.source, *place), Some(&whose), tone);
    }

    /// The place, the line that it is in and a mark under it.
    fn excerpt(
        &self,
        out: &mut String,
        (source, place): (usize, Place),
        whose: Option<&str>,
        tone: Tone,
    ) {
        let (name, number) = (self.report.source_name(source), place.line.to_string());
        let dim = |text: &str| self.paint.tone(Tone::Dim, text);
        let margin = " ".repeat(number.len());
        let whose = whose.map_or(String::new(), |whose| format!(" ({whose})"));
        let at = format!("{name}:{}:{}{whose}", place.line, place.column);
        put(out, &format!("{margin}{} {}", dim("-->"), shown(&at)));
        let lines = self.lines.get(source);
        let line = lines.and_then(|lines| lines.get(place.line.saturating_sub(1)));
        if let Some((line, before, width)) = line.map(|line| window(line, place)) {
            let mark = self.paint.tone(tone, &"^".repeat(width));
            put(out, &format!("{} {} {line}", dim(&number), dim("|")));
            let before = " ".repeat(before);
            put(out, &format!("{margin} {} {before}{mark}", dim("|")));
        }
        out.push('\n');
    }
}

const fn tone(level: Level) -> Tone {
    match level {
        Level::Error => Tone::Bad,
        Level::Warning => Tone::Warn,
        Level::Note => Tone::Dim,
    }
}

/// The part of a line around a place, the characters before the place, and how many it has there.
fn window(line: &str, place: Place) -> (String, usize, usize) {
    let column = place.column.saturating_sub(1);
    let skipped = match column > WIDTH - BEFORE {
        true => column - BEFORE,
        false => 0,
    };
    let part: String = line.chars().skip(skipped).take(WIDTH).collect();
    let part = shown(part.trim_end());
    let before = column - skipped;
    let room = part.chars().count().saturating_sub(before);
    (part, before, place.width.min(room).max(1))
}

/// One character for each that would steer the terminal.
fn shown(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(plain).collect()
}

fn put(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// The last line: how much was looked at and found.
fn summary(report: &Report, paint: Paint) -> String {
    let Count {
        errors,
        warnings,
        notes,
    } = report.count();
    let refused = report.judged.iter().filter(|judged| judged.is_refused());
    let refused = refused.count();
    let mut text = format!(
        "{} in {}: ",
        counted(report.judged.len(), "object"),
        counted(report.sources.len(), "file")
    );
    let all_good = refused == 0 && report.faults.is_empty();
    text += &match (all_good, refused) {
        (true, _) => paint.tone(Tone::Good, "all would be accepted"),
        (false, 0) => paint.tone(Tone::Bad, "not everything could be read"),
        (false, refused) => paint.tone(Tone::Bad, &format!("{refused} would be refused")),
    };
    let found = [
        (errors, "error"),
        (warnings, "warning"),
        (notes, "note"),
        (report.faults.len(), "unreadable document"),
        (report.others, "document of other kinds passed over"),
    ];
    for (count, what) in found.into_iter().filter(|(count, _)| *count > 0) {
        // Writing to a text does not fail.
        let _ = write!(text, ", {}", counted(count, what));
    }
    text + "\n"
}

fn counted(count: usize, what: &str) -> String {
    match (count, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        (_, Some(("document", rest))) => format!("{count} documents {rest}"),
        (_, Some((first, rest))) => format!("{count} {first} {rest}s"),
        (_, None) => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(column: usize, width: usize) -> Place {
        Place {
            line: 1,
            column,
            width,
        }
    }

    #[test]
    fn a_mark_stays_under_its_place() {
        assert_eq!(window("a: bcd  ", place(4, 3)), ("a: bcd".to_owned(), 3, 3));
        assert_eq!(window("a: bcd", place(4, 900)).2, 3);
        assert_eq!(
            window("a:\u{1b}[2Jä", place(3, 0)),
            ("a: [2Jä".to_owned(), 2, 1)
        );
        assert_eq!(window("", place(1, 0)), (String::new(), 0, 1));
        let far = format!("{}{}", "x".repeat(500), "y".repeat(500));
        let (part, before, width) = window(&far, place(501, 3));
        assert_eq!((part.chars().count(), before, width), (WIDTH, BEFORE, 3));
        assert_eq!(part.chars().nth(before), Some('y'));
    }
}
