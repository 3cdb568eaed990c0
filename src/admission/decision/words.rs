//! A decision in sentences: the message of a refusal, and warnings within what the API server passes on.

use crate::api::object::cause::{Cause, quoted};
use crate::api::object::references::Reference;
use crate::api::policy::Mode;
use crate::api::text::sanitise::NOTE_LIMIT;

use super::Decision;

/// Bytes of a refusal's message. `kubectl create` shows nothing else, so all faults that are told at all fit in.
const MESSAGE: usize = 128 * 1024;
/// Bytes of the note of an Event.
const NOTE: usize = NOTE_LIMIT;
/// Warnings per answer.
const WARNINGS: usize = 16;
/// Characters of one warning; the API server may cut longer ones. All of them together stay below the 4096 beyond
/// which it drops them.
const WARNING: usize = 240;

/// All causes in one text, one per line if there are several.
pub fn message<'a>(causes: impl Iterator<Item = &'a Cause>) -> String {
    within(MESSAGE, causes)
}

/// The same, as short as an Event must be.
pub fn note<'a>(causes: impl Iterator<Item = &'a Cause>) -> String {
    within(NOTE, causes)
}

fn within<'a>(limit: usize, causes: impl Iterator<Item = &'a Cause>) -> String {
    let lines: Vec<String> = causes.map(line).collect();
    match lines.as_slice() {
        [only] => cut(only, limit),
        lines => listed(lines, limit),
    }
}

fn listed(lines: &[String], limit: usize) -> String {
    let mut text = format!("{} faults:", lines.len());
    for (told, line) in lines.iter().enumerate() {
        // Room for the last line, which says how many are not told.
        if text.len() + line.len() + 64 > limit {
            text.push_str(&format!("\n* and {} more", lines.len() - told));
            break;
        }
        text.push_str("\n* ");
        text.push_str(line);
    }
    text
}

/// One cause as kubectl writes it.
fn line(cause: &Cause) -> String {
    let field = cause.field.to_string();
    match field.is_empty() {
        true => cause.message.clone(),
        false => format!("{field}: {}", cause.message),
    }
}

/// What the user is told beside the verdict: broken rules that refuse nothing, then what is merely worth knowing.
pub fn warnings(decision: &Decision) -> Vec<String> {
    let broken = decision.with_mode(Mode::Warn).map(line);
    let missing = decision.missing.iter();
    let missing = missing.map(|missing| format!("{}: {}", missing.at, awaited(missing)));
    let mut all: Vec<String> = broken.chain(missing).collect();
    all.extend(decision.notes.iter().cloned());
    let beyond = all.len().saturating_sub(WARNINGS);
    if beyond > 0 {
        all.truncate(WARNINGS - 1);
        all.push(format!("and {} more warnings", beyond + 1));
    }
    all.iter().map(|text| warning(text)).collect()
}

/// An object that is not there yet is worth a word and no more: `kubectl apply -f folder` has no order.
pub fn awaited(missing: &Reference) -> String {
    let Reference { kind, name, .. } = missing;
    format!("there is no {kind} {} yet; this waits for it", quoted(name))
}

/// On one line and without control characters, which would lose the warning.
fn warning(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    cut(&plain, WARNING)
}

/// The beginning of a text, at most so many bytes.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut ends = (0..=limit.saturating_sub(3)).rev();
    let shown = ends.find_map(|end| text.get(..end));
    format!("{}...", shown.unwrap_or_default())
}
