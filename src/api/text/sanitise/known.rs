//! Secret values that are known by heart, in every form in which they could appear.

use std::fmt;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::rules;

/// A shorter value would mask ordinary words, and is no secret.
const SHORTEST: usize = 4;
/// A shorter line of a long value, such as a brace, says nothing.
const SHORTEST_LINE: usize = 8;
/// A shorter piece of base64 could be a word.
const SHORTEST_ENCODED: usize = 6;

/// Values that must never leave the process. Prints as their number only.
#[derive(Clone, Default)]
pub struct Secrets {
    plain: Vec<String>,
    encoded: Vec<String>,
}

impl Secrets {
    /// None known: only shapes are recognised.
    pub const NONE: Self = Self {
        plain: Vec::new(),
        encoded: Vec::new(),
    };

    /// Takes values as Secret objects hold them. White space around a value does not count; a value of several lines is
    /// also recognised by each line. Values of fewer than four bytes are left out.
    pub fn new<V: AsRef<[u8]>>(values: impl IntoIterator<Item = V>) -> Self {
        let mut secrets = Self::NONE;
        for value in values {
            secrets.add(value.as_ref().trim_ascii());
        }
        for forms in [&mut secrets.plain, &mut secrets.encoded] {
            forms.sort_unstable();
            forms.dedup();
        }
        secrets
    }

    fn add(&mut self, value: &[u8]) {
        if value.len() < SHORTEST {
            return;
        }
        self.encoded.extend(base64_forms(value));
        if let Ok(text) = std::str::from_utf8(value) {
            let lines = text.lines().map(str::trim);
            self.plain.extend(
                lines
                    .filter(|line| line.len() >= SHORTEST_LINE)
                    .map(str::to_owned),
            );
            self.plain
                .extend([text.to_owned(), percent_encoded(text), json_escaped(text)]);
        }
    }

    pub(super) fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        for form in &self.plain {
            found.extend(text.match_indices(form).map(|(at, hit)| at..at + hit.len()));
        }
        for form in &self.encoded {
            let mut covered = 0;
            for (at, hit) in text.match_indices(form) {
                if at >= covered {
                    let token = rules::token_around(text.as_bytes(), at..at + hit.len());
                    covered = token.end;
                    found.push(token);
                }
            }
        }
    }

    pub(super) fn longest(&self) -> usize {
        let forms = self.plain.iter().chain(&self.encoded);
        forms.map(String::len).max().unwrap_or(0)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.plain.len() + self.encoded.len())
    }
}

/// What base64 makes of the value wherever it starts in a longer text: three alignments, without the characters at
/// the seams, in both alphabets.
fn base64_forms(value: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for (shift, seam) in [(0, 0), (1, 2), (2, 3)] {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(value);
        let mut form = STANDARD_NO_PAD.encode(&shifted).split_off(seam);
        if shifted.len() % 3 != 0 {
            form.pop();
        }
        if form.len() >= SHORTEST_ENCODED {
            let url_safe = form.replace('+', "-").replace('/', "_");
            forms.extend([form, url_safe]);
        }
    }
    forms
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
