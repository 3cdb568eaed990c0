//! Every variable that existing installations set, and what becomes of it here. One table binds list, parser and
//! documentation: what is honoured must be read by the parser and have a test, what is not is refused or explained at start.

mod table;

use crate::kit::config::{Invalid, Reader};
pub use table::TABLE;

/// A variable of existing installations.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name; one that ends in `*` stands for all that begin so.
    pub name: &'static str,
    /// How sources call it, where they do not write its name.
    pub constant: &'static str,
    /// What becomes of it.
    pub stance: Stance,
}

/// What becomes of a variable.
#[derive(Clone, Copy, Debug)]
pub enum Stance {
    /// It is a setting.
    Honoured {
        /// The test that shows what it changes.
        test: &'static str,
    },
    /// It changes nothing here, and nobody is misled by that; the start says why.
    Accepted(&'static str),
    /// Who sets it expects what is not done here, so the start is refused with this sentence.
    Refused(&'static str),
    /// One value asks for what is not done here; the others change nothing.
    RefusedIf {
        /// Which value.
        when: fn(&str) -> bool,
        /// That value in words.
        value: &'static str,
        /// Why it is refused.
        why: &'static str,
        /// Why the others change nothing.
        otherwise: &'static str,
    },
}

impl Variable {
    /// The variables that it stands for, as they are set.
    fn given(&self, reader: &Reader<'_>) -> Vec<(String, String)> {
        match self.name.strip_suffix('*') {
            Some(start) => reader.given(start),
            None => {
                let given = reader.given(self.name).into_iter();
                given.filter(|(name, _)| name == self.name).collect()
            }
        }
    }

    /// How newer installations call it: `JANGAR_` became `AGENTS_`, and a doubled word was dropped.
    fn newer(&self) -> Option<String> {
        let rest = self.name.strip_prefix("JANGAR_")?;
        let rest = rest.strip_prefix("AGENTS_").unwrap_or(rest);
        Some(format!("AGENTS_{rest}"))
    }
}

/// Refuses what would mislead, and explains what changes nothing. Call it when all settings have been read.
pub(in crate::controller) fn check(reader: &mut Reader<'_>) -> Result<(), Invalid> {
    let mut checked = Ok(());
    for variable in TABLE {
        for (name, value) in variable.given(reader) {
            match variable.stance {
                Stance::Honoured { .. } => {}
                Stance::Accepted(why) => reader.note(format!("{name} changes nothing: {why}")),
                Stance::Refused(why) => checked = Err(reader.contradiction(&name, why)),
                Stance::RefusedIf { when, why, .. } if when(&value) => {
                    checked = Err(reader.contradiction(&name, why));
                }
                Stance::RefusedIf { otherwise, .. } => {
                    reader.note(format!("{name} changes nothing: {otherwise}"));
                }
            }
        }
        checked = misspelt(variable, reader).and(checked);
    }
    checked
}

/// A setting by its newer name would quietly keep its default.
fn misspelt(variable: &Variable, reader: &mut Reader<'_>) -> Result<(), Invalid> {
    let Stance::Honoured { .. } = variable.stance else {
        return Ok(());
    };
    let Some(newer) = variable.newer() else {
        return Ok(());
    };
    match reader.given(&newer).iter().any(|(name, _)| *name == newer) {
        true => {
            let complaint = format!("is called {} here; rename it", variable.name);
            Err(reader.contradiction(&newer, &complaint))
        }
        false => Ok(()),
    }
}

/// What is not honoured, as a Markdown table for the documentation.
pub fn document() -> String {
    let mut text = "| Variable | What becomes of it |\n|---|---|\n".to_owned();
    for Variable { name, stance, .. } in TABLE {
        let said = match stance {
            Stance::Honoured { .. } => continue,
            Stance::Accepted(why) => format!("changes nothing: {why}"),
            Stance::Refused(why) => format!("refused: {why}"),
            Stance::RefusedIf {
                value,
                why,
                otherwise,
                ..
            } => format!("{value} is refused: {why}. Else it changes nothing: {otherwise}"),
        };
        text += &format!("| `{name}` | {} |\n", said.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests;
