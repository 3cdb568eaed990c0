//! Follows the policy files: reads them again and again, and puts in force what they hold once it is known to be good.

use std::io;
use std::path::PathBuf;

use agents::api::policy::Policy;
use agents::cluster::policy::{Followed, INTERVAL, Refused, Seen, Settings, read_file, understand};
use agents::kit::shutdown::Shutdown;
use tokio::time::{MissedTickBehavior, interval};

use super::herald::Herald;
use super::metrics::{Metrics, Outcome, Which};
use super::{InForce, Loaded, Policies};

/// Keeps [`Policies`] up to date.
#[derive(Debug)]
pub struct Source {
    settings: Settings,
    policies: Policies,
    metrics: Metrics,
    herald: Option<Herald>,
    /// A candidate that was refused before there was anyone to tell it.
    untold: Option<Refused>,
    active: Followed,
    candidate: Followed,
}

impl Source {
    /// Reads the files for the first time. A candidate that cannot be used does no harm; the policy itself must be good.
    ///
    /// # Errors
    ///
    /// When the policy file cannot be used.
    pub fn load(settings: Settings, metrics: Metrics) -> Result<Self, Refused> {
        let look = read(&settings);
        let active = match (&settings.file, &look.active) {
            (Some(file), seen) => understand(file, seen, &settings.overrides)?.into(),
            (None, _) => Loaded::from(settings.overrides.over(Policy::default())),
        };
        let mut source = Self {
            policies: Policies::new(InForce {
                active,
                candidate: None,
            }),
            active: Followed::used(look.active),
            candidate: Followed::used(look.candidate.clone()),
            settings,
            metrics,
            herald: None,
            untold: None,
        };
        let current = source.policies.current();
        source
            .metrics
            .loaded(Which::Active, None, Some(&current.active));
        source.take_candidate(&look.candidate);
        Ok(source)
    }

    /// Also tells the cluster about a file that cannot be used, and about the candidate if it could not from the start.
    pub fn told_by(mut self, herald: Herald) -> Self {
        if let Some(refused) = self.untold.take() {
            herald.tell(Which::Candidate, &refused.complaint);
        }
        self.herald = Some(herald);
        self
    }

    /// What reviews are judged by; it changes as the files do.
    pub fn policies(&self) -> Policies {
        self.policies.clone()
    }

    /// Follows the files until the program ends.
    ///
    /// # Errors
    ///
    /// When the system cannot give a thread to read with.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), io::Error> {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = shutdown.started() => return Ok(()),
                _ = ticks.tick() => {}
            }
            let settings = self.settings.clone();
            let seen = tokio::task::spawn_blocking(move || read(&settings)).await?;
            self.look(seen);
        }
    }

    /// One look at what the files hold now.
    fn look(&mut self, seen: Look) {
        let Look { active, candidate } = seen;
        if let Some(seen) = self.active.settle(active) {
            self.take_active(&seen);
        }
        if let Some(seen) = self.candidate.settle(candidate) {
            self.take_candidate(&seen);
        }
    }

    fn take_active(&self, seen: &Seen) {
        let Some(file) = &self.settings.file else {
            return;
        };
        match understand(file, seen, &self.settings.overrides) {
            Ok(policy) => {
                let loaded = Loaded::from(policy);
                let InForce { active, candidate } = &*self.policies.current();
                self.metrics.reloaded(Which::Active, Outcome::Ok);
                self.metrics
                    .loaded(Which::Active, Some(active), Some(&loaded));
                tracing::info!(hash = loaded.hash, "Policy in force");
                self.policies.replace(InForce {
                    active: loaded,
                    candidate: candidate.clone(),
                });
            }
            Err(refused) => {
                self.metrics.reloaded(Which::Active, Outcome::Refused);
                let kept = &self.policies.current().active.hash;
                tracing::warn!(error = %refused, kept, "Policy file cannot be used, the last good policy stays");
                self.tell(Which::Active, &refused);
            }
        }
    }

    /// A candidate that is absent or cannot be used is no candidate: comparing with an older one would answer a
    /// question that nobody asks any more.
    fn take_candidate(&mut self, seen: &Seen) {
        let Some(file) = &self.settings.candidate else {
            return;
        };
        let (outcome, candidate) = match (seen, understand(file, seen, &self.settings.overrides)) {
            (Seen::Absent, _) => (Outcome::Absent, None),
            (Seen::Text(_) | Seen::Unreadable(_), Ok(policy)) => {
                (Outcome::Ok, Some(Loaded::from(policy)))
            }
            (Seen::Text(_) | Seen::Unreadable(_), Err(refused)) => {
                tracing::warn!(error = %refused, "Candidate policy cannot be used, nothing is compared");
                self.tell(Which::Candidate, &refused);
                self.untold = self.herald.is_none().then_some(refused);
                (Outcome::Refused, None)
            }
        };
        if let Some(loaded) = &candidate {
            tracing::info!(hash = loaded.hash, "Candidate policy is tried");
        }
        let before = self.policies.current();
        self.metrics.reloaded(Which::Candidate, outcome);
        self.metrics.loaded(
            Which::Candidate,
            before.candidate.as_ref(),
            candidate.as_ref(),
        );
        self.policies.replace(InForce {
            active: before.active.clone(),
            candidate,
        });
    }

    fn tell(&self, which: Which, refused: &Refused) {
        if let Some(herald) = &self.herald {
            herald.tell(which, &refused.complaint);
        }
    }
}

/// What both files hold at one time.
struct Look {
    active: Seen,
    candidate: Seen,
}

fn read(settings: &Settings) -> Look {
    let seen = |file: &Option<PathBuf>| file.as_deref().map_or(Seen::Absent, read_file);
    Look {
        active: seen(&settings.file),
        candidate: seen(&settings.candidate),
    }
}

#[cfg(test)]
mod tests;
