//! The ConfigMaps that Jobs read. One of someone else under the name that we need must not be read by a Job of ours.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::Run;
use super::look::is_owned;
use crate::controller::cache::Key;
use crate::controller::context::Context;
use crate::controller::driver::fault::{Class, Fault};

/// Conflicts that are remembered.
const KEPT: usize = 1024;

/// ConfigMaps of others that stand in the way of runs, by uid of the run. Bounded, and forgotten with the process: another
/// one finds them again when it tries.
#[derive(Debug, Default)]
pub(in crate::controller) struct Conflicts {
    known: Mutex<VecDeque<(Option<String>, Key)>>,
}

impl Conflicts {
    fn note(&self, run: Option<String>, document: Key) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(uid, _)| *uid != run);
        if known.len() == KEPT {
            known.pop_front();
        }
        known.push_back((run, document));
    }

    fn forget(&self, run: Option<&str>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(uid, _)| uid.as_deref() != run);
    }

    fn of(&self, run: Option<&str>) -> Option<Key> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = known.iter();
        let found = known.find(|(uid, _)| uid.as_deref() == run);
        found.map(|(_, document)| document.clone())
    }

    /// The ConfigMap of someone else that still stands in the way of a run, if one does.
    pub(in crate::controller) async fn in_the_way<R: Run>(
        &self,
        context: &Context,
        run: &R,
    ) -> Result<Option<String>, Fault> {
        let uid = run.meta().uid.as_deref();
        let Some(at) = self.of(uid) else {
            return Ok(None);
        };
        let there = find(context, &at).await?;
        if there.is_some_and(|there| !is_owned(&there, uid)) {
            return Ok(Some(at.name));
        }
        self.forget(uid);
        Ok(None)
    }

    /// Makes what a Job of a run reads. One that the run owns was made by an earlier try: the same work gives the same
    /// content. One of someone else ends the pass, and the next one waits until it is gone.
    pub(in crate::controller) async fn make<R: Run>(
        &self,
        context: &Context,
        what: &'static str,
        run: &R,
        document: &ConfigMap,
    ) -> Result<bool, Fault> {
        let conflict = match context.create(what, document).await {
            Ok(_) => return Ok(true),
            Err(fault) if fault.class == Class::Conflict => fault,
            Err(fault) => return Err(fault),
        };
        let at = Key::of(document);
        match find(context, &at).await? {
            Some(there) if is_owned(&there, run.meta().uid.as_deref()) => Ok(false),
            Some(_) => {
                self.note(run.uid(), at);
                Err(conflict)
            }
            None => Err(conflict),
        }
    }
}

async fn find(context: &Context, at: &Key) -> Result<Option<ConfigMap>, Fault> {
    let what = "look up the ConfigMap of the Job";
    context.look_up(what, &at.namespace, &at.name).await
}
