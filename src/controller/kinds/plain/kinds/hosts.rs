//! Hosts of repositories: whether their credentials are there, and whether they are of a sort to be given up.

use super::Plain;
use crate::api::condition::Lifecycle;
use crate::api::kinds::{VersionControlProvider, VersionControlProviderStatus};
use crate::controller::agent_run::{Auth, auth};
use crate::controller::driver::stand::Stand;
use crate::controller::kinds::plain::look::Outside;
use crate::controller::kinds::plain::plan::Around;

impl Plain for VersionControlProvider {
    fn secret_entries(&self) -> Vec<(String, String)> {
        owned(auth(&self.spec).secret())
    }

    fn config_map_entries(&self) -> Vec<(String, String)> {
        owned(auth(&self.spec).known_hosts())
    }

    fn outside(&self) -> Option<Outside> {
        let url = self.spec.api_base_url.clone()?;
        Some(Outside::Api { url })
    }

    fn stand(&self, around: &Around) -> Stand<VersionControlProviderStatus> {
        let reason = match auth(&self.spec) {
            Auth::Token { .. } | Auth::App { .. } | Auth::Ssh { .. } => Lifecycle::AuthReady,
            // One that is incomplete was refused by the rules before.
            Auth::None | Auth::Incomplete(_) => Lifecycle::NoAuth,
        };
        let warning = around.deprecated.advises_against(&self.spec).map(|word| {
            let message = format!("the host advises against tokens of type {word}; use another");
            (Lifecycle::DeprecatedAuth, message)
        });
        Stand {
            reason: reason.into(),
            warning,
            ..self.valid()
        }
    }
}

fn owned(entry: Option<(&str, &str)>) -> Vec<(String, String)> {
    let entry = entry.map(|(name, key)| (name.to_owned(), key.to_owned()));
    entry.into_iter().collect()
}
