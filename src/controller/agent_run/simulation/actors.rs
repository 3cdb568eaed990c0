//! Everyone else in the cluster: the Job controller, nodes, the garbage collector, the TTL controller, and people.

use std::time::Duration;

use serde_json::{Value, json};

use super::truth::Truth;
use super::world::{
    FOREGROUND, NAMESPACE, ORPHAN, Propagation, RUN, Sort, TRACKING, World, end_of, finalizers,
    free, hold, is_abandoned, is_going, is_held, made_for, name, uid,
};
use crate::api::contract::{container, finalizer, label};

/// What may become of what an object owns.
const POLICIES: [Propagation; 3] = [
    Propagation::Background,
    Propagation::Foreground,
    Propagation::Orphan,
];

/// What may happen beyond the everyday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Climate {
    /// Nobody interferes.
    Calm,
    /// People and policies do what they may: delete, cancel, set times to live.
    Rough,
    /// Someone also takes off finalizers.
    Hostile,
}

/// One thing that the cluster itself has to do.
#[derive(Clone, Debug)]
enum Chore {
    MakePod(String),
    Place(String),
    StartPod(String),
    EndPod(String),
    RemovePod(String),
    Untrack(String),
    FinishJob(String, bool),
    Expire(String),
    Collect(Sort, String),
    Cascade(Sort, String),
}

/// Does one of the things that are due, chosen by chance; says whether there was one.
pub(super) fn work(world: &mut World, truth: &mut Truth, rng: &mut fastrand::Rng) -> bool {
    let chores = chores(world);
    let Some(chore) = rng.choice(&chores) else {
        return false;
    };
    world.say(format!("{chore:?}"));
    carry_out(world, truth, chore, rng);
    true
}

fn chores(world: &World) -> Vec<Chore> {
    let mut chores = Vec::new();
    for job in world.all(Sort::Job) {
        of_job(world, &job, &mut chores);
    }
    for pod in world.all(Sort::Pod) {
        of_pod(world, &pod, &mut chores);
    }
    for ((sort, name), object) in &world.objects {
        if is_abandoned(world, object) && !is_going(object) {
            chores.push(Chore::Collect(*sort, name.clone()));
        }
        if is_going(object) && may_cascade(world, object) {
            chores.push(Chore::Cascade(*sort, name.clone()));
        }
    }
    chores
}

/// Whether the garbage collector has something to do about what belongs to an object that is going.
fn may_cascade(world: &World, object: &Value) -> bool {
    let dependents = world.dependents(uid(object));
    let stays =
        |(sort, name): &(Sort, String)| world.get(*sort, name).is_some_and(|it| !is_going(it));
    is_held(object, ORPHAN)
        || is_held(object, FOREGROUND) && (dependents.is_empty() || dependents.iter().any(stays))
}

fn of_job(world: &World, job: &Value, chores: &mut Vec<Chore>) {
    let own = name(job).to_owned();
    let pods = world.dependents(uid(job));
    if let Some((ended, _)) = end_of(job) {
        let ttl = job["spec"]["ttlSecondsAfterFinished"].as_u64();
        let due = ttl.and_then(|ttl| ended.checked_add(Duration::from_secs(ttl)).ok());
        if !is_going(job) && due.is_some_and(|due| due <= world.now) {
            chores.push(Chore::Expire(own));
        }
        return;
    }
    if is_going(job) {
        return;
    }
    if pods.is_empty() {
        // A pod that is gone before it was counted counts as failed.
        chores.push(match job["status"]["active"].is_number() {
            true => Chore::FinishJob(own, false),
            false => Chore::MakePod(own),
        });
        return;
    }
    let ends: Vec<Option<bool>> = pods
        .iter()
        .filter_map(|(sort, name)| world.get(*sort, name))
        .map(ended_well)
        .collect();
    if let [Some(well)] = ends[..] {
        chores.push(Chore::FinishJob(own, well));
    }
}

fn of_pod(world: &World, pod: &Value, chores: &mut Vec<Chore>) {
    let own = name(pod).to_owned();
    let is_placed = pod["spec"]["nodeName"].is_string();
    match pod["status"]["phase"].as_str() {
        Some("Pending") if !is_placed && !is_going(pod) => chores.push(Chore::Place(own)),
        Some("Pending") if is_placed && !is_going(pod) => chores.push(Chore::StartPod(own)),
        Some("Pending") if is_placed => chores.push(Chore::EndPod(own)),
        Some("Running") => chores.push(Chore::EndPod(own)),
        Some(_) | None => {
            if is_going(pod) && finalizers(pod).is_empty() {
                chores.push(Chore::RemovePod(own.clone()));
            }
        }
    }
    // A Job that is going, gone or over counts no pod any more.
    let job = pod["metadata"]["labels"][label::JOB_NAME].as_str();
    let job = job.and_then(|job| world.get(Sort::Job, job));
    let is_counted = job.is_some_and(|job| !is_going(job) && end_of(job).is_none());
    let never_ran = is_going(pod) && !is_placed;
    if is_held(pod, TRACKING) && (!is_counted || never_ran) {
        chores.push(Chore::Untrack(name(pod).to_owned()));
    }
}

/// Whether a pod ended well; none if it has not ended.
fn ended_well(pod: &Value) -> Option<bool> {
    match pod["status"]["phase"].as_str() {
        Some("Succeeded") => Some(true),
        Some("Failed") => Some(false),
        Some(_) | None => None,
    }
}

fn carry_out(world: &mut World, truth: &mut Truth, chore: &Chore, rng: &mut fastrand::Rng) {
    let now = world.now;
    match chore {
        Chore::MakePod(job) => make_pod(world, job),
        Chore::Place(pod) => world.change(Sort::Pod, pod, |pod| {
            pod["spec"]["nodeName"] = json!("node");
        }),
        Chore::StartPod(pod) => world.change(Sort::Pod, pod, |pod| {
            pod["status"]["phase"] = json!("Running");
        }),
        Chore::EndPod(name) => {
            let is_killed = world.get(Sort::Pod, name).is_some_and(is_going);
            let code = match is_killed {
                true if rng.u8(..4) > 0 => 143,
                _ if rng.u8(..3) > 0 => 0,
                _ => 1,
            };
            truth.ended(pod_job(world, name), code == 0);
            let phase = if code == 0 { "Succeeded" } else { "Failed" };
            world.change(Sort::Pod, name, |pod| {
                pod["status"] = json!({"phase": phase, "containerStatuses": [{
                    "name": container::AGENT_RUNNER, "image": "i", "imageID": "i", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": code, "finishedAt": now}},
                }]});
            });
        }
        Chore::RemovePod(pod) => world.change(Sort::Pod, pod, |_| {}),
        Chore::Untrack(pod) => world.change(Sort::Pod, pod, |pod| free(pod, TRACKING)),
        Chore::FinishJob(job, well) => {
            let type_ = if *well { "Complete" } else { "Failed" };
            let reason = if *well {
                "CompletionsReached"
            } else {
                "BackoffLimitExceeded"
            };
            let made = world.get(Sort::Job, job).map(|job| uid(job).to_owned());
            truth.judged(made.unwrap_or_default(), *well);
            world.change(Sort::Job, job, |job| {
                job["status"]["conditions"] = json!([{
                    "type": type_, "status": "True", "reason": reason, "lastTransitionTime": now,
                }]);
            });
        }
        Chore::Expire(job) => world.delete(Sort::Job, job, Propagation::Foreground),
        Chore::Collect(sort, name) => world.delete(*sort, name, Propagation::Background),
        Chore::Cascade(sort, name) => cascade(world, *sort, name),
    }
}

/// The uid of the Job that a pod belongs to.
fn pod_job(world: &World, pod: &str) -> String {
    let pod = world.get(Sort::Pod, pod);
    let job = pod.and_then(made_for).unwrap_or_default();
    job.to_owned()
}

fn make_pod(world: &mut World, job_name: &str) {
    let Some(job) = world.take(Sort::Job, job_name) else {
        return;
    };
    let number = world.known.len();
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": job["spec"]["template"]["metadata"].clone(),
        "spec": {"containers": []}, "status": {"phase": "Pending"},
    });
    pod["metadata"]["name"] = json!(format!("{job_name}-{number}"));
    pod["metadata"]["annotations"] = json!({"made-for": uid(&job)});
    pod["metadata"]["labels"][label::JOB_NAME] = json!(job_name);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": job_name, "uid": uid(&job), "controller": true,
    }]);
    hold(&mut pod, TRACKING);
    world.create(Sort::Pod, pod);
    world.change(Sort::Job, job_name, |job| {
        job["status"]["active"] = json!(1)
    });
}

/// The garbage collector about an object that goes with, or without, what belongs to it.
fn cascade(world: &mut World, sort: Sort, name: &str) {
    let Some(object) = world.take(sort, name) else {
        return;
    };
    let dependents = world.dependents(uid(&object));
    if is_held(&object, ORPHAN) {
        for (sort, name) in dependents {
            world.change(sort, &name, |dependent| {
                dependent["metadata"]["ownerReferences"] = json!([]);
            });
        }
        world.change(sort, name, |object| free(object, ORPHAN));
        return;
    }
    if dependents.is_empty() {
        world.change(sort, name, |object| free(object, FOREGROUND));
        return;
    }
    for (sort, name) in dependents {
        if world.get(sort, &name).is_some_and(|it| !is_going(it)) {
            world.delete(sort, &name, Propagation::Background);
        }
    }
}

/// Someone interferes.
pub(super) fn interfere(
    world: &mut World,
    truth: &mut Truth,
    rng: &mut fastrand::Rng,
    climate: Climate,
) {
    let jobs = world.all(Sort::Job);
    let pods = world.all(Sort::Pod);
    let job = rng.choice(&jobs).map(|job| name(job).to_owned());
    let pod = rng.choice(&pods).map(|pod| name(pod).to_owned());
    let policy = POLICIES[rng.usize(..POLICIES.len())];
    let most = match climate {
        Climate::Calm => 1,
        Climate::Rough => 7,
        // What it takes for a Job to vanish at once, without a last word, is rare enough else: it has three chances.
        Climate::Hostile => 12,
    };
    match (rng.u8(..most), job, pod) {
        (0, _, _) => world.change(Sort::Run, RUN, |run| {
            run["metadata"]["annotations"]["touched"] = json!("yes");
        }),
        (1, Some(job), _) => {
            world.say(format!("someone deletes {job} ({policy:?})"));
            world.delete(Sort::Job, &job, policy);
        }
        (2, Some(job), _) => {
            world.say(format!("someone sets a time to live on {job}"));
            world.change(Sort::Job, &job, |job| {
                job["spec"]["ttlSecondsAfterFinished"] = json!(0);
            });
        }
        (3, _, Some(pod)) => {
            world.say(format!("someone deletes {pod}"));
            world.delete(Sort::Pod, &pod, Propagation::Background);
        }
        (4, _, _) => cancel(world, truth),
        (5, _, _) => {
            world.say("someone deletes the run");
            truth.is_stopped = true;
            world.delete(Sort::Run, RUN, Propagation::Background);
        }
        (6, _, _) => {
            world.say("the clock moves on");
            let hours = Duration::from_secs(3600 * rng.u64(1..4));
            world.now = world.now.checked_add(hours).unwrap_or(world.now);
        }
        (7, Some(job), _) => strip(world, truth, (Sort::Job, &job), finalizer::OUTCOME),
        (8, _, Some(pod)) => strip(world, truth, (Sort::Pod, &pod), finalizer::EVIDENCE),
        (9.., Some(job), _) => {
            strip(world, truth, (Sort::Job, &job), finalizer::OUTCOME);
            world.say(format!("and deletes it ({policy:?})"));
            world.delete(Sort::Job, &job, policy);
        }
        _ => {}
    }
}

fn cancel(world: &mut World, truth: &mut Truth) {
    world.say("someone cancels the run");
    truth.is_stopped = true;
    world.change(Sort::Run, RUN, |run| {
        run["spec"]["cancel"] = json!(true);
        let next = run["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        run["metadata"]["generation"] = json!(next);
    });
}

/// Someone takes away what keeps an object until it is read.
pub(super) fn strip(world: &mut World, truth: &mut Truth, (sort, name): (Sort, &str), held: &str) {
    world.say(format!("someone strips {name}"));
    world.change(sort, name, |object| {
        truth.stripped(object);
        free(object, held);
    });
}

/// What there is before anything happens.
pub(super) fn set_the_scene(world: &mut World, rng: &mut fastrand::Rng) {
    let mut run = json!({
        "apiVersion": "agents.proompteng.ai/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": RUN, "namespace": NAMESPACE, "annotations": {}},
        "spec": {"agentRef": {"name": "coder"}, "implementation": {"inline": {"text": "Do it."}},
            "runtime": {"type": "job"}, "workload": {"image": "runner:1"}},
    });
    if rng.u8(..3) == 0 {
        run["spec"]["runtime"]["type"] = json!("workflow");
        run["spec"]["workflow"] = json!({"steps": [
            {"name": "one", "retries": 1, "retryBackoffSeconds": 5}, {"name": "two"},
        ]});
    }
    world.create(Sort::Run, run);
}
