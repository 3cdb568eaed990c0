//! Makes text fit to leave the process: secrets masked, control characters gone, cut to a limit in bytes.
//!
//! One function for Event notes, condition messages and log lines. It does not decide what may be said: a message is best built from
//! a typed reason and fields that are known to be harmless, and this is the net below it.

mod known;
mod rules;
#[cfg(test)]
mod tests;

pub use known::Secrets;

use std::ops::Range;

/// Longest note of an Event, in bytes: the API server refuses more.
pub const NOTE_LIMIT: usize = 1024;

/// Longest message of a condition, in bytes: the limit of `metav1.Condition`.
pub const CONDITION_MESSAGE_LIMIT: usize = 32_768;

/// What stands where a secret was.
pub const MASK: &str = "[redacted]";

/// Text beyond this many bytes is not even looked at.
const MAX_INPUT: usize = 64 * 1024;

/// A mask can bring text together that only now looks like a secret; so rules run until nothing changes, at most this often.
const MAX_ROUNDS: usize = 8;

const ELLIPSIS: char = '…';

/// `text` without secrets and control characters, at most `limit` bytes, cut between words with an ellipsis.
///
/// `known` are values that must not appear whatever they look like, as they are or encoded. Everything else is found by
/// its shape. Takes time in proportion to the text. Doing it twice changes nothing.
pub fn sanitise(text: &str, known: &Secrets, limit: usize) -> String {
    let window = &text[..floor_char_boundary(text, MAX_INPUT)];
    let mut clean = window.to_owned();
    if window.len() < text.len() {
        clean = replace(window, find(window, known));
        drop_unfinished_tail(&mut clean, known.longest());
    }
    // What is cut can look like a secret where the whole did not, so it is looked at again.
    for _ in 0..MAX_ROUNDS {
        match settled(clean, known) {
            Some(text) if text.len() <= limit => return text,
            Some(text) => clean = cut(text, limit),
            None => break,
        }
    }
    cut(MASK.to_owned(), limit)
}

/// The text with everything masked that any rule finds, or nothing if each mask makes the next one necessary.
fn settled(mut text: String, known: &Secrets) -> Option<String> {
    for _ in 0..MAX_ROUNDS {
        let clean = printable(&replace(&text, find(&text, known)));
        if clean == text {
            return Some(text);
        }
        text = clean;
    }
    None
}

/// A text of a log line, which whoever writes the log cuts as long as it likes.
pub fn for_log(text: &str) -> String {
    sanitise(text, &Secrets::NONE, usize::MAX)
}

fn find(text: &str, known: &Secrets) -> Vec<Range<usize>> {
    let mut found = rules::find_all(text);
    known.find(text, &mut found);
    found
}

/// Puts one mask in place of every range or group of ranges that touch.
fn replace(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut masked_to = None;
    for Range { start, end } in ranges {
        if masked_to.is_none_or(|to| to < start) {
            out.push_str(&text[done..start]);
            out.push_str(MASK);
        }
        done = done.max(end);
        masked_to = Some(done);
    }
    out.push_str(&text[done..]);
    out
}

/// The text went on behind the window, so its end may be the first half of a secret that no rule could recognise.
fn drop_unfinished_tail(text: &mut String, longest_secret: usize) {
    let end = floor_char_boundary(text, text.len().saturating_sub(longest_secret));
    let word_start = text[..end].rfind(char::is_whitespace).unwrap_or(0);
    text.truncate(word_start);
    text.push(ELLIPSIS);
}

/// One line: each run of white space and of characters that steer a terminal or a reader's eye becomes one space.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control() || is_invisible(c)) {
        if !word.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
    }
    out
}

/// Zero-width characters and those that turn the direction of writing: they can make text read as what it is not.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Cuts neither a character, nor a mask, nor a word that a rule judged as a whole.
fn cut(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let mut end = floor_char_boundary(&text, limit.saturating_sub(ELLIPSIS.len_utf8()));
    let bytes = text.as_bytes();
    while end > 0 && rules::is_token(bytes[end - 1]) && rules::is_token(bytes[end]) {
        end -= 1;
    }
    let near = floor_char_boundary(&text, end.saturating_sub(MASK.len()));
    if let Some(start) = text[near..].find(MASK).map(|at| near + at)
        && start < end
        && end < start + MASK.len()
    {
        end = start;
    }
    text.truncate(text[..end].trim_end().len());
    if text.len() + ELLIPSIS.len_utf8() <= limit {
        text.push(ELLIPSIS);
    }
    text
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}
