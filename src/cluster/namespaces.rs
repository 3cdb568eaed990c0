//! Which namespaces a program works for.

use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};

use crate::api::contract::env;
use crate::api::text::names::{Form, Scope};
use crate::kit::config::{Invalid, Reader, Setting, Value};

/// Whose objects a program works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Those of all namespaces; needs a ClusterRole.
    All,
    /// Those of some.
    Some(Vec<String>),
}

impl Namespaces {
    /// What the watches of one kind cover, one each.
    pub fn scopes(&self) -> Vec<Scope> {
        match self {
            Self::All => vec![Scope::Cluster],
            Self::Some(names) => names.iter().cloned().map(Scope::Namespace).collect(),
        }
    }
}

/// How far the rights of a program reach, as the operator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    cluster_scoped: bool,
}

impl Rights {
    /// Reads which namespaces a program works for, in words of its own, and how far its rights reach.
    ///
    /// # Errors
    ///
    /// When one of the two is set to something else.
    pub fn read(
        reader: &mut Reader<'_>,
        about: &'static str,
    ) -> Result<(Namespaces, Self), Invalid> {
        let setting = Setting::<Namespaces>::new(env::NAMESPACES, about);
        let namespaces = reader.value(setting.or("agents"));
        let cluster_scoped = reader.value(
            Setting::<bool>::new(
                env::CLUSTER_SCOPED,
                "Whether the program has rights in the whole cluster, so that * can be used for namespaces",
            )
            .or("false"),
        );
        let (namespaces, cluster_scoped) = (namespaces?, cluster_scoped?);
        Ok((namespaces, Self { cluster_scoped }))
    }

    /// Refuses all namespaces where rights end at some. `wanted` is what a variable was set to.
    ///
    /// # Errors
    ///
    /// When it does.
    pub fn suffice(
        self,
        variable: &str,
        wanted: &Namespaces,
        reader: &mut Reader<'_>,
    ) -> Result<(), Invalid> {
        match wanted {
            Namespaces::All if !self.cluster_scoped => {
                let complaint = "`*` needs JANGAR_RBAC_CLUSTER_SCOPED=true and a ClusterRole; else name the namespaces";
                Err(reader.contradiction(variable, complaint))
            }
            Namespaces::All | Namespaces::Some(_) => Ok(()),
        }
    }
}

impl Scope {
    /// The objects of a kind within it.
    pub fn api<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match self {
            Self::Cluster => Api::all(client.clone()),
            Self::Namespace(name) => Api::namespaced(client.clone(), name),
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
