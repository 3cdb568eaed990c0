//! Which reserved Jobs were never asked for. Only their names are kept by then, so whoever finds such a name without a
//! Job must know whether one could have been made: this process knows it of what it has reserved itself.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Run;
use crate::api::kinds::shared::JobRef;

/// Names of reserved Jobs that no create call was sent for, by the uid of their run. A run has one at most, and keeps it
/// until its Job is made, or until it ends or goes.
#[derive(Debug, Default)]
pub(in crate::controller) struct Untried {
    names: Mutex<HashMap<String, String>>,
}

impl Untried {
    /// A status is stored that names this Job; before, it named that one.
    pub(in crate::controller) fn stored<R: Run>(
        &self,
        run: &R,
        before: Option<&JobRef>,
        now: Option<&JobRef>,
    ) {
        let Some(uid) = run.meta().uid.clone() else {
            return;
        };
        let name = |job: Option<&JobRef>| job.and_then(|job| job.name.clone());
        let is_bound = now.is_some_and(|job| job.uid.is_some());
        match name(now) {
            Some(reserved) if !is_bound && name(before).as_ref() != Some(&reserved) => {
                self.names().insert(uid, reserved);
            }
            Some(_) if !is_bound => {}
            Some(_) | None => drop(self.names().remove(&uid)),
        }
    }

    /// The Job of the run is asked for now, or never will be.
    pub(in crate::controller) fn forget<R: Run>(&self, run: &R) {
        if let Some(uid) = run.meta().uid.as_deref() {
            self.names().remove(uid);
        }
    }

    /// Whether the Job of this name cannot have been made.
    pub(in crate::controller) fn holds<R: Run>(&self, run: &R, name: &str) -> bool {
        let uid = run.meta().uid.as_deref();
        uid.is_some_and(|uid| self.names().get(uid).is_some_and(|known| known == name))
    }

    fn names(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::kinds::ToolRun;

    #[test]
    fn only_what_was_reserved_here_and_not_asked_for_is_untried() {
        let run: ToolRun = serde_json::from_value(json!({
            "metadata": {"name": "r", "uid": "u-1"}, "spec": {"toolRef": {"name": "t"}},
        }))
        .unwrap();
        let job = |name: &str, uid: Option<&str>| JobRef {
            name: Some(name.to_owned()),
            uid: uid.map(str::to_owned),
            ..JobRef::default()
        };
        let (first, second) = (job("one", None), job("two", None));
        let bound = job("one", Some("j-1"));
        let untried = Untried::default();
        assert!(!untried.holds(&run, "one"), "reserved by someone else");
        untried.stored(&run, Some(&first), Some(&first));
        assert!(!untried.holds(&run, "one"), "another write, the same name");
        untried.stored(&run, None, Some(&first));
        assert!(untried.holds(&run, "one"), "reserved now");
        untried.stored(&run, Some(&first), Some(&first));
        assert!(untried.holds(&run, "one"), "still not asked for");
        untried.forget(&run);
        assert!(!untried.holds(&run, "one"), "asked for");
        untried.stored(&run, Some(&bound), Some(&second));
        assert!(untried.holds(&run, "two"), "the next try");
        assert!(!untried.holds(&run, "one"), "its Job is another one");
        untried.stored(&run, Some(&second), None);
        assert!(!untried.holds(&run, "two"), "the run has ended");
    }
}
