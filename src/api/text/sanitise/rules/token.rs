//! Credentials that begin with a mark of their issuer, and JSON web tokens.

use std::ops::Range;

use super::run_until;

/// How a credential begins, and how many characters follow at the least.
const SHAPES: [(&str, usize); 41] = [
    ("AKIA", 12),
    ("ASIA", 12),
    ("ABIA", 12),
    ("ACCA", 12),
    ("AIza", 20),
    ("ya29.", 10),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("glptt-", 16),
    ("gldt-", 16),
    ("glrt-", 16),
    ("ATATT", 16),
    ("ATBB", 16),
    ("lin_api_", 16),
    ("lin_oauth_", 16),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxe.", 10),
    ("xoxo-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    ("sk-", 16),
    ("sk_live_", 10),
    ("rk_live_", 10),
    ("whsec_", 16),
    ("hf_", 16),
    ("nvapi-", 16),
    ("npm_", 16),
    ("pypi-", 16),
    ("dckr_pat_", 16),
    ("dop_v1_", 16),
    ("hvs.", 16),
    ("SG.", 16),
    ("eyJ", 12),
];

pub(super) fn shapes(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = run_until(bytes, at, |b| b.is_ascii_alphanumeric());
        at = match credential_at(text, start) {
            Some(Candidate { end, is_secret }) => {
                if is_secret {
                    found.push(start..end);
                }
                end
            }
            None => run_until(bytes, start, |b| !b.is_ascii_alphanumeric()),
        };
    }
}

/// No credential is shorter, so most words need not be compared with all of them.
const SHORTEST: usize = {
    let (mut shortest, mut at) = (usize::MAX, 0);
    while at < SHAPES.len() {
        let (prefix, least) = SHAPES[at];
        if prefix.len() + least < shortest {
            shortest = prefix.len() + least;
        }
        at += 1;
    }
    shortest
};

/// A byte of a credential.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/' | b'=' | b'~')
}

struct Candidate {
    end: usize,
    is_secret: bool,
}

/// What begins at `start` with the mark of an issuer and is long enough.
fn credential_at(text: &str, start: usize) -> Option<Candidate> {
    let bytes = text.as_bytes();
    let least = bytes.get(start..start + SHORTEST)?;
    if run_until(least, 0, |b| !is_part(b)) < SHORTEST {
        return None;
    }
    let rest = &bytes[start..];
    let begins = |prefix: &str| {
        rest.first() == prefix.as_bytes().first() && rest.starts_with(prefix.as_bytes())
    };
    let (prefix, least) = SHAPES.iter().find(|(prefix, _)| begins(prefix))?;
    let body = start + prefix.len();
    let end = run_until(bytes, body, |b| !is_part(b));
    let end = start + text[start..end].trim_end_matches('.').len();
    let body = bytes.get(body..end).filter(|body| body.len() >= *least)?;
    // Names may begin like this as well, but are written in small letters.
    let is_secret = body
        .iter()
        .any(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    Some(Candidate { end, is_secret })
}
