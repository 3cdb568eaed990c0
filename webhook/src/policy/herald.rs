//! Tells the cluster, as an Event about the program's own pod, that a policy file was refused.

use agents::events::{Effect, Emitter, Note, Occurrence, Reason, Regarding};

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

    pub(super) fn tell(&self, complaint: &str) {
        let note = Note::new("The policy file cannot be used, the policy before it stays in force")
            .because(complaint);
        let occurrence = Occurrence::new(self.own.clone(), Reason::PolicyRejected, note);
        self.emitter.emit(Effect::Real, occurrence);
    }
}
