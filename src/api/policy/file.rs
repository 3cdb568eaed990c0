//! A policy as operators write it in a file: YAML, or JSON, which is YAML too. Text in, policy or one sentence out.

use thiserror::Error;

use super::{ImageRules, LabelRules, Policy};

/// Why a text is no policy. It is refused as a whole, since half a policy would let through what the other half forbids.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PolicyError {
    /// There is nothing in it, which is more often a mistake than a wish.
    #[error("it is empty; write {{}} for a policy that lets everything through")]
    Empty,
    /// It cannot be read.
    #[error("{at}: {message}")]
    Unreadable {
        /// Line and column.
        at: String,
        /// What is wrong there.
        message: String,
    },
    /// A list has an entry without text.
    #[error("{list}[{index}] is blank; take it out")]
    Blank {
        /// The list.
        list: &'static str,
        /// Position of the entry.
        index: usize,
    },
}

impl Policy {
    /// The policy that a text states. Fields that are left out have their defaults; fields that do not exist are errors.
    ///
    /// # Errors
    ///
    /// When the text is not a policy from end to end.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        // Comments alone, or the word null, are as empty as no text at all.
        let policy: Option<Self> = match text.trim() {
            "" => None,
            text => serde_saphyr::from_str(text).map_err(|error| unreadable(&error))?,
        };
        let policy = policy.ok_or(PolicyError::Empty)?;
        match policy.blank_entry() {
            None => Ok(policy),
            Some((list, index)) => Err(PolicyError::Blank { list, index }),
        }
    }

    /// An entry that is blank stands for nothing, and a list of only such entries refuses everything.
    fn blank_entry(&self) -> Option<(&'static str, usize)> {
        let Self {
            labels:
                LabelRules {
                    required,
                    allowed,
                    denied,
                },
            images,
            blocked_secrets,
            require_secret_binding: _,
            defaults: _,
            modes: _,
            status_modes: _,
            job_delete: _,
        } = self; // a list left out here does not compile
        let ImageRules {
            allowed: images_allowed,
            denied: images_denied,
        } = images;
        let lists = [
            ("labels.required", required.clone()),
            ("labels.allowed", allowed.written()),
            ("labels.denied", denied.written()),
            ("images.allowed", images_allowed.written()),
            ("images.denied", images_denied.written()),
            ("blockedSecrets", blocked_secrets.clone()),
        ];
        lists.into_iter().find_map(|(list, entries)| {
            let blank = |entry: &String| entry.trim().is_empty();
            entries.iter().position(blank).map(|index| (list, index))
        })
    }
}

fn unreadable(error: &serde_saphyr::Error) -> PolicyError {
    let error = error.without_snippet();
    let at = match error.location() {
        Some(place) => format!("line {}, column {}", place.line(), place.column()),
        None => "somewhere".to_owned(),
    };
    let message = error.to_string();
    // The place is said once, in front.
    let message = message.split(" at line ").next().unwrap_or_default();
    PolicyError::Unreadable {
        at,
        message: message.trim().replace('\n', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::policy::{Mode, Rule};

    #[test]
    fn a_file_states_what_differs_from_the_defaults() {
        let text = "
labels:
  required: [team]
images:
  allowed:
  - registry.example.com/*
blockedSecrets: [root]
requireSecretBinding: true
defaults: {serviceAccount: runner}
modes: {AllowedImages: warn}
";
        let policy = Policy::parse(text).unwrap();
        assert_eq!(policy.labels.required, ["team"]);
        assert_eq!(policy.images.allowed.written(), ["registry.example.com/*"]);
        assert_eq!(policy.mode(Rule::AllowedImages), Mode::Warn);
        assert_eq!(policy.mode(Rule::DeniedImages), Mode::Enforce);
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(Policy::parse(&json), Ok(policy), "JSON is read as well");
        assert_eq!(Policy::parse("{}"), Ok(Policy::default()));
    }

    #[test]
    fn the_file_in_the_documentation_is_a_policy() {
        let page = include_str!("../../../docs/policy.md");
        let (_, after) = page.split_once("```yaml").unwrap();
        let (file, _) = after.split_once("```").unwrap();
        let policy = Policy::parse(file).unwrap();
        assert_eq!(policy.mode(Rule::AllowedImages), Mode::Warn);
        assert!(Rule::ALL.iter().all(|rule| page.contains(rule.as_str())));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, expected) in [
            (
                "",
                "it is empty; write {} for a policy that lets everything through",
            ),
            (
                " \n",
                "it is empty; write {} for a policy that lets everything through",
            ),
            (
                "blockedSecrets: [a, ' ']",
                "blockedSecrets[1] is blank; take it out",
            ),
            (
                "images: {allowed: ['']}",
                "images.allowed[0] is blank; take it out",
            ),
        ] {
            assert_eq!(
                Policy::parse(text).unwrap_err().to_string(),
                expected,
                "{text}"
            );
        }
        for (text, place, word) in [
            ("labels:\n  requird: [team]\n", "line 2", "requird"),
            ("images: []\n", "line 1", "mapping"),
            ("modes: {DeniedImages: block}\n", "line 1", "block"),
            (
                "modes: {DeniedPictures: warn}\n",
                "line 1",
                "DeniedPictures",
            ),
            (
                "blockedSecrets: [a]\nblockedSecrets: [b]\n",
                "line 2",
                "blockedSecrets",
            ),
            ("labels: {required: [a}\n", "line 1", ""),
            ("--- {}\n--- {}\n", "", ""),
            ("# nothing\n", "empty", ""),
            ("null", "empty", ""),
            ("just text", "line 1", ""),
        ] {
            let said = Policy::parse(text).unwrap_err().to_string();
            assert!(
                said.contains(place) && said.contains(word),
                "{text}: {said}"
            );
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
