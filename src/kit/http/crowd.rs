//! The connections that are open: no more than allowed. When there is no room, the one that has waited longest with nothing
//! in flight makes some; else a crowd that only holds its connections open would keep everyone out.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    sync::Arc,
};

use tokio::{
    sync::Notify,
    task::{Id, JoinSet},
};

use super::activity::Activity;

/// Connections that may be leaving while others come in for them. On a busy machine each takes a while to notice, and a crowd
/// should not hold up the one behind it by that.
const LEAVING: usize = 64;

/// The tasks that serve connections.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    tasks: JoinSet<()>,
    members: HashMap<Id, Activity>,
    /// Those who were asked to make room.
    leaving: HashSet<Id>,
    changed: Arc<Notify>,
}

impl Crowd {
    /// Nobody yet, and at most so many.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            tasks: JoinSet::new(),
            members: HashMap::new(),
            leaving: HashSet::new(),
            changed: Arc::default(),
        }
    }

    /// Whether one more may come in. Who is leaving takes no room.
    pub(super) fn has_room(&self) -> bool {
        self.members.len() - self.leaving.len() < self.most
    }

    /// Lets one in.
    pub(super) fn admit<F>(&mut self, serve: impl FnOnce(Activity) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let activity = Activity::opened(Arc::clone(&self.changed));
        let task = self.tasks.spawn(serve(activity.clone()));
        self.members.insert(task.id(), activity);
    }

    /// Asks the one that has waited longest with nothing in flight to leave, if there is one.
    ///
    /// All are looked at, which costs less than the handshake of the one who comes in for it.
    pub(super) fn make_room(&mut self) {
        let Self {
            members, leaving, ..
        } = self;
        // A request that was quicker than the asking keeps its connection.
        leaving.retain(|id| members.get(id).is_some_and(Activity::is_yielding));
        if leaving.len() >= LEAVING {
            return;
        }
        let idle = members.iter().filter_map(|(id, activity)| {
            let since = activity.idle_since()?;
            (!leaving.contains(id)).then_some((since, *id, activity))
        });
        if let Some((_, id, activity)) = idle.min_by_key(|(since, _, _)| *since)
            && activity.ask_to_yield()
        {
            leaving.insert(id);
        }
    }

    /// Waits until one has left or, if another wants in, until it may be worth asking for room again.
    pub(super) async fn changes(&mut self, another_wants_in: bool) {
        tokio::select! {
            Some(ended) = self.tasks.join_next_with_id() => {
                let id = match ended {
                    Ok((id, ())) => id,
                    Err(error) => error.id(), // it panicked, which the panic hook has logged
                };
                self.members.remove(&id);
                self.leaving.remove(&id);
            }
            () = self.changed.notified(), if another_wants_in => {}
            else => std::future::pending().await,
        }
    }

    /// The tasks that are left, for the drain.
    pub(super) fn into_tasks(self) -> JoinSet<()> {
        self.tasks
    }
}
