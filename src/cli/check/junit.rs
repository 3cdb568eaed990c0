//! A report as JUnit XML: a suite per file, a case per object.

use std::fmt::Write;

use super::report::{Finding, Judged, Level, Report};

/// The report as XML.
pub(crate) fn junit(report: &Report) -> String {
    let (mut suites, mut tests, mut failures) = (String::new(), 0, 0);
    for (index, source) in report.sources.iter().enumerate() {
        let judged: Vec<&Judged> = report
            .judged
            .iter()
            .filter(|judged| judged.source == index)
            .collect();
        let faults = report.faults.iter().filter(|fault| fault.source == index);
        let refused = judged.iter().filter(|judged| judged.is_refused()).count();
        let mut cases = String::new();
        let mut unreadable = 0;
        for fault in faults {
            let whose = fault.whose.as_ref().map(ToString::to_string);
            let name = whose.unwrap_or_else(|| format!("line {}", fault.place.line));
            let at = format!(
                "{}:{}:{}",
                source.name, fault.place.line, fault.place.column
            );
            let text = format!("{at}: {}", fault.message);
            open(&mut cases, &source.name, &name);
            element(&mut cases, "error", fault.reason, &text);
            cases.push_str("    </testcase>\n");
            unreadable += 1;
        }
        for judged in &judged {
            case(&mut cases, &source.name, judged);
        }
        let count = judged.len() + unreadable;
        let name = escaped(&source.name);
        // Writing to a text does not fail.
        let _ = write!(
            suites,
            "  <testsuite name=\"{name}\" tests=\"{count}\" failures=\"{refused}\" errors=\"{unreadable}\">\n{cases}  </testsuite>\n"
        );
        tests += count;
        failures += refused;
    }
    let errors = report.faults.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"agents check\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n{suites}</testsuites>\n"
    )
}

fn open(out: &mut String, file: &str, name: &str) {
    let (file, name) = (escaped(file), escaped(name));
    let _ = writeln!(out, "    <testcase classname=\"{file}\" name=\"{name}\">");
}

fn case(out: &mut String, file: &str, judged: &Judged) {
    open(out, file, &judged.whose.to_string());
    let found = judged.findings.iter();
    let (errors, rest): (Vec<&Finding>, Vec<&Finding>) =
        found.partition(|finding| finding.level == Level::Error);
    if let Some(first) = errors.first() {
        element(out, "failure", first.reason, &lines(file, &errors));
    }
    if !rest.is_empty() {
        let said = lines(file, &rest);
        let said = escaped(said.trim_end());
        let _ = writeln!(out, "      <system-out>{said}</system-out>");
    }
    out.push_str("    </testcase>\n");
}

fn lines(file: &str, findings: &[&Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let Finding {
            level,
            rule: _,
            reason,
            field,
            message,
            place,
        } = finding;
        let at = format!("{file}:{}:{}", place.line, place.column);
        let field = match field.is_empty() {
            true => String::new(),
            false => format!("{field}: "),
        };
        let _ = writeln!(text, "{at}: {}[{reason}]: {field}{message}", level.as_str());
    }
    text
}

/// An element with a text, whose first line is told apart.
pub(crate) fn element(out: &mut String, name: &str, sort: &str, text: &str) {
    let text = text.trim_end();
    let first = text.lines().next().unwrap_or_default();
    let (first, text) = (escaped(first), escaped(text));
    let _ = writeln!(
        out,
        "      <{name} type=\"{sort}\" message=\"{first}\">{text}</{name}>"
    );
}

/// A text within XML. Characters that XML cannot hold in any form become blanks.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_escapes() {
        assert_eq!(
            escaped("<a b=\"c\">&'\u{0}\u{1b}\u{ffff}ä</a>"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&apos;   ä&lt;/a&gt;"
        );
    }
}
