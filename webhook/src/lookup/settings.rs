//! Which namespaces are followed.

use agents::api::contract::env;
use agents::api::names::Form;
use agents::kit::config::{self, Invalid, Reader, Setting, Value};

use super::shelf::Scope;

/// What operators can set about look-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whose objects are followed.
    pub namespaces: Namespaces,
}

/// Whose objects are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Those of all namespaces; needs a ClusterRole.
    All,
    /// Those of some.
    Some(Vec<String>),
}

impl Namespaces {
    /// What the watches of one kind cover, one each.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        match self {
            Self::All => vec![Scope::Cluster],
            Self::Some(names) => names.iter().cloned().map(Scope::Namespace).collect(),
        }
    }
}

impl Value for Namespaces {
    const EXPECTED: &'static str =
        "a list of namespaces such as a,b or [\"a\",\"b\"], or * for all";

    fn parse(text: &str) -> Option<Self> {
        let mut names = Vec::<String>::parse(text)?;
        names.sort_unstable();
        names.dedup();
        match names.as_slice() {
            [] => None,
            [star] if star == "*" => Some(Self::All),
            names if names.iter().all(|name| Form::DnsLabel.fits(name)) => {
                Some(Self::Some(names.to_vec()))
            }
            _ => None,
        }
    }
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Look-ups");
        let namespaces = reader.value(
            Setting::new(
                env::NAMESPACES,
                "Namespaces whose objects are followed, so that references to them can be looked up",
            )
            .or("agents"),
        );
        Ok(Self {
            namespaces: namespaces?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_named_or_all() {
        let some = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Some(Namespaces::Some(names))
        };
        for (text, expected) in [
            ("agents", some(&["agents"])),
            ("b, a,b", some(&["a", "b"])),
            (r#"["a"]"#, some(&["a"])),
            ("*", Some(Namespaces::All)),
            (r#"["*"]"#, Some(Namespaces::All)),
            ("a,*", None),
            ("[]", None),
            (",", None),
            ("Team", None),
            ("a.b", None),
        ] {
            assert_eq!(Namespaces::parse(text), expected, "{text}");
        }
    }
}
