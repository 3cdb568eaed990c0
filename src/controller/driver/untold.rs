//! What was to be told and counted of statuses whose write got no answer: the write may have been done all the same.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::plan::{Fact, Notice};
use crate::api::kind::Kind;
use crate::controller::cache::Key;

/// Writes that are remembered; the oldest is forgotten first.
const KEPT: usize = 1024;

/// Writes without an answer. Forgotten with the process.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    writes: Mutex<VecDeque<Write>>,
}

/// A status that was written without an answer, and what goes with it.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    /// Version of the object that it was written over.
    pub(crate) over: Option<String>,
    /// When it says that it was written, which no other write says.
    pub(crate) stamp: Value,
    pub(crate) notices: Vec<Notice>,
    pub(crate) facts: Vec<Fact>,
}

impl Untold {
    pub(crate) fn note(&self, write: Write) {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        if writes.len() == KEPT {
            writes.pop_front();
        }
        writes.push_back(write);
    }

    /// Whether something is to be told of an object.
    pub(crate) fn has(&self, kind: Kind, key: &Key) -> bool {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writes = writes.iter();
        writes.any(|write| write.kind == kind && write.key == *key)
    }

    /// What is to be told of an object as it is now stored: of the write that made it so. The others were not done.
    pub(crate) fn take(
        &self,
        kind: Kind,
        key: &Key,
        version: Option<&str>,
        stamp: &Value,
    ) -> Option<Write> {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of = |write: &Write| write.kind == kind && write.key == *key;
        let found = writes.iter();
        let found = found
            .rev()
            .find(|write| is_of(write) && write.stamp == *stamp);
        let found = found.cloned();
        // One that was written over this very version may still be seen.
        writes
            .retain(|write| !is_of(write) || (found.is_none() && write.over.as_deref() == version));
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::events::Reason;

    fn write(over: &str, stamp: &str) -> Write {
        Write {
            kind: Kind::AgentRun,
            key: Key::new("a", "r"),
            over: Some(over.to_owned()),
            stamp: json!(stamp),
            notices: vec![Notice {
                reason: Reason::Succeeded,
                note: stamp.to_owned(),
                job: None,
            }],
            facts: Vec::new(),
        }
    }

    fn take(untold: &Untold, version: &str, stamp: &str) -> Option<String> {
        let key = Key::new("a", "r");
        let taken = untold.take(Kind::AgentRun, &key, Some(version), &json!(stamp));
        taken.map(|write| write.notices[0].note.clone())
    }

    #[test]
    fn a_write_that_was_done_is_told_once_and_one_that_was_not_never() {
        let untold = Untold::default();
        untold.note(write("1", "t1"));
        assert_eq!(take(&untold, "1", "t0"), None, "not seen yet");
        assert_eq!(take(&untold, "2", "t1").as_deref(), Some("t1"), "done");
        assert_eq!(take(&untold, "2", "t1"), None, "once");
        untold.note(write("2", "t2"));
        assert_eq!(take(&untold, "3", "t3"), None, "someone else wrote");
        assert!(!untold.has(Kind::AgentRun, &Key::new("a", "r")));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let untold = Untold::default();
        for number in 0..KEPT + 10 {
            untold.note(write("1", &number.to_string()));
        }
        assert_eq!(untold.writes.lock().unwrap().len(), KEPT);
    }
}
