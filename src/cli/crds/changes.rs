//! How a definition in the cluster differs from ours. Pure: two values in, a list of changes out.

use serde_json::Value;

use crate::cli::shown::{Paint, Tone, plain};

/// Changes of one definition that are shown; the others are counted.
const SHOWN: usize = 20;

/// Letters of a value that are shown.
const LETTERS: usize = 60;

/// One field that differs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// How a definition in the cluster stands to ours.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing {
    /// It is not there.
    Missing,
    /// It is as ours.
    Same,
    /// It would be changed.
    Differs(Vec<Change>),
    /// Objects are stored in versions that ours has not.
    Drops(Vec<String>),
}

/// Versions in which objects are stored and which would be gone.
pub(super) fn dropped(stored: &[String], wanted: &[String]) -> Vec<String> {
    let gone = stored.iter().filter(|version| !wanted.contains(version));
    gone.cloned().collect()
}

/// Every field that differs, in the order of their paths.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare("spec", Some(before), Some(after), &mut found);
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Change>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                compare(
                    &format!("{path}.{name}"),
                    old.get(name),
                    new.get(name),
                    found,
                );
            }
        }
        // Entries are told apart by their place; a list of plain words is one value.
        (Some(Value::Array(old)), Some(Value::Array(new)))
            if old.iter().chain(new).all(Value::is_object) =>
        {
            for at in 0..old.len().max(new.len()) {
                compare(&format!("{path}[{at}]"), old.get(at), new.get(at), found);
            }
        }
        (before, after) => found.push(Change {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// What a person is shown about one definition.
pub(super) fn text(name: &str, standing: &Standing, paint: Paint) -> String {
    let head = |tone, words: &str| {
        format!(
            "{} {}\n",
            paint.tone(Tone::Strong, name),
            paint.tone(tone, words)
        )
    };
    match standing {
        Standing::Missing => head(Tone::Warn, "is missing"),
        Standing::Same => head(Tone::Good, "is as it should be"),
        Standing::Drops(versions) => {
            let words = format!(
                "has objects stored as {}, which this program does not know",
                versions.join(", ")
            );
            head(Tone::Bad, &words)
        }
        Standing::Differs(changes) => {
            let words = match changes.len() {
                1 => "differs in 1 field".to_owned(),
                count => format!("differs in {count} fields"),
            };
            let mut text = head(Tone::Warn, &words);
            for change in changes.iter().take(SHOWN) {
                text += &line(change, paint);
            }
            if let Some(more) = changes.len().checked_sub(SHOWN).filter(|more| *more > 0) {
                text += &format!("  and {more} more\n");
            }
            text
        }
    }
}

fn line(change: &Change, paint: Paint) -> String {
    let Change {
        path,
        before,
        after,
    } = change;
    let line = match (before, after) {
        (None, Some(after)) => (Tone::Good, format!("+ {path}: {}", short(after))),
        (Some(before), None) => (Tone::Bad, format!("- {path}: {}", short(before))),
        (before, after) => {
            let value = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
            (
                Tone::Warn,
                format!("~ {path}: {} -> {}", value(before), value(after)),
            )
        }
    };
    format!("  {}\n", paint.tone(line.0, &line.1))
}

/// A value as far as it fits on a line.
fn short(value: &Value) -> String {
    let text = plain(&value.to_string());
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_that_differs_is_found_at_its_place() {
        let before = json!({"names": {"shortNames": ["a"]}, "versions": [{"name": "v1", "old": 1}], "same": 1});
        let after = json!({"names": {"shortNames": ["b"]}, "versions": [{"name": "v1", "new": {"x": 1}}, {"name": "v2"}], "same": 1});
        let text = text(
            "runs.x",
            &Standing::Differs(changes(&before, &after)),
            Paint::PLAIN,
        );
        let expected = "runs.x differs in 4 fields\n  \
            ~ spec.names.shortNames: [\"a\"] -> [\"b\"]\n  \
            + spec.versions[0].new: {\"x\":1}\n  \
            - spec.versions[0].old: 1\n  \
            + spec.versions[1]: {\"name\":\"v2\"}\n";
        assert_eq!(text, expected);
        assert_eq!(changes(&before, &before), []);
    }

    #[test]
    fn a_long_list_and_a_long_value_are_cut() {
        let many: serde_json::Map<_, _> = (0..30)
            .map(|n| (format!("f{n:02}"), json!("x".repeat(100))))
            .collect();
        let standing = Standing::Differs(changes(&json!({}), &Value::Object(many)));
        let text = text("runs.x", &standing, Paint::PLAIN);
        assert_eq!(text.lines().count(), 22);
        assert!(text.ends_with("  and 10 more\n"), "{text}");
        assert!(text.lines().all(|line| line.len() < 100), "{text}");
    }

    #[test]
    fn a_stored_version_that_is_not_ours_would_be_dropped() {
        let words = |all: &[&str]| {
            all.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let ours = words(&["v1alpha1"]);
        assert_eq!(dropped(&ours, &ours), words(&[]));
        assert_eq!(
            dropped(&words(&["v1alpha1", "v1beta1"]), &ours),
            words(&["v1beta1"])
        );
    }
}
