//! What was said before, so that the same is not said every minute. Reads nothing.

use std::collections::BTreeSet;
use std::mem::discriminant;

use agents::api::registration::Finding;

/// What one look saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// What is wrong, and whether with the configuration that mutates.
    Findings(Vec<(bool, Finding)>),
    /// Nothing, for this reason.
    Trouble(Trouble),
}

/// Why nothing can be said about the registration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    /// There is no such object.
    #[error(
        "there is no {0} of this name, so nothing is sent here; `agents webhook-configuration` prints one"
    )]
    Missing(String),
    /// We may not read it.
    #[error("a role lacks `get` on {0}")]
    Forbidden(String),
    /// The API server did not answer, or with something else.
    #[error("the API server does not say: {0}")]
    Unanswered(String),
}

/// What is worth a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Something wrong that was not there before, and whether in the configuration that mutates.
    Found(bool, Finding),
    /// All is well, as far as was ever said.
    Clean,
    /// Nothing can be said any more.
    Trouble(Trouble),
}

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Said {
    findings: BTreeSet<(bool, Finding)>,
    trouble: Option<Trouble>,
    /// Whether anything was ever said, good or bad.
    anything: bool,
}

impl Said {
    /// What of this is new.
    pub(super) fn hear(&mut self, seen: Seen) -> Vec<News> {
        match seen {
            Seen::Findings(findings) => self.findings(findings),
            Seen::Trouble(trouble) => self.trouble(trouble),
        }
    }

    fn findings(&mut self, findings: Vec<(bool, Finding)>) -> Vec<News> {
        let now: BTreeSet<_> = findings.into_iter().collect();
        let before = std::mem::replace(&mut self.findings, now);
        let troubled = self.trouble.take().is_some();
        let first = !std::mem::replace(&mut self.anything, true);
        if self.findings.is_empty() {
            let better = first || troubled || !before.is_empty();
            return better.then_some(News::Clean).into_iter().collect();
        }
        let new = self.findings.difference(&before).cloned();
        new.map(|(mutates, finding)| News::Found(mutates, finding))
            .collect()
    }

    /// The same sort of trouble is said once, whatever its words.
    fn trouble(&mut self, trouble: Trouble) -> Vec<News> {
        let known = self.trouble.as_ref().map(discriminant) == Some(discriminant(&trouble));
        self.anything = true;
        self.trouble = Some(trouble.clone());
        match known {
            true => Vec::new(),
            false => vec![News::Trouble(trouble)],
        }
    }
}

#[cfg(test)]
mod tests {
    use agents::api::registration::Check;

    use super::*;

    fn finding(text: &str) -> Finding {
        Finding {
            check: Check::Pods,
            hook: "validate.agents.proompteng.ai".to_owned(),
            text: text.to_owned(),
        }
    }

    fn findings(texts: &[&str]) -> Seen {
        Seen::Findings(texts.iter().map(|text| (false, finding(text))).collect())
    }

    fn unanswered(why: &str) -> Trouble {
        Trouble::Unanswered(why.to_owned())
    }

    #[test]
    fn each_thing_is_said_when_it_is_new() {
        let forbidden = Trouble::Forbidden("ValidatingWebhookConfiguration".to_owned());
        let looks = [
            (findings(&[]), vec![News::Clean]),
            (findings(&[]), vec![]),
            (findings(&["a"]), vec![News::Found(false, finding("a"))]),
            (findings(&["a"]), vec![]),
            (
                findings(&["a", "b"]),
                vec![News::Found(false, finding("b"))],
            ),
            (
                Seen::Trouble(unanswered("reset")),
                vec![News::Trouble(unanswered("reset"))],
            ),
            (Seen::Trouble(unanswered("refused")), vec![]),
            (
                Seen::Trouble(forbidden.clone()),
                vec![News::Trouble(forbidden)],
            ),
            (findings(&["a", "b"]), vec![]),
            (findings(&[]), vec![News::Clean]),
        ];
        let mut said = Said::default();
        for (number, (seen, expected)) in looks.into_iter().enumerate() {
            assert_eq!(said.hear(seen), expected, "look {number}");
        }
    }
}
