//! What operators can set about the watch of Jobs: the same variables that tell the controllers where they work.

use agents::api::contract::env;
use agents::cluster::{Namespaces, Scope};
use agents::kit::config::{self, Invalid, Reader, Setting, Value, one_of};

use crate::args::variable;

/// Where Jobs are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What each watch covers; none if Jobs are not watched.
    pub scopes: Vec<Scope>,
}

/// Whether Jobs are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    Follow,
    Off,
}

impl Value for Switch {
    const EXPECTED: &'static str = "follow or off";

    fn parse(text: &str) -> Option<Self> {
        one_of(&[("follow", Self::Follow), ("off", Self::Off)], text)
    }
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Jobs");
        let switch = reader.value(
            Setting::<Switch>::new(
                variable::JOBS,
                "`follow` watches the Jobs of runs for outcomes that get lost; `off` asks nothing of the cluster",
            )
            .or("follow"),
        );
        let runs = reader.value(
            Setting::<bool>::new(env::ENABLED, "Whether Jobs of AgentRuns are watched").or("true"),
        );
        let calls = reader.value(
            Setting::<bool>::new(
                env::SUPPORTING_ENABLED,
                "Whether Jobs of ToolRuns are watched",
            )
            .or("true"),
        );
        let namespaces = reader.value(
            Setting::<Namespaces>::new(
                env::NAMESPACES,
                "Namespaces whose Jobs are watched; * for all needs a ClusterRole",
            )
            .or("agents"),
        );
        let others = reader.optional(Setting::<Namespaces>::new(
            env::SUPPORTING_NAMESPACES,
            "Namespaces in which those of ToolRuns are; those of the agents if not set",
        ));
        let (namespaces, others) = (namespaces?, others?);
        let of_calls = others.unwrap_or_else(|| namespaces.clone());
        let places = [(runs?, namespaces), (calls?, of_calls)];
        Ok(Self {
            scopes: match switch? {
                Switch::Follow => scopes(places),
                Switch::Off => Vec::new(),
            },
        })
    }
}

/// What the watches must cover, none of it twice.
fn scopes(places: [(bool, Namespaces); 2]) -> Vec<Scope> {
    let on = places.into_iter().filter(|(is_on, _)| *is_on);
    let mut scopes: Vec<_> = on.flat_map(|(_, place)| place.scopes()).collect();
    if scopes.contains(&Scope::Cluster) {
        return vec![Scope::Cluster];
    }
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

#[cfg(test)]
mod tests {
    use agents::kit::config::Flags;

    use super::*;

    fn read(environment: &[(&str, &str)]) -> Vec<String> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let environment = environment.iter().map(own).collect();
        let (settings, _) = Flags::<Settings>::default().resolve(environment).unwrap();
        settings.scopes.iter().map(Scope::to_string).collect()
    }

    #[test]
    fn jobs_are_watched_where_the_controllers_make_them() {
        let none: [&str; 0] = [];
        assert_eq!(read(&[]), ["in namespace agents"]);
        assert_eq!(
            read(&[
                (env::NAMESPACES, "b,a"),
                (env::SUPPORTING_NAMESPACES, "b,c")
            ]),
            ["in namespace a", "in namespace b", "in namespace c"]
        );
        assert_eq!(
            read(&[(env::NAMESPACES, "a"), (env::SUPPORTING_NAMESPACES, "*")]),
            ["in all namespaces"]
        );
        assert_eq!(
            read(&[
                (env::NAMESPACES, "a"),
                (env::ENABLED, "false"),
                (env::SUPPORTING_NAMESPACES, "b"),
            ]),
            ["in namespace b"]
        );
        assert_eq!(read(&[(variable::JOBS, "off")]), none);
    }
}
