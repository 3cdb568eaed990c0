//! Workspace: a claim on storage that several runs share, and its time.

mod plan;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Resource, ResourceExt};
use serde_json::json;

use crate::api::contract::label;
use crate::api::kind::Kind;
use crate::api::kinds::{Workspace, WorkspaceStatus};
use crate::controller::cache::shelves::{self, Shelves};
use crate::controller::cache::{Change, Key, Shelf, Told};
use crate::controller::context::Context;
use crate::controller::driver::fault::{Class, Fault};
use crate::controller::driver::plan::{Plan, Standing};
use crate::controller::driver::queue::Priority;
use crate::controller::driver::stand::failed;
use crate::controller::driver::{Reconciler, Work};
use plan::{Action, Observed, Refusal, Sight};

/// The reconciler of workspaces.
pub(in crate::controller) struct Workspaces {
    context: Arc<Context>,
    shelves: Arc<Shelves>,
    /// Claims that were not allowed to grow.
    refusals: Mutex<VecDeque<Refusal>>,
}

/// Refusals that are remembered; the oldest is forgotten first.
const KEPT: usize = 1024;

impl Workspaces {
    pub(in crate::controller) fn new(context: Arc<Context>, shelves: Arc<Shelves>) -> Self {
        Self {
            context,
            shelves,
            refusals: Mutex::default(),
        }
    }

    /// Remembers that a claim may not grow, so that it is not asked for again and again.
    fn note(&self, refusal: Refusal) {
        let mut all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.claim != refusal.claim);
        if all.len() == KEPT {
            all.pop_front();
        }
        all.push_back(refusal);
    }

    fn refusal(&self, claim: &PersistentVolumeClaim) -> Option<Refusal> {
        let all = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|known| known.claim == claim.uid());
        found.cloned()
    }

    /// What there is under the name of the claim. Only claims of ours are followed, so what is not known is asked for.
    async fn sight(&self, workspace: &Workspace, key: &Key) -> Result<Sight, Fault> {
        let known = self.shelves.claims.get(key);
        let found = match known {
            Some(known) => Some(known),
            None => {
                let (namespace, name) = (&key.namespace, &key.name);
                let live = self.context.look_up("look up the claim", namespace, name);
                live.await?.map(Arc::new)
            }
        };
        Ok(match found {
            None => Sight::Absent,
            Some(claim) if is_owned(&claim, workspace) => Sight::Ours(claim),
            Some(_) => Sight::Taken,
        })
    }

    fn learn(&self, mut claim: PersistentVolumeClaim) {
        shelves::prune(&mut claim);
        self.shelves.claims.learn(claim);
    }
}

/// Whether a claim was made for this very workspace.
fn is_owned(claim: &PersistentVolumeClaim, workspace: &Workspace) -> bool {
    let owners = claim.meta().owner_references.iter().flatten();
    let uid = workspace.uid();
    uid.is_some()
        && owners
            .into_iter()
            .any(|owner| Some(&owner.uid) == uid.as_ref())
}

impl Reconciler for Workspaces {
    const KIND: Kind = Kind::Workspace;
    type Object = Workspace;
    type Status = WorkspaceStatus;
    type Observed = Observed;
    type Action = Action;

    fn shelf(&self) -> &Shelf<Workspace> {
        &self.shelves.workspaces
    }

    fn status(object: &Workspace) -> Option<&WorkspaceStatus> {
        object.status.as_ref()
    }

    fn object(observed: &Observed) -> Option<&Workspace> {
        observed.workspace.as_deref()
    }

    async fn gather(&self, key: &Key, now: Timestamp) -> Result<Observed, Fault> {
        let workspace = self.shelves.workspaces.get(key);
        let claim = match &workspace {
            Some(workspace) if plan::asks_for_claim(workspace) => {
                self.sight(workspace, key).await?
            }
            Some(_) | None => Sight::Absent,
        };
        let refusal = match &claim {
            Sight::Ours(claim) => self.refusal(claim),
            Sight::Absent | Sight::Taken => None,
        };
        Ok(Observed {
            now,
            workspace,
            claim,
            refusal,
        })
    }

    fn plan(&self, observed: &Observed) -> Plan<Action, WorkspaceStatus> {
        plan::plan(observed)
    }

    async fn act(&self, _: &Observed, action: &Action) -> Result<bool, Fault> {
        let context = &self.context;
        match action {
            Action::Make(claim) => match context.create("make the claim", &**claim).await {
                Ok(made) => self.learn(made),
                // The next pass sees whose it is.
                Err(fault) if fault.class == Class::Conflict => {}
                Err(fault) => return Err(fault),
            },
            Action::Grow { claim, size } => {
                let path = "/spec/resources/requests/storage";
                let grow = json!({"op": "add", "path": path, "value": size});
                match context.change("grow the claim", &**claim, vec![grow]).await {
                    Ok(grown) => self.learn(grown),
                    Err(fault) if matches!(fault.class, Class::Forbidden | Class::Spec) => {
                        self.note(Refusal {
                            claim: claim.uid(),
                            size: size.clone(),
                            why: fault.sentence(),
                            at: context.clock.now(),
                        });
                    }
                    Err(fault) => return Err(fault),
                }
            }
            Action::Remove(claim) => {
                context.delete("remove the claim", &**claim).await?;
                self.shelves.claims.unlearn(&Key::of(&**claim));
            }
        }
        Ok(true)
    }

    fn failed(&self, workspace: &Workspace, fault: &Fault) -> Option<Standing<WorkspaceStatus>> {
        failed(workspace, fault)
    }
}

/// Looks again at the workspace of a claim that came, changed or went.
pub(in crate::controller) fn on_claim(work: Work) -> Told<PersistentVolumeClaim> {
    Arc::new(move |change| {
        let claim = match change {
            Change::Applied { object, .. } | Change::Deleted { object, .. } => object,
        };
        if let Some(name) = claim.labels().get(label::WORKSPACE) {
            let namespace = claim.namespace().unwrap_or_default();
            work.add(Key::new(namespace, name), Priority::Create);
        }
    })
}
