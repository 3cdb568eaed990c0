//! Orders of events that seeds once found, told step by step: a seed means something else whenever the model changes.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::actors::{strip, work};
use super::server::{Fate, Server};
use super::world::{Propagation, RUN, Sort, name};
use super::{Sim, look, play, runtime};
use crate::api::contract::finalizer;

/// Which news is heard: the positions in `HEARD`.
const OF_JOBS: usize = 1;
const OF_PODS: usize = 2;

/// A cluster in which nothing happens by itself, with a run, and a controller that has asked for its Job.
async fn asked_for(fate: Fate) -> Server {
    let sim = Sim {
        is_still: true,
        faults: 0,
        job_fate: Some(fate),
        ..Sim::new(0)
    };
    let server = Server {
        sim: Arc::new(Mutex::new(sim)),
        death: Arc::new(Notify::new()),
    };
    look(&server).await;
    assert_eq!(server.sim().world.all(Sort::Job).len(), 1, "it was made");
    let mut sim = server.sim();
    let Sim {
        world, truth, rng, ..
    } = &mut *sim;
    assert!(work(world, truth, rng), "its pod is made");
    assert_eq!(world.all(Sort::Pod).len(), 1);
    drop(sim);
    server
}

fn only(server: &Server, sort: Sort) -> String {
    let all = server.sim().world.all(sort);
    name(&all[0]).to_owned()
}

/// Someone takes off what holds the Job, deletes it, and leaves its pod to itself.
fn cut_off(server: &Server) {
    let (job, pod) = (only(server, Sort::Job), only(server, Sort::Pod));
    let mut sim = server.sim();
    let Sim { world, truth, .. } = &mut *sim;
    strip(world, truth, (Sort::Job, &job), finalizer::OUTCOME);
    world.delete(Sort::Job, &job, Propagation::Background);
    world.change(Sort::Pod, &pod, |pod| {
        pod["metadata"]["ownerReferences"] = json!([]);
        pod["metadata"]["finalizers"] = json!([finalizer::EVIDENCE]);
    });
}

/// Someone takes off what holds the pod.
fn let_go(server: &Server) -> String {
    let pod = only(server, Sort::Pod);
    let mut sim = server.sim();
    let Sim { world, truth, .. } = &mut *sim;
    strip(world, truth, (Sort::Pod, &pod), finalizer::EVIDENCE);
    pod
}

fn remove(server: &Server, pod: &str) {
    let mut sim = server.sim();
    sim.world.delete(Sort::Pod, pod, Propagation::Background);
}

/// Someone removes the Job and then its pod, whatever holds them.
fn lose(server: &Server) {
    cut_off(server);
    let pod = let_go(server);
    remove(server, &pod);
}

/// The run has failed for want of its Job, which was not made again.
fn assert_lost(server: &Server) {
    let (phase, missing) = stands(server, "JobMissing");
    assert_eq!(
        (&*phase, missing.as_deref()),
        ("Failed", Some("JobDeletedWhileRunning"))
    );
    assert!(server.sim().world.all(Sort::Job).is_empty());
    assert_eq!(wrongs(server), Vec::<String>::new());
}

fn hear(server: &Server, which: usize) {
    let mut sim = server.sim();
    while sim.deliver_of(which) {}
}

/// Phase of the run, and the reason of a condition that is true.
fn stands(server: &Server, condition: &str) -> (String, Option<String>) {
    let sim = server.sim();
    let status = &sim.world.get(Sort::Run, RUN).unwrap()["status"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = status["conditions"].as_array().unwrap();
    let holds = conditions
        .iter()
        .find(|known| known["type"] == condition && known["status"] == "True");
    (
        text(&status["phase"]),
        holds.map(|known| text(&known["reason"])),
    )
}

fn wrongs(server: &Server) -> Vec<String> {
    server.sim().truth.wrongs.clone()
}

#[test]
fn a_pod_that_is_heard_of_before_its_job_does_not_make_the_job_missing() {
    runtime().block_on(async {
        let server = asked_for(Fate::Unheard).await;
        hear(&server, OF_PODS);
        look(&server).await;
        assert_eq!(stands(&server, "JobMissing"), ("Running".to_owned(), None));
        assert_eq!(wrongs(&server), Vec::<String>::new());
    });
}

#[test]
fn a_pod_that_was_cut_off_is_recognised_after_a_restart() {
    runtime().block_on(async {
        let server = asked_for(Fate::DiesAfter).await;
        cut_off(&server);
        look(&server).await;
        let (phase, missing) = stands(&server, "JobMissing");
        assert_eq!(
            (&*phase, missing.as_deref()),
            ("Pending", Some("JobDeletedOrphaned"))
        );
        assert_eq!(wrongs(&server), Vec::<String>::new());
    });
}

#[test]
fn nothing_is_started_beside_a_pod_that_may_be_its_work() {
    runtime().block_on(async {
        let server = asked_for(Fate::DiesAfter).await;
        cut_off(&server);
        let pod = let_go(&server);
        look(&server).await;
        let (phase, blocked) = stands(&server, "Blocked");
        assert_eq!(
            (&*phase, blocked.as_deref()),
            ("Pending", Some("JobNameConflict"))
        );
        assert!(server.sim().world.all(Sort::Job).is_empty());
        // When this is gone as well, nothing tells that there ever was a Job.
        remove(&server, &pod);
        hear(&server, OF_PODS);
        look(&server).await;
        assert_eq!(server.sim().world.all(Sort::Job).len(), 1);
        assert_eq!(wrongs(&server), Vec::<String>::new(), "nobody could know");
    });
}

#[test]
fn a_job_that_was_heard_of_is_not_made_again_when_everything_is_gone() {
    runtime().block_on(async {
        let server = asked_for(Fate::Unheard).await;
        hear(&server, OF_JOBS);
        lose(&server);
        hear(&server, OF_JOBS);
        look(&server).await;
        assert_lost(&server);
    });
}

#[test]
fn a_job_that_is_told_of_again_after_it_went_is_still_lost_and_not_made_again() {
    runtime().block_on(async {
        let server = asked_for(Fate::Fine).await;
        hear(&server, OF_JOBS);
        let last = server.sim().world.news.len() - 1;
        lose(&server);
        hear(&server, OF_JOBS);
        hear(&server, OF_PODS);
        {
            let mut sim = server.sim();
            sim.controller.as_mut().unwrap().heard[OF_JOBS] = last;
            assert!(sim.deliver_of(OF_JOBS), "as it was when it worked");
        }
        look(&server).await;
        assert_eq!(stands(&server, "JobMissing"), ("Running".to_owned(), None));
        hear(&server, OF_JOBS);
        look(&server).await;
        assert_lost(&server);
    });
}

#[test]
fn seeds_tell_some_news_again() {
    let (_, trace) = runtime().block_on(play(0, None));
    let again = trace.iter().filter(|line| line.ends_with("is told again"));
    assert!(again.count() > 0, "{}", trace.join("\n"));
}
