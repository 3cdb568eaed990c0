//! Words that nobody would write: long, and changing between small letters, capitals and digits all the time.

use std::ops::Range;

use super::words;

/// Shorter words say too little to tell chance from a name.
const SHORTEST: usize = 20;
/// No name or path in Kubernetes is that long.
const LONGEST_NAME: usize = 256;

/// A byte of base64 in either alphabet; names and paths without dots are made of the same.
pub(in super::super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=')
}

pub(super) fn tokens(text: &str, found: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    for range in words(text, |b| !is_token(b)) {
        let token = &bytes[range.clone()];
        if token.len() < SHORTEST {
            continue;
        }
        let is_known = is_digest(&bytes[..range.start], token) || is_uuid(token);
        if token.len() > LONGEST_NAME || (!is_known && is_random(token)) {
            found.push(range);
        }
    }
}

fn is_digest(before: &[u8], token: &[u8]) -> bool {
    let hex = token.iter().all(u8::is_ascii_hexdigit);
    hex && ((before.ends_with(b"sha256:") && token.len() == 64)
        || (before.ends_with(b"sha512:") && token.len() == 128))
}

/// Objects are named by these.
fn is_uuid(token: &[u8]) -> bool {
    let groups = token.split(|b| *b == b'-').map(<[u8]>::len);
    groups.eq([8, 4, 4, 4, 12]) && token.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-')
}

fn is_random(token: &[u8]) -> bool {
    let mut whole = Profile::default();
    for run in token.split(|b| !b.is_ascii_alphanumeric()) {
        let profile = Profile::of(run);
        if profile.is_random_run() {
            return true;
        }
        whole = whole.plus(profile);
    }
    whole.is_random_mixture()
}

/// How many of each class a run of letters and digits has, and how often the class changes.
#[derive(Clone, Copy, Default)]
struct Profile {
    small: usize,
    capital: usize,
    digit: usize,
    changes: usize,
}

impl Profile {
    fn of(run: &[u8]) -> Self {
        let count = |class: fn(&u8) -> bool| run.iter().filter(|b| class(b)).count();
        let class = |b: &u8| (b.is_ascii_digit(), b.is_ascii_uppercase());
        Self {
            small: count(u8::is_ascii_lowercase),
            capital: count(u8::is_ascii_uppercase),
            digit: count(u8::is_ascii_digit),
            changes: run
                .windows(2)
                .filter(|pair| class(&pair[0]) != class(&pair[1]))
                .count(),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            small: self.small + other.small,
            capital: self.capital + other.capital,
            digit: self.digit + other.digit,
            changes: self.changes + other.changes,
        }
    }

    fn length(self) -> usize {
        self.small + self.capital + self.digit
    }

    /// Letters and digits in turn without any separator: hexadecimal, base32, base36, base62. A name with a date at
    /// its end changes once or twice.
    fn is_random_run(self) -> bool {
        self.length() >= SHORTEST
            && self.digit >= 2
            && self.small + self.capital >= 2
            && self.changes >= 4
    }

    /// Base64, whose separators may cut it into short runs. By chance the class changes at 5 or 6 of 10 places; where
    /// words are joined by capitals, at 2.
    fn is_random_mixture(self) -> bool {
        let changes_at = |per_cent: usize| self.changes * 100 >= self.length() * per_cent;
        let has_letters = self.small > 0 && self.capital > 0;
        let with_digits = self.digit > 0 && self.length() >= SHORTEST && changes_at(25);
        let letters_only = self.length() >= 32 && changes_at(35);
        has_letters && (with_digits || letters_only)
    }
}
