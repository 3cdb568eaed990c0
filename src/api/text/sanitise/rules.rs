//! How secrets look: each rule marks the ranges of a text that it takes for one.
//!
//! Rules are independent of each other and run over the same text; what any of them marks is masked. No rule knows a
//! secret by heart; that is `known`.

mod keyed;
mod random;
mod token;

use std::ops::Range;

use super::{ELLIPSIS, MASK};

pub(super) use random::is_token;

type Rule = fn(&str, &mut Vec<Range<usize>>);

const RULES: [Rule; 9] = [
    pem,
    url,
    userinfo,
    header,
    bearer,
    keyed::values,
    keyed::flags,
    token::shapes,
    random::tokens,
];

pub(super) fn find_all(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for rule in RULES {
        rule(text, &mut found);
    }
    found
}

/// The range, grown to the whole token that it is part of.
pub(super) fn token_around(bytes: &[u8], Range { start, end }: Range<usize>) -> Range<usize> {
    let before = bytes[..start].iter().rev().take_while(|b| is_token(**b));
    let after = bytes[end..].iter().take_while(|b| is_token(**b));
    start - before.count()..end + after.count()
}

/// Ends a word that holds an address or a value: white space, quotes, angle brackets.
fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        0..=b' ' | 0x7f | b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\'
    )
}

/// The parts of a text between bytes that end a word.
fn words(text: &str, ends: impl Fn(u8) -> bool) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = run_until(bytes, at, |b| !ends(b));
        at = run_until(bytes, start, &ends);
        (start < at).then_some(start..at)
    })
}

/// Every rule goes through every byte with this, so it is written to be fast without the help of the compiler as well.
fn run_until(bytes: &[u8], start: usize, ends: impl Fn(u8) -> bool) -> usize {
    let mut at = start;
    while at < bytes.len() && !ends(bytes[at]) {
        at += 1;
    }
    at
}

fn skip_blanks(bytes: &[u8], start: usize) -> usize {
    run_until(bytes, start, |b| b != b' ' && b != b'\t')
}

/// Where a text was cut or masked before there is nothing left to hide.
fn is_done(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(ELLIPSIS) || rest.starts_with(MASK)
}

/// Keys and certificates in PEM; without an end marker, all the rest.
fn pem(text: &str, found: &mut Vec<Range<usize>>) {
    const BEGIN: &str = "-----BEGIN";
    const END: &str = "-----END";
    let mut at = 0;
    while let Some(start) = text[at..].find(BEGIN).map(|n| at + n) {
        let end = text[start..].find(END).map_or(text.len(), |n| {
            let label = start + n + END.len();
            text[label..]
                .find("-----")
                .map_or(text.len(), |n| label + n + 5)
        });
        found.push(start..end);
        at = end;
    }
}

/// User and password, query and fragment of a URL.
fn url(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    for word in words(text, ends_word) {
        let path_end = run_until(&bytes[..word.end], word.start, |b| b == b'?' || b == b'#');
        let last_at = text[word.start..path_end]
            .rfind('@')
            .map(|at| word.start + at);
        let mut has_scheme = false;
        for (scheme_end, separator) in text[word.start..path_end].match_indices("://") {
            has_scheme = true;
            let start = word.start + scheme_end + separator.len();
            let authority = text[start..path_end].split('/').next().unwrap_or_default();
            // A slash may stand unescaped in a password; then what follows the colon is no port.
            let odd_port = authority.rsplit_once(':').is_some_and(|(_, port)| {
                !port.ends_with(']') && !port.bytes().all(|b| b.is_ascii_digit())
            });
            let at = authority.rfind('@').map(|at| start + at);
            if let Some(at) = at.or(last_at.filter(|_| odd_port)).filter(|at| *at > start) {
                found.push(start..at);
            }
        }
        if has_scheme && path_end + 1 < word.end && !is_done(&text[path_end + 1..]) {
            found.push(path_end + 1..word.end);
        }
    }
}

/// `user:password@host` without a scheme, as in data source names; not `image:tag@sha256:...`.
fn userinfo(text: &str, found: &mut Vec<Range<usize>>) {
    for word in words(text, |b| ends_word(b) || b == b',' || b == b';') {
        if let Some(range) = userinfo_in(&text[word.clone()]) {
            found.push(word.start + range.start..word.start + range.end);
        }
    }
}

fn userinfo_in(word: &str) -> Option<Range<usize>> {
    let host = word.rfind('@')?;
    let behind = &word[host + 1..];
    let names_host = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
    let colon = word[..host].find(':')?;
    let start = word[..colon]
        .rfind(['/', '=', '(', '[', '{'])
        .map_or(0, |n| n + 1);
    let has_scheme = word[colon..].starts_with("://");
    let is_digest = behind.starts_with("sha256") || behind.starts_with("sha512");
    (names_host && !is_digest && !has_scheme && start < colon && colon + 1 < host)
        .then_some(start..host)
}

/// Headers that carry credentials: all to the end of the line or of the quotation.
fn header(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let lower = text.to_ascii_lowercase();
    for name in ["authorization", "cookie"] {
        let mut covered = 0;
        for (at, _) in lower.match_indices(name) {
            if at < covered {
                continue;
            }
            let Some(value) = keyed::value_after(bytes, at + name.len()) else {
                continue;
            };
            let quoted = matches!(bytes.get(value), Some(b'"' | b'\''));
            let start = value + usize::from(quoted);
            if !is_done(&text[start..]) {
                covered = run_until(bytes, start, |b| b"\"'\r\n".contains(&b));
                found.push(start..covered);
            }
        }
    }
}

/// The word after `Bearer` or `Basic`.
fn bearer(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let lower = text.to_ascii_lowercase();
    let schemes: [(_, Judge); 2] = [("bearer", is_no_prose), ("basic", is_encoded)];
    for (scheme, is_credential) in schemes {
        for (at, _) in lower.match_indices(scheme) {
            let gap = at + scheme.len();
            let start = skip_blanks(bytes, gap);
            if start == gap {
                continue;
            }
            let end = run_until(bytes, start, |b| ends_word(b) || b == b',');
            let value = &text[start..end];
            if !is_done(value) && is_credential(value) {
                found.push(start..end);
            }
        }
    }
}

type Judge = fn(&str) -> bool;

/// Not one of the words that people write after the name of a scheme.
fn is_no_prose(value: &str) -> bool {
    let word = value
        .trim_end_matches(['.', ':', ';', ')', ELLIPSIS])
        .to_ascii_lowercase();
    let word = word.strip_suffix('s').unwrap_or(&word);
    ![
        "token",
        "auth",
        "authentication",
        "authorization",
        "scheme",
        "credential",
    ]
    .contains(&word)
}

/// "Basic" is also an ordinary word, so what follows must look like base64.
fn is_encoded(value: &str) -> bool {
    let is_sign = |b: u8| b == b'=' || b.is_ascii_digit() || b.is_ascii_uppercase();
    value.len() >= 8 && value.bytes().any(is_sign) && is_no_prose(value)
}
