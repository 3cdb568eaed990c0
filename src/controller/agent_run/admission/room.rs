//! How much room there is, while one goes along the line.

use std::collections::HashMap;
use std::hash::Hash;

use jiff::Timestamp;

use super::limits::Limits;
use super::{Place, Refusal, Ticket};
use crate::api::condition::Lifecycle;

/// What a limit is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Scope<'a> {
    Cluster,
    Namespace(&'a str),
    Agent(&'a str, &'a str),
    Repository(&'a str),
}

/// Who runs, who began a short time ago, and who waits, by scope.
pub(super) struct Room<'a> {
    limits: &'a Limits,
    now: Timestamp,
    running: HashMap<Scope<'a>, usize>,
    /// The oldest first.
    begun: HashMap<Scope<'a>, Vec<Timestamp>>,
    waiting: HashMap<Scope<'a>, usize>,
}

impl<'a> Room<'a> {
    pub(super) fn new(all: &'a [Ticket], limits: &'a Limits, now: Timestamp) -> Self {
        let mut room = Self {
            limits,
            now,
            running: HashMap::new(),
            begun: HashMap::new(),
            waiting: HashMap::new(),
        };
        for ticket in all {
            match ticket.place {
                Place::Running { since } => {
                    room.count_running(ticket);
                    room.count_begun(ticket, since);
                }
                Place::Ended {
                    began: Some(began), ..
                } => room.count_begun(ticket, began),
                Place::Ended { began: None, .. } | Place::Waiting | Place::Aside => {}
            }
        }
        for times in room.begun.values_mut() {
            times.sort_unstable();
        }
        room
    }

    /// Lets the next in line in, or says why not and counts it among those who wait.
    pub(super) fn enter(&mut self, ticket: &'a Ticket) -> Option<Refusal> {
        let refusal = self.too_many(ticket).or_else(|| self.too_fast(ticket));
        let Some(refusal) = refusal else {
            self.count_running(ticket);
            self.count_begun(ticket, self.now);
            return None;
        };
        let refusal = self.too_long(ticket, refusal);
        for scope in scopes(ticket) {
            *self.waiting.entry(scope).or_default() += 1;
        }
        Some(refusal)
    }

    fn count_running(&mut self, ticket: &'a Ticket) {
        for scope in scopes(ticket) {
            *self.running.entry(scope).or_default() += 1;
        }
    }

    fn count_begun(&mut self, ticket: &'a Ticket, at: Timestamp) {
        let over = at.checked_add(self.limits.window);
        if over.is_ok_and(|over| over > self.now) {
            for scope in scopes(ticket) {
                self.begun.entry(scope).or_default().push(at);
            }
        }
    }

    /// Too many at a time.
    fn too_many(&self, ticket: &'a Ticket) -> Option<Refusal> {
        let mut scopes = scopes(ticket);
        let full = scopes.find_map(|scope| {
            let limit = self.limit_at_a_time(scope)?;
            (count(&self.running, scope) >= limit).then_some((scope, limit))
        });
        let (scope, limit) = full?;
        Some(Refusal {
            reason: Lifecycle::ConcurrencyLimit,
            message: format!(
                "{} under way, which is the limit",
                runs(limit, scope, ("is", "are"))
            ),
            until: None,
        })
    }

    /// Too many within the window. It is over for the one that began when the oldest is no longer within it.
    fn too_fast(&self, ticket: &'a Ticket) -> Option<Refusal> {
        let mut scopes = scopes(ticket);
        let (scope, limit, oldest) = scopes.find_map(|scope| {
            let limit = self.limit_in_window(scope)?;
            let times = self.begun.get(&scope)?;
            let oldest = times.len().checked_sub(limit)?;
            Some((scope, limit, *times.get(oldest)?))
        })?;
        let seconds = self.limits.window.as_secs();
        Some(Refusal {
            reason: Lifecycle::RateLimit,
            message: format!(
                "{} within {seconds} s, which is the limit",
                runs(limit, scope, ("began", "began"))
            ),
            until: oldest.checked_add(self.limits.window).ok(),
        })
    }

    /// Too many wait already: the run has no place in line, but it comes up when the line gets shorter.
    fn too_long(&self, ticket: &'a Ticket, refusal: Refusal) -> Refusal {
        let mut scopes = scopes(ticket);
        let full = scopes.find_map(|scope| {
            let limit = self.limit_in_line(scope)?;
            (count(&self.waiting, scope) >= limit).then_some((scope, limit))
        });
        match full {
            Some((scope, limit)) => Refusal {
                reason: Lifecycle::QueueLimit,
                message: format!(
                    "{} already, which is the limit",
                    runs(limit, scope, ("waits", "wait"))
                ),
                until: refusal.until,
            },
            None => refusal,
        }
    }

    fn limit_at_a_time(&self, scope: Scope<'_>) -> Option<usize> {
        let limits = self.limits;
        match scope {
            Scope::Agent(..) => Some(limits.agent),
            Scope::Namespace(_) => Some(limits.namespace),
            Scope::Cluster => Some(limits.cluster),
            Scope::Repository(name) => limits.of_repository(name),
        }
    }

    fn limit_in_window(&self, scope: Scope<'_>) -> Option<usize> {
        self.limits.rate.of(scope)
    }

    fn limit_in_line(&self, scope: Scope<'_>) -> Option<usize> {
        self.limits.queue.of(scope)
    }
}

impl super::limits::ByScope {
    /// Zero is no limit, and there is none for an agent.
    fn of(self, scope: Scope<'_>) -> Option<usize> {
        let limit = match scope {
            Scope::Agent(..) => 0,
            Scope::Namespace(_) => self.namespace,
            Scope::Cluster => self.cluster,
            Scope::Repository(_) => self.repository,
        };
        (limit > 0).then_some(limit)
    }
}

/// What a run counts for, in the order in which limits are looked at.
fn scopes(ticket: &Ticket) -> impl Iterator<Item = Scope<'_>> {
    let namespace = ticket.key.namespace.as_str();
    let repository = ticket.repository.as_deref().map(Scope::Repository);
    [Scope::Agent(namespace, &ticket.agent)]
        .into_iter()
        .chain(repository)
        .chain([Scope::Namespace(namespace), Scope::Cluster])
}

fn count<K: Hash + Eq>(counts: &HashMap<K, usize>, scope: K) -> usize {
    counts.get(&scope).copied().unwrap_or_default()
}

/// So many runs do something, for people.
fn runs(count: usize, scope: Scope<'_>, (one, many): (&str, &str)) -> String {
    let of = match scope {
        Scope::Cluster => String::new(),
        Scope::Namespace(_) => " of the namespace".to_owned(),
        Scope::Agent(_, name) => format!(" of agent {name}"),
        Scope::Repository(name) => format!(" of repository {name}"),
    };
    match count {
        1 => format!("1 run{of} {one}"),
        count => format!("{count} runs{of} {many}"),
    }
}
