//! What the documents say about the checks, made from the checks themselves.

use std::collections::BTreeMap;

use super::alerts::Alert;
use super::check::{CATEGORIES, When};

/// All checks as a table for each category.
pub fn checks() -> String {
    let mut text = String::new();
    for category in CATEGORIES {
        text += &format!(
            "### {}\n\n| Check | What holds | If not | When | See |\n|---|---|---|---|---|\n",
            category.name
        );
        for check in category.checks {
            let when = match check.when {
                When::Before => "before",
                When::After => "after",
                When::Always => "always",
            };
            let link = check.link.trim_start_matches("docs/");
            text += &format!(
                "| `{}` | {} | {} | {when} | [{link}]({link}) |\n",
                check.id, check.title, check.hint
            );
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}

/// Where each check is explained, as paths in the repository.
pub fn links() -> BTreeMap<&'static str, &'static str> {
    let all = super::check::all();
    all.map(|check| (check.id, check.link)).collect()
}

/// The alerts that are known, with their runbooks.
pub fn runbooks() -> BTreeMap<&'static str, String> {
    let all = Alert::ALL.iter();
    all.map(|alert| (alert.name, alert.runbook())).collect()
}
