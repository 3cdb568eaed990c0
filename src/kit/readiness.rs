//! Readiness: named gates, all of which must be open. Says nothing about whether the process is alive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All gates of a program.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    gates: Arc<Mutex<Vec<GateState>>>,
}

/// One gate; it starts closed and stays so until someone opens it.
#[derive(Clone, Debug)]
pub struct Gate {
    readiness: Readiness,
    index: usize,
}

/// What a gate looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateState {
    /// What the gate stands for.
    pub name: &'static str,
    /// Why it is closed; nothing when it is open.
    pub closed: Option<String>,
    /// What should be known about a gate that is open all the same.
    pub note: Option<String>,
}

impl Readiness {
    /// Adds a gate, closed.
    pub fn gate(&self, name: &'static str) -> Gate {
        let mut gates = self.lock();
        gates.push(GateState {
            name,
            closed: Some("not yet opened".to_owned()),
            note: None,
        });
        Gate {
            readiness: self.clone(),
            index: gates.len() - 1,
        }
    }

    /// All gates as they are now, in the order in which they were added.
    pub fn gates(&self) -> Vec<GateState> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<GateState>> {
        // Nothing panics while the lock is held, so a poisoned one is as good as new.
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    /// Lets traffic through, as far as this gate is concerned.
    pub fn open(&self) {
        self.set(None, None);
    }

    /// Lets traffic through although something is amiss, which `/readyz` shows.
    pub fn open_but(&self, note: impl Into<String>) {
        self.set(None, Some(note.into()));
    }

    /// Takes the program out of service, with the reason that `/readyz` shows.
    pub fn close(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()), None);
    }

    fn set(&self, closed: Option<String>, note: Option<String>) {
        if let Some(gate) = self.readiness.lock().get_mut(self.index) {
            gate.closed = closed;
            gate.note = note;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_starts_closed_opens_and_closes_with_a_reason() {
        let readiness = Readiness::default();
        let cache = readiness.gate("cache");
        let certificate = readiness.gate("certificate");
        certificate.open();
        cache.open();
        cache.close("the API server is gone");
        let state = |name, closed: Option<&str>| GateState {
            name,
            closed: closed.map(str::to_owned),
            note: None,
        };
        assert_eq!(
            readiness.gates(),
            [
                state("cache", Some("the API server is gone")),
                state("certificate", None)
            ]
        );
        let late = readiness.gate("late");
        assert_eq!(readiness.gates()[2], state("late", Some("not yet opened")));
        drop(late);
    }
}
