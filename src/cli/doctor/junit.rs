//! A report as JUnit XML: a suite per category, a case per check. What is written in XML is written as `agents check` does.

use std::fmt::Write;

use super::check::Verdict;
use super::report::{Done, Report};
use crate::cli::check::junit::{element, escaped};

/// The report as XML.
pub(crate) fn junit(report: &Report) -> String {
    let mut suites = String::new();
    for (name, done) in &report.parts {
        let failures = done.iter().filter(|one| is_failed(one)).count();
        let skipped = done.iter().filter(|one| is_skipped(one)).count();
        // Writing to a text does not fail.
        let _ = writeln!(
            suites,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">",
            done.len()
        );
        for one in done {
            case(&mut suites, name, one);
        }
        suites.push_str("  </testsuite>\n");
    }
    let count = report.count();
    let (tests, failures) = (report.all().count(), count.failed);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"agents doctor\" tests=\"{tests}\" failures=\"{failures}\">\n{suites}</testsuites>\n"
    )
}

fn is_failed(done: &Done) -> bool {
    matches!(done.verdict, Verdict::Bad(_))
}

fn is_skipped(done: &Done) -> bool {
    matches!(done.verdict, Verdict::Unseen(_) | Verdict::Beside(_))
}

fn case(out: &mut String, category: &str, done: &Done) {
    let Done { check, verdict } = done;
    let (said, hint, link) = (verdict.text(), check.hint, check.link);
    let advice = format!("{said}\n{hint}\nsee {link}");
    let id = check.id;
    let _ = writeln!(out, "    <testcase classname=\"{category}\" name=\"{id}\">");
    match verdict {
        Verdict::Bad(_) => element(out, "failure", id, &advice),
        Verdict::Warning(_) => {
            let _ = writeln!(out, "      <system-out>{}</system-out>", escaped(&advice));
        }
        Verdict::Unseen(_) | Verdict::Beside(_) => {
            let _ = writeln!(out, "      <skipped message=\"{}\"/>", escaped(said));
        }
        Verdict::Good(_) => {}
    }
    out.push_str("    </testcase>\n");
}
