//! What operators can set about the policy by flag and variable, and how that goes over a file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::api::contract::env;
use crate::api::policy::{Defaults, ImageRules, LabelRules, Mode, Patterns, Policy, Rule};
use crate::api::status::StatusRule;
use crate::kit::config::{self, Invalid, Reader, Setting, Value, one_of};

const FILE: &str = "YAML or JSON file with the admission policy, followed while the program runs; the settings below go over it";

/// What is set outside of the file, and where the files are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// File with the policy.
    pub file: Option<PathBuf>,
    /// File with a policy that is tried beside it.
    pub candidate: Option<PathBuf>,
    /// What goes over either file.
    pub overrides: Overrides,
}

/// Fields that are set by flag or variable. One that is set replaces that field of the file as a whole; lists are not
/// joined, so that what is in force can be read in one place. `[]` sets an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Labels that every AgentRun must have.
    pub labels_required: Option<Vec<String>>,
    /// The only labels that an AgentRun may have.
    pub labels_allowed: Option<Vec<String>>,
    /// Labels that no AgentRun may have.
    pub labels_denied: Option<Vec<String>>,
    /// The only images that anything may use.
    pub images_allowed: Option<Vec<String>>,
    /// Images that nothing may use.
    pub images_denied: Option<Vec<String>>,
    /// Secrets that nothing may use.
    pub blocked_secrets: Option<Vec<String>>,
    /// Whether an Agent needs a SecretBinding to use secrets.
    pub require_secret_binding: Option<bool>,
    /// What runs get that leave it out, field by field.
    pub defaults: Defaults,
    /// Modes, rule by rule: a rule that is not named here keeps the mode of the file.
    pub modes: Option<Modes<Rule>>,
    /// The same for the rules of the status contract.
    pub status_modes: Option<Modes<StatusRule>>,
    /// What happens when a Job is deleted before its outcome is stored.
    pub job_delete: Option<Mode>,
}

/// Modes of rules, as in `DeniedImages=warn,BlockedSecrets=audit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes<R>(pub BTreeMap<R, Mode>);

/// A rule that has a mode.
trait Moded: Ord + Sized {
    /// The rule that is written exactly so.
    fn named(word: &str) -> Option<Self>;
}

impl Moded for Rule {
    fn named(word: &str) -> Option<Self> {
        Self::parse(word)
    }
}

impl Moded for StatusRule {
    fn named(word: &str) -> Option<Self> {
        Self::parse(word)
    }
}

impl<R: Moded> Value for Modes<R> {
    const EXPECTED: &'static str = "a list of rules, each with enforce, warn or audit, such as DeniedImages=warn,BlockedSecrets=audit";

    fn parse(text: &str) -> Option<Self> {
        let mut modes = BTreeMap::new();
        for entry in text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let (rule, mode) = entry.split_once('=')?;
            let OneMode(mode) = OneMode::parse(mode.trim())?;
            // A rule named twice is a slip, and guessing which one is meant helps nobody.
            if modes.insert(R::named(rule.trim())?, mode).is_some() {
                return None;
            }
        }
        Some(Self(modes))
    }
}

/// A mode as a setting.
struct OneMode(Mode);

impl Value for OneMode {
    const EXPECTED: &'static str = "enforce, warn or audit";

    fn parse(text: &str) -> Option<Self> {
        let words = [Mode::Audit, Mode::Warn, Mode::Enforce].map(|mode| (mode.as_str(), mode));
        one_of(&words, text).map(Self)
    }
}

impl config::Settings for Settings {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Policy");
        let file = reader.optional(Setting::new(env::POLICY_FILE, FILE));
        let candidate = reader.optional(Setting::new(
            env::POLICY_CANDIDATE_FILE,
            "File with a policy that is tried beside the one in force and decides nothing; it may be absent",
        ));
        let overrides = Overrides::read(reader);
        Ok(Self {
            file: file?,
            candidate: candidate?,
            overrides: overrides?,
        })
    }
}

impl Settings {
    /// What a program needs that judges only what it is about to start: no candidate, no status contract, and what runs
    /// get that leave it out is its own business.
    ///
    /// # Errors
    ///
    /// When a value is wrong.
    pub fn read_rules(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        reader.heading("Policy");
        let file = reader.optional(Setting::new(env::POLICY_FILE, FILE));
        let overrides = Overrides::read_rules(reader);
        Ok(Self {
            file: file?,
            candidate: None,
            overrides: overrides?,
        })
    }
}

impl config::Settings for Overrides {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let rules = Self::read_rules(reader);
        let defaults = Defaults::read(reader);
        let status_modes = reader.optional(Setting::new(
            env::POLICY_STATUS_MODES,
            "Modes of single rules of the status contract; the others keep the mode of the file, else enforce",
        ));
        let job_delete = reader.optional(Setting::<OneMode>::new(
            env::POLICY_JOB_DELETE,
            "What happens when a Job is deleted before its outcome is stored; enforce if the file does not say",
        ));
        Ok(Self {
            defaults: defaults?,
            status_modes: status_modes?,
            job_delete: job_delete?.map(|OneMode(mode)| mode),
            ..rules?
        })
    }
}

impl Overrides {
    /// The rules about what objects bring in.
    fn read_rules(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let mut list =
            |variable, help| reader.optional(Setting::<Vec<String>>::new(variable, help));
        let labels_required = list(env::LABELS_REQUIRED, "Labels that every AgentRun must have");
        let labels_allowed = list(
            env::LABELS_ALLOWED,
            "The only labels that an AgentRun may have, as patterns with *; all if empty",
        );
        let labels_denied = list(
            env::LABELS_DENIED,
            "Labels that no AgentRun may have, as patterns with *",
        );
        let images_allowed = list(
            env::IMAGES_ALLOWED,
            "The only images that anything may use, as patterns with *; all if empty",
        );
        let images_denied = list(
            env::IMAGES_DENIED,
            "Images that nothing may use, as patterns with *",
        );
        let blocked_secrets = list(env::BLOCKED_SECRETS, "Secrets that nothing may use");
        let require_secret_binding = reader.optional(Setting::new(
            env::POLICY_REQUIRE_SECRET_BINDING,
            "An Agent that no SecretBinding names may use no secret",
        ));
        let modes = reader.optional(Setting::new(
            env::POLICY_MODES,
            "Modes of single rules; the others keep the mode of the file, else enforce",
        ));
        Ok(Self {
            labels_required: labels_required?,
            labels_allowed: labels_allowed?,
            labels_denied: labels_denied?,
            images_allowed: images_allowed?,
            images_denied: images_denied?,
            blocked_secrets: blocked_secrets?,
            require_secret_binding: require_secret_binding?,
            modes: modes?,
            ..Self::default()
        })
    }
}

impl Overrides {
    /// The policy of a file with these settings over it.
    pub fn over(&self, file: Policy) -> Policy {
        let Policy {
            labels,
            images,
            blocked_secrets,
            require_secret_binding,
            defaults,
            mut modes,
            mut status_modes,
            job_delete,
        } = file; // a field left out here does not compile
        let given = self.clone();
        modes.extend(given.modes.into_iter().flat_map(|given| given.0));
        status_modes.extend(given.status_modes.into_iter().flat_map(|given| given.0));
        Policy {
            labels: LabelRules {
                required: given.labels_required.unwrap_or(labels.required),
                allowed: patterns(given.labels_allowed, labels.allowed),
                denied: patterns(given.labels_denied, labels.denied),
            },
            images: ImageRules {
                allowed: patterns(given.images_allowed, images.allowed),
                denied: patterns(given.images_denied, images.denied),
            },
            blocked_secrets: given.blocked_secrets.unwrap_or(blocked_secrets),
            require_secret_binding: given
                .require_secret_binding
                .unwrap_or(require_secret_binding),
            defaults: Defaults {
                image: given.defaults.image.or(defaults.image),
                service_account: given.defaults.service_account.or(defaults.service_account),
                auth_secret: given.defaults.auth_secret.or(defaults.auth_secret),
                image_pull_secrets: given
                    .defaults
                    .image_pull_secrets
                    .or(defaults.image_pull_secrets),
            },
            modes,
            status_modes,
            job_delete: given.job_delete.unwrap_or(job_delete),
        }
    }
}

fn patterns(given: Option<Vec<String>>, file: Patterns) -> Patterns {
    given.map_or(file, |given| given.into_iter().collect())
}

#[cfg(test)]
mod tests;
