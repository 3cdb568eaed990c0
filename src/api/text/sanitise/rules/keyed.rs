//! Values whose name says that they are secret: `password=...`, `"apiKey": "..."`, `GITHUB_TOKEN: ...`, `--token ...`.

use std::ops::Range;

use super::{ends_word, is_done, run_until, skip_blanks};

/// Longest tail of a name that is looked at; longer names end like shorter ones.
const NAME_TAIL: usize = 48;

/// Names that are never followed by anything harmless.
const STRONG: [&str; 20] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "signingkey",
    "secretkeybase",
    "encryptionkey",
    "accountkey",
    "sharedkey",
    "clientsecret",
    "webhooksecret",
    "accesstoken",
    "refreshtoken",
    "authtoken",
    "sessiontoken",
    "connectionstring",
];

/// Names that are also ordinary words, as in `Secret: not found`: they count only where the text is clearly data.
const WEAK: [&str; 10] = [
    "secret",
    "token",
    "credential",
    "credentials",
    "auth",
    "session",
    "signature",
    "sig",
    "dsn",
    "pass",
];

pub(super) fn values(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at = run_until(bytes, at, |b| b == b'=' || b == b':');
        if at == bytes.len() {
            break;
        }
        let value = value_behind(text, at);
        at += 1;
        if let Some(range) = value {
            at = at.max(range.end);
            found.push(range);
        }
    }
}

/// The value behind a separator, if the name before it says that it is secret.
fn value_behind(text: &str, separator: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let name = name_before(bytes, separator)?;
    let written = &bytes[name.range.clone()];
    let is_assigned = bytes[separator] == b'=';
    let is_data = is_assigned || name.quoted || is_variable(written) || is_header(written);
    match name_is_secret(bytes, name.range, is_data) {
        true => value_at(text, skip_blanks(bytes, separator + 1)),
        false => None,
    }
}

/// `--token abc`: a blank instead of a sign.
pub(super) fn flags(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut end = 0;
    for (at, _) in text.match_indices("--") {
        if at < end {
            continue;
        }
        end = run_until(bytes, at, |b| !is_name(b));
        let value = skip_blanks(bytes, end);
        if end < value && ends_like_secret(&folded(&bytes[at..end]), true) {
            found.extend(value_at(text, value));
        }
    }
}

/// Where the value starts, if `name_end` is followed by a separator, with quotes and blanks allowed around it.
pub(super) fn value_after(bytes: &[u8], name_end: usize) -> Option<usize> {
    let quotes = run_until(bytes, name_end, |b| !is_quote(b));
    let separator = skip_blanks(bytes, quotes);
    let found = matches!(bytes.get(separator), Some(b':' | b'='));
    found.then(|| skip_blanks(bytes, separator + 1))
}

fn is_quote(byte: u8) -> bool {
    b"\"'\\".contains(&byte)
}

struct Name {
    range: Range<usize>,
    quoted: bool,
}

/// The name that ends before the separator.
fn name_before(bytes: &[u8], separator: usize) -> Option<Name> {
    let mut end = separator;
    while end > 0 && bytes[end - 1] == b' ' && separator - end < 2 {
        end -= 1;
    }
    let quoted = end > 0 && matches!(bytes[end - 1], b'"' | b'\'');
    while end > 0 && is_quote(bytes[end - 1]) && separator - end < 4 {
        end -= 1;
    }
    let tail = bytes[..end].iter().rev().take(NAME_TAIL);
    let length = tail.take_while(|b| is_name(**b)).count();
    let range = end - length..end;
    (length > 0).then_some(Name { range, quoted })
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn name_is_secret(bytes: &[u8], range: Range<usize>, is_data: bool) -> bool {
    let name = folded(&bytes[range.clone()]);
    if name == "value" {
        // An entry of an environment: {"name": "DB_PASSWORD", "value": "..."}.
        let gap = bytes[..range.start].iter().rev().take(16);
        let before = range.start - gap.take_while(|b| !b.is_ascii_alphanumeric()).count();
        return name_before(bytes, before).is_some_and(|name| {
            !bytes[name.range.clone()].iter().any(u8::is_ascii_lowercase)
                && ends_like_secret(&folded(&bytes[name.range]), true)
        });
    }
    ends_like_secret(&name, is_data)
}

fn ends_like_secret(name: &str, is_data: bool) -> bool {
    STRONG.iter().any(|end| name.ends_with(end))
        || (is_data && WEAK.iter().any(|end| name.ends_with(end)))
}

fn folded(name: &[u8]) -> String {
    let letters = name.iter().filter(|b| b.is_ascii_alphanumeric());
    letters
        .map(|b| char::from(b.to_ascii_lowercase()))
        .collect()
}

/// Written as the name of an environment variable.
fn is_variable(name: &[u8]) -> bool {
    name.contains(&b'_') && !name.iter().any(u8::is_ascii_lowercase)
}

/// Written as the name of a header.
fn is_header(name: &[u8]) -> bool {
    let is_custom = name.starts_with(b"x-");
    name.contains(&b'-') && (is_custom || name.first().is_some_and(u8::is_ascii_uppercase))
}

/// What Rust prints before a value that might not have been there.
const PRESENT: &str = "Some(";

/// A quoted value with its blanks, or a word.
fn value_at(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_optional = bytes[start..].starts_with(PRESENT.as_bytes());
    let start = start + if is_optional { PRESENT.len() } else { 0 };
    let escapes = run_until(bytes, start, |b| b != b'\\');
    let range = match bytes.get(escapes) {
        Some(quote @ (b'"' | b'\'')) => escapes + 1..closing_quote(bytes, escapes + 1, *quote),
        Some(_) => start..end_of_word(bytes, start),
        None => return None,
    };
    (!range.is_empty() && !is_done(&text[range.start..])).then_some(range)
}

/// Where a value without quotes ends: with its word, or at a sign behind which the word ends or the next value is named.
/// Other such signs may be part of a password.
fn end_of_word(bytes: &[u8], start: usize) -> usize {
    let end = run_until(bytes, start, ends_word);
    let mut signs = (start..end).filter(|at| b",;&".contains(&bytes[*at]));
    let last = signs.find(|at| {
        let next = run_until(&bytes[..end], at + 1, |b| !is_name(b));
        let is_named = matches!(bytes[..end].get(next), Some(b'=' | b':'));
        at + 1 == end || (next > at + 1 && is_named)
    });
    last.unwrap_or(end)
}

/// Where the quoted value ends. Inside text that was quoted itself every quote has a backslash, so there the first one
/// ends it.
fn closing_quote(bytes: &[u8], start: usize, quote: u8) -> usize {
    let is_nested = start >= 2 && bytes[start - 2] == b'\\';
    let mut at = start;
    while at < bytes.len() && bytes[at] != quote {
        let is_escape = bytes[at] == b'\\';
        if is_escape && is_nested {
            break;
        }
        at += if is_escape { 2 } else { 1 };
    }
    at.min(bytes.len())
}
