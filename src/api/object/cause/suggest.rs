//! Helps people see their mistake: the nearest allowed word, and given text shown safely.
//!
//! Nothing here decides whether a value is right.

/// Longest piece of a given value that a message repeats, in characters.
const SHOWN_CHARS: usize = 64;

/// Longest word that is compared, in bytes: comparing costs the product of both lengths.
const COMPARED: usize = 40;

/// The allowed word that was probably meant, ignoring case: at most a third of it differs.
pub fn did_you_mean<'a>(given: &str, allowed: &[&'a str]) -> Option<&'a str> {
    if given.len() > COMPARED {
        return None;
    }
    let given = given.to_lowercase();
    allowed
        .iter()
        .filter(|word| word.len() <= COMPARED)
        .map(|word| (strsim::osa_distance(&given, &word.to_lowercase()), *word))
        .filter(|(slips, word)| slips * 3 <= word.len().max(given.len()))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, word)| word)
}

/// "`Agnet` is not known; did you mean `Agent`? Allowed: `Agent`, `Tool`."
pub fn not_one_of(given: &str, allowed: &[&str]) -> String {
    let hint = match did_you_mean(given, allowed) {
        Some(word) => format!(" did you mean {}?", quoted(word)),
        None => String::new(),
    };
    format!(
        "{} is not known;{hint} allowed: {}",
        quoted(given),
        listed(allowed)
    )
}

/// The words in quotes, separated by commas.
pub fn listed(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(", ")
}

/// A given text in quotes, without control characters and cut to a readable length.
pub fn quoted(given: &str) -> String {
    let shown: String = given.chars().take(SHOWN_CHARS).collect();
    let cut = if shown.len() < given.len() { "..." } else { "" };
    format!("\"{}{cut}\"", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let kinds = ["AgentRun", "ToolRun", "ApprovalGate"];
        for (given, meant) in [
            ("AgnetRun", Some("AgentRun")),
            ("agentrun", Some("AgentRun")),
            ("Toolrn", Some("ToolRun")),
            ("AprovalGate", Some("ApprovalGate")),
            ("Pod", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(given, &kinds), meant, "{given}");
        }
    }

    #[test]
    fn a_refusal_names_what_is_allowed() {
        assert_eq!(
            not_one_of("gihub", &["github", "linear"]),
            r#""gihub" is not known; did you mean "github"? allowed: "github", "linear""#
        );
        assert_eq!(
            not_one_of("svn", &["github"]),
            r#""svn" is not known; allowed: "github""#
        );
    }

    #[test]
    fn given_text_is_cut_and_harmless() {
        assert_eq!(quoted("a\nb\u{1b}[2J"), r#""a\nb\u{1b}[2J""#);
        assert_eq!(
            quoted(&"ä".repeat(70)),
            format!("\"{}...\"", "ä".repeat(64))
        );
    }
}
