//! Labels of the metrics and the closed lists that they come from.

use std::fmt;

use agents::api::kind::Kind;
use agents::api::policy::Mode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

use super::{Direction, Door, Operation, Rule, Target};

/// How a review was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Let through, changed or not.
    Allowed,
    /// Refused by a rule.
    Denied,
    /// Let through because no rule is about it.
    Unknown,
    /// Answered without a decision.
    Refused,
}

impl Outcome {
    const DECIDED: [Self; 2] = [Self::Allowed, Self::Denied];
    const ALL: [Self; 4] = [Self::Allowed, Self::Denied, Self::Unknown, Self::Refused];

    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
        }
    }
}

/// A stretch of the way from request to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Waiting for room.
    Queue,
    /// Reading the body.
    Read,
    /// From bytes to what it is about.
    Decode,
    /// Deciding.
    Evaluate,
    /// From decision to bytes.
    Encode,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: [Self; 5] = [
        Self::Queue,
        Self::Read,
        Self::Decode,
        Self::Evaluate,
        Self::Encode,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Read => "read",
            Self::Decode => "decode",
            Self::Evaluate => "evaluate",
            Self::Encode => "encode",
        }
    }
}

/// What a review is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    Known(Target),
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReviewLabels {
    pub(super) resource: Resource,
    pub(super) operation: Option<&'static str>,
    pub(super) outcome: Outcome,
    pub(super) dry_run: bool,
}

impl ReviewLabels {
    /// Every combination that can occur.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let kinds = Kind::ALL.into_iter().flat_map(|kind| {
            [
                (Target::Spec(kind), Operation::Create),
                (Target::Spec(kind), Operation::Update),
                (Target::Status(kind), Operation::Update),
            ]
        });
        let known =
            kinds
                .chain([(Target::Job, Operation::Delete)])
                .flat_map(|(target, operation)| {
                    let resource = Resource::Known(target);
                    Outcome::DECIDED.map(|outcome| (resource, Some(operation.as_str()), outcome))
                });
        let unknown = (Resource::Unknown, None, Outcome::Unknown);
        known
            .chain([unknown])
            .flat_map(|(resource, operation, outcome)| {
                [false, true].map(|dry_run| Self {
                    resource,
                    operation,
                    outcome,
                    dry_run,
                })
            })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CallLabels {
    pub(super) door: &'static str,
    pub(super) outcome: Outcome,
}

impl CallLabels {
    pub(super) fn new(door: Door, outcome: Outcome) -> Self {
        let door = door.as_str();
        Self { door, outcome }
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        let doors = Door::ALL.into_iter();
        doors.flat_map(|door| Outcome::ALL.map(|outcome| Self::new(door, outcome)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RuleLabels {
    pub(super) rule: &'static str,
    pub(super) mode: &'static str,
}

impl RuleLabels {
    pub(super) fn new(rule: Rule, mode: Mode) -> Self {
        Self {
            rule: rule.as_str(),
            mode: mode.as_str(),
        }
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        let modes = [Mode::Audit, Mode::Warn, Mode::Enforce];
        Rule::all().flat_map(move |rule| modes.map(|mode| Self::new(rule, mode)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct DifferenceLabels {
    pub(super) rule: &'static str,
    pub(super) direction: &'static str,
}

impl DifferenceLabels {
    pub(super) fn new(rule: Rule, direction: Direction) -> Self {
        Self {
            rule: rule.as_str(),
            direction: direction.as_str(),
        }
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        Rule::governed().flat_map(|rule| Direction::ALL.map(|direction| Self::new(rule, direction)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PhaseLabel {
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RefusalLabel {
    pub(super) cause: &'static str,
}

impl EncodeLabelValue for Resource {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        match self {
            Self::Known(target) => EncodeLabelValue::encode(&target.to_string(), encoder),
            Self::Unknown => EncodeLabelValue::encode(&"unknown", encoder),
        }
    }
}

macro_rules! encode_words {
    ($($name:ty,)+) => {
        $(impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
                EncodeLabelValue::encode(&self.as_str(), encoder)
            }
        })+
    };
}

encode_words!(Outcome, Phase,);
