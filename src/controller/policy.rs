//! The policy that runs and calls are judged by before they begin: the same engine and settings as the webhook's, since
//! the webhook may have been away, and cannot know an Agent that comes after its run.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};

use crate::api::kind::Kind;
use crate::api::object::cause::{Cause, Reason};
use crate::api::policy::{Defaults, Finding, Intake, Mode, Policy, Surroundings, evaluate};
use crate::cluster::policy::{Followed, INTERVAL, Refused, Seen, Settings, read_file, understand};
use crate::events::{Effect, Emitter, Note, Occurrence, Reason as EventReason, Regarding};
use crate::kit::shutdown::Shutdown;

/// The policy in force. All clones see a reload at the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Arc<ArcSwap<Policy>>);

impl Rules {
    /// What is in force now. Take it once per pass, so that one pass is judged by one policy.
    pub(crate) fn current(&self) -> Arc<Policy> {
        self.0.load_full()
    }
}

/// Keeps [`Rules`] up to date.
#[derive(Debug)]
pub(super) struct Source {
    settings: Settings,
    /// What pods of runs really get; a file cannot change that.
    defaults: Defaults,
    followed: Followed,
    rules: Rules,
}

impl Source {
    /// Reads the file for the first time.
    ///
    /// # Errors
    ///
    /// When there is a file and it cannot be used.
    pub(super) fn load(settings: Settings, defaults: Defaults) -> Result<Self, Refused> {
        let seen = look(&settings);
        let mut source = Self {
            followed: Followed::used(seen.clone()),
            rules: Rules::default(),
            settings,
            defaults,
        };
        source.take(&seen)?;
        Ok(source)
    }

    /// The policy in force; it changes as the file does.
    pub(super) fn rules(&self) -> Rules {
        self.rules.clone()
    }

    fn take(&mut self, seen: &Seen) -> Result<(), Refused> {
        let overrides = &self.settings.overrides;
        let policy = match &self.settings.file {
            Some(file) => understand(file, seen, overrides)?,
            None => overrides.over(Policy::default()),
        };
        let defaults = self.defaults.clone();
        if policy.defaults != Defaults::default() && policy.defaults != defaults {
            tracing::warn!(
                "The defaults of the policy file are not those of the controllers: the webhook judges by the former, and runs get the latter"
            );
        }
        self.rules.0.store(Arc::new(Policy { defaults, ..policy }));
        Ok(())
    }

    /// Follows the file until the program ends, and tells of it. One that cannot be used changes nothing.
    ///
    /// # Errors
    ///
    /// When the system cannot give a thread to read with.
    pub(super) async fn run(mut self, herald: Herald, shutdown: Shutdown) -> Result<(), io::Error> {
        if self.settings.file.is_none() {
            shutdown.started().await;
            return Ok(());
        }
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                _ = ticks.tick() => {}
            }
            let settings = self.settings.clone();
            let seen = tokio::task::spawn_blocking(move || look(&settings)).await?;
            let Some(seen) = self.followed.settle(seen) else {
                continue;
            };
            let taken = self.take(&seen);
            match &taken {
                Ok(()) => tracing::info!("Policy in force"),
                Err(refused) => {
                    tracing::warn!(error = %refused, "Policy file cannot be used, the last good policy stays");
                }
            }
            herald.tell(taken.err());
        }
    }
}

/// Tells of the policy file in Events about the program's own pod.
#[derive(Clone, Debug)]
pub(super) struct Herald {
    emitter: Emitter,
    own: Regarding,
}

impl Herald {
    pub(super) fn new(emitter: Emitter, own: Regarding) -> Self {
        Self { emitter, own }
    }

    fn tell(&self, refused: Option<Refused>) {
        let (reason, note) = match refused {
            None => (
                EventReason::PolicyChanged,
                Note::new("The changed policy file is in force"),
            ),
            Some(refused) => (
                EventReason::PolicyRejected,
                Note::new("The policy file cannot be used, the policy before it stays in force")
                    .because(&refused.to_string()),
            ),
        };
        let occurrence = Occurrence::new(self.own.clone(), reason, note);
        self.emitter.emit(Effect::Real, occurrence);
    }
}

fn look(settings: &Settings) -> Seen {
    let file = settings.file.as_deref();
    file.map_or(Seen::Absent, read_file)
}

/// What the policy says about an object that is about to begin, by what follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// It may not begin.
    pub(super) refused: Vec<Cause>,
    /// Its people are warned.
    pub(super) warned: Vec<Cause>,
    /// It is noted in the log.
    pub(super) audited: Vec<Cause>,
}

impl Verdict {
    pub(super) fn of(findings: Vec<Finding>) -> Self {
        let mut verdict = Self::default();
        for Finding { mode, cause, .. } in findings {
            let list = match mode {
                Mode::Enforce => &mut verdict.refused,
                Mode::Warn => &mut verdict.warned,
                Mode::Audit => &mut verdict.audited,
            };
            list.push(cause);
        }
        verdict
    }
}

/// Judges an object by all that it brings in.
pub(super) fn judge(policy: &Policy, kind: Kind, object: &Value, around: &Surroundings) -> Verdict {
    let intake = Intake::of(kind, object, around, &policy.defaults);
    Verdict::of(evaluate(policy, &intake))
}

/// Whether a Warning was given because of the policy. It is told once, when a run begins, and stays.
pub(crate) fn is_of_policy(reason: Reason) -> bool {
    const REASONS: [Reason; 9] = [
        Reason::MissingRequiredLabels,
        Reason::LabelBlocked,
        Reason::LabelNotAllowed,
        Reason::ImageBlocked,
        Reason::ImageNotAllowed,
        Reason::SecretBlocked,
        Reason::SecretNotAllowed,
        Reason::SecretBindingMissing,
        Reason::ServiceAccountNotAllowed,
    ];
    REASONS.contains(&reason)
}

#[cfg(test)]
mod tests;
