//! Follows Jobs and pods: one watch of each for every scope, with a full list after a failure, so that what went meanwhile
//! is seen for certain. The rest of the program does not depend on it: what is missing turns it off, and it tries again.

use std::sync::Arc;
use std::time::Duration;

use agents::api::contract::label;
use agents::cluster::following::{FIRST_WAIT, longer, next};
use agents::cluster::{Need, Obstacle, examine_rights};
use futures::future::join_all;
use futures::{Stream, pin_mut};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource as _};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::board::{Board, Place};
use super::judge::Hazard;
use super::look::Desk;
use super::metrics::{Metrics, Mode, Resource};
use super::shelf::Change;
use super::sight::JobSight;
use super::view::View;

/// Objects in one page of a list, which is in memory whole.
const PAGE: u32 = 100;
/// Time between two looks at times to live that are over.
const CHECK: Duration = Duration::from_secs(1);

/// Follows Jobs and pods.
pub(super) struct Watch {
    pub(super) client: Client,
    pub(super) needs: Vec<Need>,
    pub(super) board: Arc<Board>,
    pub(super) desk: Desk,
    pub(super) metrics: Metrics,
}

impl Watch {
    /// Follows for ever.
    pub(super) async fn run(&self) {
        self.until_fit().await;
        self.metrics.set_mode(Mode::On);
        tracing::info!("Jobs are watched");
        let places = self.board.places.iter();
        let jobs = join_all(places.clone().map(|place| self.follow_jobs(place)));
        let pods = join_all(places.map(|place| self.follow_pods(place)));
        tokio::join!(jobs, pods, self.check());
    }

    /// Waits until the API server answers and has all that is needed. Says once why it waits.
    async fn until_fit(&self) {
        let mut wait = FIRST_WAIT;
        let mut said = None;
        loop {
            let (mode, why) = match examine_rights(&self.client, &self.needs).await {
                Ok(()) => return,
                Err(Obstacle::Lasting(unfit)) => (Mode::Unfit, unfit.to_string()),
                Err(Obstacle::Passing(error)) => (Mode::Waiting, error),
            };
            self.metrics.set_mode(mode);
            if said.replace(mode) != Some(mode) {
                tracing::warn!(
                    error = why,
                    "Jobs are not watched; trying again from time to time"
                );
            }
            sleep(spread(wait)).await;
            wait = longer(wait);
        }
    }

    /// Looks from time to time which times to live are over.
    async fn check(&self) {
        let mut ticks = interval(CHECK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Timestamp::now();
            let counts = self.board.places.iter();
            let overrun = counts.map(|place| place.jobs().overrun(now)).sum();
            self.metrics.count_hazards(Hazard::TtlOverrun, overrun);
        }
    }

    async fn follow_jobs(&self, place: &Place) {
        let jobs = place.scope.api::<JobSight>(&self.client);
        let start = || watcher(jobs.clone(), config());
        let take = |event| self.take_job(place, event);
        self.follow(place, Resource::Jobs, start, take).await;
    }

    async fn follow_pods(&self, place: &Place) {
        let pods = place.scope.api::<PartialObjectMeta<Pod>>(&self.client);
        let start = || watcher(pods.clone(), config());
        let take = |event| self.take_pod(place, event);
        self.follow(place, Resource::Pods, start, take).await;
    }

    /// Runs one watch for ever, with a longer wait after each failure that follows on another. Says once that it broke,
    /// and once that it is back.
    async fn follow<K, S: Stream<Item = watcher::Result<Event<K>>>>(
        &self,
        place: &Place,
        resource: Resource,
        start: impl Fn() -> S,
        take: impl Fn(Event<K>) -> bool,
    ) {
        let mut wait = FIRST_WAIT;
        let mut is_broken = false;
        loop {
            let events = start();
            pin_mut!(events);
            let mut has_list = false;
            let why = loop {
                let event = match next(&mut events, has_list).await {
                    Ok(event) => event,
                    Err(why) => break why,
                };
                if take(event) && !has_list {
                    has_list = true;
                    place.set_up(resource, true);
                    if std::mem::take(&mut is_broken) {
                        tracing::info!(what = resource.as_str(), scope = %place.scope, "Watch is back");
                    }
                }
            };
            place.set_up(resource, false);
            self.metrics.count_restart(resource);
            if !is_broken {
                let what = resource.as_str();
                tracing::warn!(what, scope = %place.scope, error = why, "Watch broke, listing anew");
            }
            is_broken = true;
            wait = match has_list {
                true => FIRST_WAIT,
                false => longer(wait),
            };
            sleep(spread(wait)).await;
        }
    }

    /// Takes over one event; says whether the list is complete.
    fn take_job(&self, place: &Place, event: Event<JobSight>) -> bool {
        let now = Timestamp::now();
        match event {
            Event::Init => {
                place.jobs().begin();
                return false;
            }
            Event::InitApply(job) => {
                self.put(place, &job, now);
                return false;
            }
            Event::InitDone => {
                let gone = place.jobs().complete();
                gone.iter().for_each(|change| self.tell(change));
            }
            Event::Apply(job) => self.put(place, &job, now),
            Event::Delete(job) => {
                let uid = job.metadata.uid.as_deref().unwrap_or_default();
                let gone = place.jobs().remove(uid, View::of(&job));
                gone.iter().for_each(|change| self.tell(change));
            }
        }
        true
    }

    fn put(&self, place: &Place, job: &JobSight, now: Timestamp) {
        let change = View::of(job).map(|view| place.jobs().put(view, now));
        change.iter().for_each(|change| self.tell(change));
    }

    fn tell(&self, change: &Change) {
        let Change {
            view,
            transitions,
            questions,
            is_overrun,
        } = change;
        for transition in transitions {
            self.metrics.count(*transition);
        }
        for question in questions {
            self.desk.ask(*question, view);
        }
        let overrun = u64::from(*is_overrun);
        self.metrics.count_hazards(Hazard::TtlOverrun, overrun);
    }

    fn take_pod(&self, place: &Place, event: Event<PartialObjectMeta<Pod>>) -> bool {
        let mut pods = place.pods();
        let is_orphaned = match &event {
            Event::Init => {
                pods.begin();
                return false;
            }
            Event::InitApply(pod) | Event::Apply(pod) => pods.put(pod.meta()),
            Event::InitDone => {
                pods.complete();
                false
            }
            Event::Delete(pod) => {
                pods.remove(pod.meta());
                false
            }
        };
        let orphaned = u64::from(is_orphaned);
        self.metrics.count_hazards(Hazard::PodOrphaned, orphaned);
        !matches!(event, Event::InitApply(_))
    }
}

fn config() -> watcher::Config {
    watcher::Config::default()
        .page_size(PAGE)
        .labels(label::RUN_UID)
}

/// So that many sidecars do not come at the same time.
fn spread(wait: Duration) -> Duration {
    wait.mul_f64(0.5 + fastrand::f64() / 2.0)
}
