//! The forms of names that Kubernetes checks, with the sentence that says what would be right.

/// Longest DNS label, label value and name part of a qualified name.
const LABEL: usize = 63;
/// Longest DNS subdomain.
const SUBDOMAIN: usize = 253;

/// A form that a name must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Name of a volume, a namespace or a Service.
    DnsLabel,
    /// Name of most objects.
    DnsSubdomain,
    /// Value of a label that says something, so not empty.
    LabelValue,
    /// Key of a label or annotation, or an extended resource: optional prefix, `/`, name.
    QualifiedName,
    /// Name of an environment variable.
    EnvName,
    /// Key of a parameter: must be usable in a template.
    ParameterKey,
}

impl Form {
    /// Whether the text has this form.
    pub fn fits(self, text: &str) -> bool {
        match self {
            Self::DnsLabel => is_dns_label(text),
            Self::DnsSubdomain => text.len() <= SUBDOMAIN && text.split('.').all(is_dns_part),
            Self::LabelValue => is_qualified_part(text),
            Self::QualifiedName => match text.split_once('/') {
                Some((prefix, name)) => Self::DnsSubdomain.fits(prefix) && is_qualified_part(name),
                None => is_qualified_part(text),
            },
            Self::EnvName => is_env_name(text),
            Self::ParameterKey => is_parameter_key(text),
        }
    }

    /// What would be right, as the end of a sentence.
    pub fn rule(self) -> &'static str {
        match self {
            Self::DnsLabel => {
                "use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends"
            }
            Self::DnsSubdomain => {
                "use at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part"
            }
            Self::LabelValue => {
                "use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            }
            Self::QualifiedName => {
                "use an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            }
            Self::EnvName => "use letters, digits, '_', '-' and '.', not starting with a digit",
            Self::ParameterKey => {
                "use at most 128 letters, digits, '_', '-', '.' and '/', starting with a letter, digit or '_'"
            }
        }
    }
}

fn is_dns_part(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(allowed) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL && is_dns_part(text)
}

fn is_qualified_part(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= LABEL
        && text.bytes().all(allowed)
        && edge(text.bytes().next())
        && edge(text.bytes().next_back())
}

fn is_env_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !text.is_empty()
        && text.len() <= SUBDOMAIN
        && text.bytes().all(allowed)
        && !text.as_bytes()[0].is_ascii_digit()
        && text != "."
        && !text.starts_with("..")
}

fn is_parameter_key(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    text.len() <= 128
        && text.bytes().all(allowed)
        && text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_held_to_their_form() {
        let longest = "a".repeat(63);
        let too_long = "a".repeat(64);
        let cases: [(Form, &[&str], &[&str]); 6] = [
            (
                Form::DnsLabel,
                &["a", "a-1", "0", &longest],
                &["", "A", "a.b", "-a", "a-", "ä", "a b", &too_long],
            ),
            (
                Form::DnsSubdomain,
                &["a", "a.b-c.d", &too_long],
                &["", ".", "a..b", "a.", "a.-b", "A", "a_b"],
            ),
            (
                Form::LabelValue,
                &["a", "A.b_c-D", &longest],
                &["", "-a", "a.", "a/b", "a b", "ä", &too_long],
            ),
            (
                Form::QualifiedName,
                &["a", "A_b", "example.com/A.b"],
                &["", "/a", "a/", "A/b", "a/b/c", &too_long],
            ),
            (
                Form::EnvName,
                &["A", "_a", "A_B.c-d"],
                &["", "1A", "A=B", "A B", ".", "..A"],
            ),
            (
                Form::ParameterKey,
                &["a", "issue_number", "team/name", "0"],
                &["", " a", "a b", "{{a}}", "-a", "ä"],
            ),
        ];
        for (form, right, wrong) in cases {
            for text in right {
                assert!(form.fits(text), "{form:?} should take {text:?}");
            }
            for text in wrong {
                assert!(!form.fits(text), "{form:?} should refuse {text:?}");
            }
        }
    }
}
