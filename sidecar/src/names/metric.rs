//! The name of a metric by a strategy.

use std::borrow::Cow;

use super::{
    MetricType, NameError, Strategy,
    unit::{Words, clean},
};

/// What an OTLP metric is called on the page; UTF-8 where the strategy keeps it.
pub fn metric<'a>(
    name: &'a str,
    unit: &str,
    kind: MetricType,
    strategy: Strategy,
) -> Result<Cow<'a, str>, NameError> {
    let named = match strategy {
        Strategy::UnderscoreEscapingWithSuffixes => escaped_with_suffixes(name, unit, kind),
        Strategy::UnderscoreEscapingWithoutSuffixes => escaped(name),
        Strategy::NoUtf8EscapingWithSuffixes => with_suffixes(name, unit, kind),
        Strategy::NoTranslation => Cow::Borrowed(name),
    };
    if name.is_empty() || named.is_empty() {
        return Err(NameError::Empty);
    }
    // A name that came in as underscores is kept; one that became so has lost all that told it from others.
    if named != name && named.bytes().all(|byte| byte == b'_') {
        return Err(NameError::Underscores);
    }
    Ok(named)
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == ':'
}

/// The words of a name are told apart by anything else, and a suffix is added only if it is not one of them.
fn escaped_with_suffixes<'a>(name: &'a str, unit: &str, kind: MetricType) -> Cow<'a, str> {
    let Words { main, per } = Words::of(unit);
    let (main, per) = (clean(main), per.map(per_suffix).unwrap_or_default());
    let total = kind == MetricType::Counter;
    let ratio = unit == "1" && kind == MetricType::Gauge;

    let words = || {
        name.split(|letter| !is_word(letter))
            .filter(|word| !word.is_empty())
    };
    let has = |suffix: &str| words().any(|word| word == suffix);
    let main = if has(&main) { "" } else { &*main };
    let per = if has(&per) { "" } else { &*per };
    let main = match per.is_empty() {
        true => main,
        false => main.strip_suffix('_').unwrap_or(main),
    };
    let moved = |word: &&str| !(total && *word == "total" || ratio && *word == "ratio");
    let suffixes = [
        main,
        per,
        if total { "total" } else { "" },
        if ratio { "ratio" } else { "" },
    ];
    let suffixes = suffixes.into_iter().filter(|suffix| !suffix.is_empty());
    join(name, words().filter(moved).chain(suffixes))
}

/// `per_second`; nothing if the unit has no letter that may be kept.
fn per_suffix(per: &str) -> String {
    let cleaned = clean(per);
    match cleaned.strip_suffix('_').unwrap_or(&cleaned) {
        "" => String::new(),
        per => format!("per_{per}"),
    }
}

fn escaped(name: &str) -> Cow<'_, str> {
    let is_kept = |letter: char| is_word(letter) || letter == '_';
    let parts = name.split(|letter| !is_kept(letter));
    join(name, parts.filter(|part| !part.is_empty()))
}

/// The parts with underscores between them; borrowed if that is what the name was. No name begins with a digit.
fn join<'a, 'b>(name: &'a str, parts: impl Iterator<Item = &'b str>) -> Cow<'a, str> {
    let mut joined = String::with_capacity(name.len() + 16);
    for part in parts {
        if !joined.is_empty() || part.starts_with(|letter: char| letter.is_ascii_digit()) {
            joined.push('_');
        }
        joined.push_str(part);
    }
    match joined == name {
        true => Cow::Borrowed(name),
        false => Cow::Owned(joined),
    }
}

/// `name[_main][_per][_total][_ratio]`, where what the name already ends with is not said twice.
fn with_suffixes<'a>(name: &'a str, unit: &str, kind: MetricType) -> Cow<'a, str> {
    let Words { main, per } = Words::of(unit);
    let total = kind == MetricType::Counter;
    let ratio = unit == "1" && kind == MetricType::Gauge;
    let per = per.map(|per| format!("per_{per}"));

    let mut rest = name;
    if ratio {
        rest = without(rest, "ratio");
    }
    if total {
        rest = without(rest, "total");
    }
    if let Some(per) = &per {
        rest = without(rest, per);
    }
    let mut named = String::with_capacity(name.len() + 32);
    named.push_str(rest);
    let main = (!main.is_empty() && !rest.ends_with(main)).then_some(main);
    let type_suffixes = [total.then_some("total"), ratio.then_some("ratio")];
    let suffixes = [main, per.as_deref()].into_iter().chain(type_suffixes);
    for suffix in suffixes.flatten() {
        named.push('_');
        named.push_str(suffix);
    }
    match named == name {
        true => Cow::Borrowed(name),
        false => Cow::Owned(named),
    }
}

/// A name without a suffix and the one character before it, whatever that is: so does the translator of Prometheus, and
/// `subtotal` becomes `su_total` there as here. It cuts bytes; we never cut a character in two.
fn without<'a>(name: &'a str, suffix: &str) -> &'a str {
    let Some(before) = name.strip_suffix(suffix) else {
        return name;
    };
    let mut letters = before.chars();
    match letters.next_back() {
        Some(_) if !letters.as_str().is_empty() => letters.as_str(),
        _ => name,
    }
}

#[cfg(test)]
mod tests;
