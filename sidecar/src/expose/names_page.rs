//! What OTLP calls a metric and what Prometheus gets to see, for people who look for it: as a page and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

/// The most rows of a page; the rest is counted.
const MOST: usize = 10_000;

/// One metric as it came in, and what became of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NameRow {
    /// What it was called.
    pub original: String,
    /// Its unit, as it came.
    pub unit: String,
    /// What it is.
    pub kind: String,
    /// What it is called on the page, by the strategy in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposed: Option<String>,
    /// How many series it has.
    pub series: u64,
    /// What else wants this name, or says something else about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// Why points of it were refused, and how many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

/// Points that were refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The reason.
    pub reason: String,
    /// How many.
    pub points: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    names: &'a [NameRow],
    left_out: usize,
}

fn shown(rows: &mut [NameRow]) -> (&[NameRow], usize) {
    rows.sort_unstable();
    let (shown, rest) = rows.split_at(rows.len().min(MOST));
    (shown, rest.len())
}

/// All names as JSON, by original name.
pub fn json(mut rows: Vec<NameRow>) -> Result<Vec<u8>, serde_json::Error> {
    let (names, left_out) = shown(&mut rows);
    serde_json::to_vec_pretty(&Document { names, left_out })
}

/// All names as a page for people, by original name. Loads nothing and runs nothing.
pub fn html(mut rows: Vec<NameRow>) -> String {
    let (names, left_out) = shown(&mut rows);
    let mut page = String::from(HEAD);
    for row in names {
        cells(row, &mut page);
    }
    page.push_str("</table>\n");
    if left_out > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<p>{left_out} more are not shown.</p>");
    }
    page.push_str("</body></html>\n");
    page
}

const HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Names of metrics</title>
<style>body{font-family:sans-serif}table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .5em;\
text-align:left;vertical-align:top}td.bad{background:#fdd}</style></head><body>
<h1>Names of metrics</h1>
<table><tr><th>OTLP name</th><th>Unit</th><th>Kind</th><th>Name on the page</th><th>Series</th><th>Conflicts</th><th>Refused</th></tr>
";

fn cells(row: &NameRow, page: &mut String) {
    let refusals = row
        .refusals
        .iter()
        .map(|refusal| format!("{} \u{d7} {}", refusal.points, refusal.reason));
    let refusals: Vec<_> = refusals.collect();
    let exposed = row.exposed.as_deref().unwrap_or_default();
    let series = row.series.to_string();
    let cells: [(&str, bool); 7] = [
        (&row.original, false),
        (&row.unit, false),
        (&row.kind, false),
        (exposed, row.exposed.is_none()),
        (&series, false),
        (&row.conflicts.join("\n"), !row.conflicts.is_empty()),
        (&refusals.join("\n"), !refusals.is_empty()),
    ];
    page.push_str("<tr>");
    for (text, is_bad) in cells {
        page.push_str(if is_bad { "<td class=\"bad\">" } else { "<td>" });
        plain(text, page);
        page.push_str("</td>");
    }
    page.push_str("</tr>\n");
}

/// Text as text: whatever a program calls its metrics, nothing of it is markup.
fn plain(text: &str, page: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            '\n' => page.push_str("<br>"),
            other => page.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(original: &str) -> NameRow {
        NameRow {
            original: original.to_owned(),
            unit: "s".to_owned(),
            kind: "histogram".to_owned(),
            exposed: Some("http_duration_seconds".to_owned()),
            series: 3,
            conflicts: Vec::new(),
            refusals: Vec::new(),
        }
    }

    fn refused() -> NameRow {
        NameRow {
            exposed: None,
            conflicts: vec!["also a gauge".to_owned()],
            refusals: vec![Refusal {
                reason: "type conflict".to_owned(),
                points: 7,
            }],
            ..row("<script>\"&'")
        }
    }

    #[test]
    fn names_are_sorted_and_complete_as_json() {
        let document = json(vec![row("http.duration"), refused()]).expect("json");
        let document: serde_json::Value = serde_json::from_slice(&document).expect("json");
        let expected = serde_json::json!({
            "names": [
                {
                    "original": "<script>\"&'", "unit": "s", "kind": "histogram", "series": 3,
                    "conflicts": ["also a gauge"], "refusals": [{"reason": "type conflict", "points": 7}],
                },
                {
                    "original": "http.duration", "unit": "s", "kind": "histogram", "series": 3,
                    "exposed": "http_duration_seconds",
                },
            ],
            "leftOut": 0,
        });
        assert_eq!(document, expected);
    }

    #[test]
    fn no_name_is_markup() {
        let page = html(vec![row("http.duration"), refused()]);
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("<tr><td>&lt;script&gt;&quot;&amp;&#39;</td><td>s</td><td>histogram</td><td class=\"bad\"></td>"));
        assert!(page.contains("<td class=\"bad\">7 \u{d7} type conflict</td>"));
        assert!(page.contains("<td>http_duration_seconds</td><td>3</td><td></td><td></td></tr>"));
    }

    #[test]
    fn a_page_has_an_end() {
        let rows: Vec<_> = (0..MOST + 5).map(|at| row(&at.to_string())).collect();
        assert!(html(rows).contains("<p>5 more are not shown.</p>"));
    }
}
