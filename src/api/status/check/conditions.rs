//! S6: conditions against the phase, against each other, and against those before.

use std::collections::HashMap;

use super::{Change, ROOT, check_not_ahead, generation_ahead, generation_went_back};
use crate::api::condition::{Condition, ConditionType};
use crate::api::object::cause::{Causes, Path, Reason, quoted};
use crate::api::phase::Phase;
use crate::api::status::fields::{CONDITIONS, Fields, OBSERVED_GENERATION, PHASE};

impl Change<'_> {
    /// The terminal part of S6.
    pub(super) fn check_terminal_conditions(&self, causes: &mut Causes) {
        if let Some(message) = terminal_conflict(self.new)
            && terminal_conflict(self.old).as_ref() != Some(&message)
        {
            causes.add(
                &ROOT.field(CONDITIONS),
                Reason::TerminalConditionConflict,
                message,
            );
        }
    }

    /// The rest of S6.
    pub(super) fn check_conditions(&self, causes: &mut Causes) {
        let mut before: HashMap<String, (usize, Condition)> = HashMap::new();
        for (_, entry) in self.old.conditions() {
            before.entry(entry.type_.clone()).or_insert((0, entry)).0 += 1;
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        let field = ROOT.field(CONDITIONS);
        for (index, entry) in self.new.conditions() {
            let here = field.index(index);
            let before = before.get(&entry.type_);
            let nth = seen.entry(entry.type_.clone()).or_insert(0);
            *nth += 1;
            if *nth == 1 {
                self.check_condition(causes, &here, before.map(|(_, entry)| entry), &entry);
            } else if before.is_none_or(|(count, _)| *nth > *count) {
                causes.add(
                    &here.field("type"),
                    Reason::ConditionDuplicate,
                    format!(
                        "there is already a condition {}; keep one per type",
                        quoted(&entry.type_)
                    ),
                );
            }
        }
    }

    fn check_condition(
        &self,
        causes: &mut Causes,
        here: &Path<'_>,
        before: Option<&Condition>,
        entry: &Condition,
    ) {
        let earlier = before.and_then(|before| before.last_transition_time);
        if entry.last_transition_time != earlier {
            let field = here.field("lastTransitionTime");
            check_not_ahead(causes, &field, entry.last_transition_time, self.at);
            if let (Some(before), Some(earlier)) = (before, earlier)
                && before.status == entry.status
            {
                causes.add(
                    &field,
                    Reason::TransitionTimeMoved,
                    format!(
                        "condition {} is {} as before, so its lastTransitionTime stays {earlier}; it moves only when the status flips",
                        quoted(&entry.type_),
                        quoted(&entry.status),
                    ),
                );
            }
        }
        self.check_generation_of(causes, here, before, entry);
    }

    /// A condition is about a generation that exists, and never about an older one than before.
    fn check_generation_of(
        &self,
        causes: &mut Causes,
        here: &Path<'_>,
        before: Option<&Condition>,
        entry: &Condition,
    ) {
        let field = here.field(OBSERVED_GENERATION);
        let seen = before.and_then(|before| before.observed_generation);
        if let Some(generation) = entry
            .observed_generation
            .filter(|_| entry.observed_generation != seen)
            && generation > self.at.generation
        {
            causes.add(
                &field,
                Reason::ObservedGenerationAhead,
                generation_ahead(generation, self.at),
            );
        }
        if let (Some(generation), Some(seen)) = (entry.observed_generation, seen)
            && generation < seen
        {
            causes.add(
                &field,
                Reason::ObservedGenerationWentBack,
                generation_went_back(seen, Some(generation)),
            );
        }
    }
}

/// How the terminal conditions contradict the phase; nothing if the phase is a word that we do not know.
fn terminal_conflict(status: &Fields) -> Option<String> {
    let phase = match status.text(PHASE) {
        Some(word) => Phase::parse(word)?,
        None => Phase::Pending,
    };
    let conditions = status.conditions();
    let terminal = [
        ConditionType::Succeeded,
        ConditionType::Failed,
        ConditionType::Cancelled,
    ];
    let holding: Vec<&str> = terminal
        .into_iter()
        .map(ConditionType::as_str)
        .filter(|type_| {
            let holds = |entry: &Condition| entry.type_ == *type_ && entry.status == "True";
            conditions.iter().any(|(_, entry)| holds(entry))
        })
        .collect();
    let fitting: Vec<&str> = phase
        .terminal_condition()
        .map(ConditionType::as_str)
        .into_iter()
        .collect();
    if holding == fitting {
        return None;
    }
    let holding = if holding.is_empty() {
        "none".to_owned()
    } else {
        holding.join(", ")
    };
    let right = match fitting.first() {
        Some(type_) => format!("exactly {type_} must be True"),
        None => "none may be True before the run has ended".to_owned(),
    };
    Some(format!(
        "the phase is {phase}, but of Succeeded, Failed and Cancelled these conditions are True: {holding}; {right}"
    ))
}
