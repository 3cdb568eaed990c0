//! Tells the cluster, as an Event about the program's own pod, that a policy file was refused.

use agents::events::{Effect, Emitter, Note, Occurrence, Reason, Regarding};

use super::metrics::Which;

/// Tells about refused policy files.
#[derive(Clone, Debug)]
pub struct Herald {
    emitter: Emitter,
    own: Regarding,
}

impl Herald {
    /// Tells by this emitter, about this object.
    pub fn new(emitter: Emitter, own: Regarding) -> Self {
        Self { emitter, own }
    }

    pub(super) fn tell(&self, which: Which, complaint: &str) {
        let (reason, words) = match which {
            Which::Active => (
                Reason::PolicyRejected,
                "The policy file cannot be used, the policy before it stays in force",
            ),
            Which::Candidate => (
                Reason::CandidatePolicyRejected,
                "The candidate policy cannot be used, nothing is compared with it",
            ),
        };
        let note = Note::new(words).because(complaint);
        let occurrence = Occurrence::new(self.own.clone(), reason, note);
        self.emitter.emit(Effect::Real, occurrence);
    }
}
