//! Lists as operators write them in one variable: a JSON array of texts, or texts separated by commas.

use thiserror::Error;

/// A text that starts like a JSON array and is none.
#[derive(Debug, Error)]
#[error("starts with '[' but is not a JSON array of texts; write [\"a\", \"b\"] or a, b")]
pub struct ListError {
    source: serde_json::Error,
}

/// The entries of a list, trimmed, without empty ones.
///
/// # Errors
///
/// When the text starts with `[` and is not a JSON array of texts. Reading it as a comma list would quietly give
/// entries with brackets and quotes in them, which match nothing.
pub fn parse_list(text: &str) -> Result<Vec<String>, ListError> {
    let text = text.trim();
    let entries = if text.starts_with('[') {
        serde_json::from_str(text).map_err(|source| ListError { source })?
    } else {
        text.split(',').map(str::to_owned).collect::<Vec<String>>()
    };
    Ok(entries
        .iter()
        .map(|entry| entry.trim().to_owned())
        .filter(|entry| !entry.is_empty())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_read() {
        for (text, expected) in [
            ("", vec![]),
            (" , ,", vec![]),
            ("a", vec!["a"]),
            ("a, b ,,c", vec!["a", "b", "c"]),
            ("[]", vec![]),
            (r#" ["a", " b ", ""] "#, vec!["a", "b"]),
            (r#"["a,b"]"#, vec!["a,b"]),
        ] {
            assert_eq!(parse_list(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn half_a_json_array_is_an_error_for_people() {
        for text in ["[a, b]", r#"["a""#, "[1]", r#"["a"] x"#] {
            let error = parse_list(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                "starts with '[' but is not a JSON array of texts; write [\"a\", \"b\"] or a, b",
                "{text}"
            );
        }
    }
}
