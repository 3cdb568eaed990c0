//! One line, taken apart by the grammar alone.

use std::collections::BTreeMap;

/// Labels of a sample or an exemplar.
pub(super) type Labels = BTreeMap<String, String>;

/// A line about a family.
pub(super) struct Metadata {
    pub(super) sort: Sort,
    pub(super) name: String,
    pub(super) text: String,
}

/// What it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Type,
    Unit,
    Help,
}

/// A line with a value.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Labels,
    pub(super) value: f64,
    pub(super) timestamp: Option<f64>,
    pub(super) exemplar: Option<Labels>,
}

impl Metadata {
    pub(super) fn of(line: &str) -> Result<Self, String> {
        let rest = line.strip_prefix("# ").ok_or("there are no comments")?;
        let (word, mut rest) = rest.split_once(' ').ok_or("a word and nothing after it")?;
        let sort = match word {
            "TYPE" => Sort::Type,
            "UNIT" => Sort::Unit,
            "HELP" => Sort::Help,
            _ => return Err(format!("{word} is none of TYPE, UNIT and HELP")),
        };
        let name = match rest.starts_with('"') {
            true => quoted(&mut rest)?,
            false => {
                let name = rest.split(' ').next().unwrap_or_default();
                rest = &rest[name.len()..];
                plain(name, true)?
            }
        };
        let text = rest.strip_prefix(' ').ok_or("the text is missing")?;
        Ok(Self {
            sort,
            name,
            text: text.to_owned(),
        })
    }
}

impl Sample {
    pub(super) fn of(line: &str) -> Result<Self, String> {
        let end = line.find(['{', ' ']).ok_or("there is no value")?;
        let (name, mut rest) = line.split_at(end);
        let mut name = name.to_owned();
        let mut labels = Labels::new();
        if rest.starts_with('{') {
            let within;
            (within, labels) = braces(&mut rest)?;
            match (within, name.is_empty()) {
                (Some(within), true) => name = within,
                (Some(_), false) => return Err("there are two names".to_owned()),
                (None, _) => name = plain(&name, true)?,
            }
        } else {
            name = plain(&name, true)?;
        }
        let rest = rest.strip_prefix(' ').ok_or("a space before the value")?;
        let (numbers, exemplar) = match rest.split_once(" # ") {
            Some((numbers, exemplar)) => (numbers, Some(exemplar)),
            None => (rest, None),
        };
        let (value, timestamp) = value_and_time(numbers)?;
        Ok(Self {
            name,
            labels,
            value,
            timestamp,
            exemplar: exemplar.map(exemplar_labels).transpose()?,
        })
    }
}

/// The labels of an exemplar; what it says beside them is looked at, too.
fn exemplar_labels(mut rest: &str) -> Result<Labels, String> {
    let (name, labels) = braces(&mut rest)?;
    let rest = rest.strip_prefix(' ').ok_or("an exemplar has no value")?;
    value_and_time(rest)?;
    let length: usize = labels
        .iter()
        .map(|(name, value)| name.chars().count() + value.chars().count())
        .sum();
    match (name, length) {
        (Some(_), _) => Err("an exemplar has a name".to_owned()),
        (None, 129..) => Err(format!("the labels of an exemplar have {length} letters")),
        (None, _) => Ok(labels),
    }
}

fn value_and_time(text: &str) -> Result<(f64, Option<f64>), String> {
    match text.split_once(' ') {
        None => Ok((number(text)?, None)),
        Some((value, time)) => {
            let time = number(time)?;
            match time.is_finite() {
                true => Ok((number(value)?, Some(time))),
                false => Err(format!("{time} is no time")),
            }
        }
    }
}

/// A number as the grammar has it: Rust reads more than that, but no underscores or hexadecimal digits.
pub(super) fn number(text: &str) -> Result<f64, String> {
    let word = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let signs = text.len() - word.len();
    let known = match &*word {
        "inf" | "infinity" => true,
        "nan" => signs == 0,
        _ => word.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.'),
    };
    let parsed = text.parse().ok().filter(|_| known && signs <= 1);
    parsed.ok_or_else(|| format!("`{text}` is no number"))
}

/// What is in braces: a name if there is one, and labels.
fn braces(rest: &mut &str) -> Result<(Option<String>, Labels), String> {
    let (mut name, mut labels) = (None, Labels::new());
    *rest = rest.strip_prefix('{').ok_or("an opening brace")?;
    if let Some(after) = rest.strip_prefix('}') {
        *rest = after;
        return Ok((name, labels));
    }
    loop {
        let key = match rest.starts_with('"') {
            true => quoted(rest)?,
            false => {
                let end = rest.find('=').ok_or("a label without a value")?;
                let (key, after) = rest.split_at(end);
                *rest = after;
                plain(key, false)?
            }
        };
        match rest.strip_prefix('=') {
            Some(after) => {
                *rest = after;
                let value = quoted(rest)?;
                if labels.insert(key.clone(), value).is_some() {
                    return Err(format!("label {key} is there twice"));
                }
            }
            None if name.is_none() && labels.is_empty() => name = Some(key),
            None => return Err(format!("label {key} has no value")),
        }
        if let Some(after) = rest.strip_prefix('}') {
            *rest = after;
            return Ok((name, labels));
        }
        *rest = rest.strip_prefix(',').ok_or("a comma between labels")?;
    }
}

/// A text in quotes, unescaped.
fn quoted(rest: &mut &str) -> Result<String, String> {
    let text = rest.strip_prefix('"').ok_or("an opening quote")?;
    let mut plain = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                *rest = &text[at + 1..];
                return Ok(plain);
            }
            '\\' => match letters.next().ok_or("an escape of nothing")?.1 {
                'n' => plain.push('\n'),
                other @ ('\\' | '"') => plain.push(other),
                // Allowed, and then both stand for themselves.
                other => plain.extend(['\\', other]),
            },
            other => plain.push(other),
        }
    }
    Err("there is no closing quote".to_owned())
}

/// A name without quotes; those of metrics may have colons.
fn plain(name: &str, has_colons: bool) -> Result<String, String> {
    let is_letter =
        |letter: char| letter.is_ascii_alphabetic() || letter == '_' || has_colons && letter == ':';
    let is_good = name.starts_with(is_letter)
        && name
            .chars()
            .all(|letter| is_letter(letter) || letter.is_ascii_digit());
    match is_good {
        true => Ok(name.to_owned()),
        false => Err(format!("`{name}` is no name")),
    }
}
