//! Holds a value against its schema. Costs nothing but the walk while there is no fault.

use serde_json::Number;

use super::node::{Fields, List, Node, Range, Shape, Text};
use super::rules;
use crate::api::kinds::agents::agent_run::UNBUILT_RUNTIMES;
use crate::api::object::cause::{Causes, Path, Reason, listed, not_one_of, quoted};
use crate::api::object::tree::{Json, Sort};

impl Node {
    /// Notes what is wrong with a value. What is as it was in `old` is forgiven, as the API server forgives it.
    pub(super) fn check<J: Json>(
        &self,
        causes: &mut Causes,
        at: &Path<'_>,
        value: &J,
        old: Option<&J>,
    ) {
        let before = causes.mark();
        match (&self.shape, value.sort()) {
            (Shape::Any, _) | (Shape::Boolean, Sort::Truth(_)) => {}
            (Shape::Object(fields), Sort::Fields) => fields.check(causes, at, value, old),
            (Shape::List(list), Sort::List(given)) => list.check(causes, at, given, old),
            (Shape::Text(text), Sort::Text(given)) => text.check(causes, at, given),
            (Shape::Integer(range), Sort::Number(given)) if is_whole(given) => {
                range.check(causes, at, given);
            }
            (Shape::Number(range), Sort::Number(given)) => range.check(causes, at, given),
            (Shape::IntOrText, Sort::Text(_)) => {}
            (Shape::IntOrText, Sort::Number(given)) if is_whole(given) => {}
            _ => causes.add_thought(at, Reason::TypeMismatch, || {
                format!("is {}; write {}", sort_of(value), self.wanted())
            }),
        }
        if causes.mark() != before && old == Some(value) {
            causes.forget_since(before);
        }
    }

    /// Notes that the value is absent.
    pub(super) fn check_missing(&self, causes: &mut Causes, at: &Path<'_>) {
        causes.add_thought(at, Reason::Required, || {
            let about = self.about.trim_end_matches('.');
            match about {
                "" => format!("is missing; write {}", self.wanted()),
                _ => format!("is missing; write {} ({about})", self.wanted()),
            }
        });
    }

    /// What would be right, as the end of a sentence.
    fn wanted(&self) -> String {
        let wanted = match &self.shape {
            Shape::Any => "a value",
            Shape::Object(_) => "an object",
            Shape::List(_) => "a list",
            Shape::Text(text) if !text.words.is_empty() => {
                return format!("one of {}", listed(&text.known()));
            }
            Shape::Text(_) => "a text, in quotes",
            Shape::Integer(_) => "a whole number, without quotes",
            Shape::Number(_) => "a number, without quotes",
            Shape::Boolean => "true or false, without quotes",
            Shape::IntOrText => "a whole number or a text",
        };
        wanted.to_owned()
    }
}

impl Fields {
    fn check<J: Json>(&self, causes: &mut Causes, at: &Path<'_>, given: &J, old: Option<&J>) {
        if self.most.is_some() {
            check_count(causes, at, given.fields().count(), self.most);
        }
        for field in self.named.iter().filter(|field| field.required) {
            if given.field(&field.name).is_none_or(J::is_nothing) {
                field.node.check_missing(causes, &at.field(&field.name));
            }
        }
        for (name, value) in given.fields().filter(|(_, value)| !value.is_nothing()) {
            let old = old.and_then(|old| old.field(name));
            if let Some(field) = self.find(name) {
                field.node.check(causes, &at.field(name), value, old);
            } else if let Some(entry) = &self.entries {
                entry.check(causes, &at.key(name), value, old);
            }
        }
        for rule in &self.rules {
            rules::check_spec(*rule, causes, at, given);
        }
    }
}

impl List {
    fn check<J: Json>(&self, causes: &mut Causes, at: &Path<'_>, given: &[J], old: Option<&J>) {
        check_count(causes, at, given.len(), self.most);
        for (index, value) in given.iter().enumerate() {
            let old = old.and_then(|old| self.same_entry(old, value));
            self.items.check(causes, &at.index(index), value, old);
        }
        if !self.keys.is_empty() {
            self.check_keys(causes, at, given);
        }
    }

    /// The entry that this one was before. Only entries with a key can be followed.
    fn same_entry<'v, J: Json>(&self, old: &'v J, entry: &J) -> Option<&'v J> {
        let mut entries = old.entries().iter().take(MOST_COMPARED);
        entries.find(|other| !self.keys.is_empty() && self.same_keys(*other, entry))
    }

    fn same_keys<J: Json>(&self, one: &J, other: &J) -> bool {
        let mut keys = self.keys.iter();
        keys.all(|key| one.field(key) == other.field(key))
    }

    /// Each key once. Lists with keys are short, so each entry is compared with those before it.
    fn check_keys<J: Json>(&self, causes: &mut Causes, at: &Path<'_>, given: &[J]) {
        for (index, entry) in given.iter().enumerate().take(MOST_COMPARED) {
            let mut earlier = given.iter().take(index);
            if let Some(first) = earlier.position(|other| self.same_keys(other, entry)) {
                let keys = self.keys.iter().filter_map(|key| entry.field(key)?.text());
                let keys: Vec<&str> = keys.collect();
                let message = format!(
                    "{} is already given at index {first}; give each only once",
                    listed(&keys)
                );
                causes.add(&at.index(index), Reason::Duplicate, message);
            }
        }
    }
}

/// Entries that are compared with each other; far more than any status has conditions.
const MOST_COMPARED: usize = 200;

impl Text {
    fn check(&self, causes: &mut Causes, at: &Path<'_>, given: &str) {
        if !self.words.is_empty() && !self.words.iter().any(|word| word == given) {
            causes.add_thought(at, Reason::NotSupported, || {
                not_one_of(given, &self.known())
            });
            return;
        }
        self.check_length(causes, at, given);
        let is_empty = given.is_empty() && self.least.is_some_and(|least| least > 0);
        if is_empty {
            return; // that it is missing says all; nobody asks for the form of nothing
        }
        if let Some(pattern) = self.pattern.as_ref().filter(|it| !it.is_match(given)) {
            let message = format!(
                "{} does not have the right form; it must match {}",
                quoted(given),
                pattern.as_str()
            );
            causes.add(at, Reason::PatternMismatch, message);
        }
        if let Some(format) = self.format.filter(|format| !format.fits(given)) {
            let message = format!("{} {}", quoted(given), format.rule());
            causes.add(at, format.reason(), message);
        }
    }

    /// Lengths are in characters. A text has at least as many bytes, so most texts need not be counted.
    fn check_length(&self, causes: &mut Causes, at: &Path<'_>, given: &str) {
        let length = || given.chars().count();
        if let Some(most) = self
            .most
            .filter(|most| given.len() > *most && length() > *most)
        {
            let message = format!("has {} characters; use at most {most}", length());
            causes.add(at, Reason::TooLong, message);
        }
        if let Some(least) = self.least.filter(|least| length() < *least) {
            let message = format!("has {} characters; use at least {least}", length());
            causes.add(at, Reason::TooShort, message);
        }
    }

    /// The allowed words, but for those that are refused elsewhere: nobody should be led there.
    pub(super) fn known(&self) -> Vec<&str> {
        let words = self.words.iter().map(String::as_str);
        words
            .filter(|word| !UNBUILT_RUNTIMES.contains(word))
            .collect()
    }
}

impl Range {
    fn check(self, causes: &mut Causes, at: &Path<'_>, given: &Number) {
        let value = given.as_f64().unwrap_or_default();
        let below = self.least.is_some_and(|least| value < least);
        let above = self.most.is_some_and(|most| value > most);
        if below || above {
            let allowed = match (self.least, self.most) {
                (Some(least), Some(most)) => format!("{least} to {most}"),
                (Some(least), None) => format!("{least} or more"),
                (None, most) => format!("at most {}", most.unwrap_or_default()),
            };
            let message = format!("{given} is out of range; use {allowed}");
            causes.add(at, Reason::OutOfRange, message);
        }
    }
}

fn check_count(causes: &mut Causes, at: &Path<'_>, count: usize, most: Option<usize>) {
    if let Some(most) = most.filter(|most| count > *most) {
        let message = format!("has {count} entries; use at most {most}");
        causes.add(at, Reason::TooMany, message);
    }
}

/// Whether a number is an integer to the API server: written as one, or a fraction of nothing that JSON keeps exactly.
pub(in crate::api) fn is_whole(number: &Number) -> bool {
    const EXACT: f64 = 9_007_199_254_740_991.0;
    number.is_i64()
        || number
            .as_f64()
            .is_some_and(|float| float.fract() == 0.0 && float.abs() <= EXACT)
}

/// What a value is, for people.
fn sort_of(value: &impl Json) -> &'static str {
    match value.sort() {
        Sort::Nothing => "null",
        Sort::Truth(_) => "true or false",
        Sort::Number(number) if is_whole(number) => "a number",
        Sort::Number(_) => "a number with a fraction",
        Sort::Text(_) => "a text",
        Sort::List(_) => "a list",
        Sort::Fields => "an object",
    }
}
