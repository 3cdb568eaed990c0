//! What a candidate policy would change about one object.

use std::collections::BTreeMap;

use crate::api::object::cause::FieldPath;
use crate::api::policy::Mode;

use super::{Finding, Rule};

/// One rule that the candidate would apply otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Difference {
    /// The rule.
    pub rule: Rule,
    /// Which way it would go.
    pub direction: Direction,
}

/// Whether a candidate lets less or more through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// It would find something new, or take it more seriously.
    Stricter,
    /// It would overlook something, or take it less seriously.
    Looser,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Stricter, Self::Looser];

    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stricter => "stricter",
            Self::Looser => "looser",
        }
    }
}

/// What would change about one object, each rule and direction once. Findings are compared by rule and place: a rule
/// can become stricter at one place and looser at another.
pub fn differences(active: &[Finding], candidate: &[Finding]) -> Vec<Difference> {
    let (active, candidate) = (by_place(active), by_place(candidate));
    let places = active.keys().chain(candidate.keys());
    let mut found: Vec<Difference> = places
        .filter_map(|place| {
            let direction = match candidate.get(place).cmp(&active.get(place)) {
                std::cmp::Ordering::Greater => Direction::Stricter,
                std::cmp::Ordering::Less => Direction::Looser,
                std::cmp::Ordering::Equal => return None,
            };
            let (rule, _) = *place;
            Some(Difference { rule, direction })
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The gravest finding of each rule at each place.
fn by_place(findings: &[Finding]) -> BTreeMap<(Rule, &FieldPath), Mode> {
    let mut places = BTreeMap::new();
    for finding in findings {
        let mode = places
            .entry((finding.rule, &finding.cause.field))
            .or_insert(finding.mode);
        *mode = finding.mode.max(*mode);
    }
    places
}

#[cfg(test)]
mod tests {
    use crate::api::object::cause::{Cause, Path, Reason};
    use crate::api::policy;

    use super::*;

    fn finding(rule: Rule, mode: Mode, field: &str) -> Finding {
        let cause = Cause {
            field: (&Path::root(field)).into(),
            reason: Reason::ImageBlocked,
            message: "words do not count".to_owned(),
        };
        Finding { rule, mode, cause }
    }

    #[test]
    fn a_candidate_is_compared_rule_by_rule_and_place_by_place() {
        let images = Rule::Policy(policy::Rule::DeniedImages);
        let secrets = Rule::Policy(policy::Rule::BlockedSecrets);
        let denied = |field| finding(images, Mode::Enforce, field);
        let warned = |field| finding(images, Mode::Warn, field);
        let blocked = finding(secrets, Mode::Audit, "s");
        let stricter = |rule| Difference {
            rule,
            direction: Direction::Stricter,
        };
        let looser = |rule| Difference {
            rule,
            direction: Direction::Looser,
        };
        for (row, active, candidate, expected) in [
            ("nothing at all", vec![], vec![], vec![]),
            ("the same", vec![denied("a")], vec![denied("a")], vec![]),
            (
                "found anew",
                vec![],
                vec![denied("a")],
                vec![stricter(images)],
            ),
            ("no more", vec![denied("a")], vec![], vec![looser(images)]),
            (
                "graver",
                vec![warned("a")],
                vec![denied("a")],
                vec![stricter(images)],
            ),
            (
                "milder",
                vec![denied("a")],
                vec![warned("a")],
                vec![looser(images)],
            ),
            (
                "twice at one place",
                vec![warned("a"), denied("a")],
                vec![denied("a")],
                vec![],
            ),
            (
                "at another place",
                vec![denied("a")],
                vec![denied("b")],
                vec![stricter(images), looser(images)],
            ),
            (
                "two places count once",
                vec![],
                vec![denied("a"), denied("b")],
                vec![stricter(images)],
            ),
            (
                "two rules",
                vec![denied("a")],
                vec![blocked],
                vec![looser(images), stricter(secrets)],
            ),
        ] {
            let mut expected = expected;
            expected.sort_unstable();
            assert_eq!(differences(&active, &candidate), expected, "{row}");
        }
    }
}
