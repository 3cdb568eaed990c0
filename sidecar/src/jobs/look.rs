//! Answers questions about Jobs: reads the run, and what else a verdict needs, live and with a deadline; counts and tells
//! what `judge` makes of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agents::api::contract::label;
use agents::api::custody::{Absence, PodEvidence, testimony};
use agents::api::kind::Kind;
use agents::events::{Effect, Emitter, Note, Occurrence, Reason, Regarding};
use futures::StreamExt;
use futures::stream::poll_fn;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

use super::judge::{Found, Notice, Question, Run, Verdict, judge};
use super::metrics::{Answer, Metrics};
use super::sight::PodSight;
use super::standing::Standing;
use super::view::View;

/// Questions that may wait. A namespace that is deleted asks one for each of its Jobs.
const WAITING: usize = 4096;
/// Questions that are looked into at a time.
const AT_ONCE: usize = 4;
/// Time for one call.
const CALL: Duration = Duration::from_secs(10);
/// Tries for one question, and the wait before the second; it doubles.
const TRIES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Pods of a run that are read.
const PODS: u32 = 100;
/// Notices that are remembered, so that what was told when a Job began to go is not told again when it is gone.
const REMEMBERED: usize = 1024;

/// A question about a Job as it was when the question came up.
pub(super) struct Case {
    /// The question.
    pub(super) question: Question,
    /// The Job.
    pub(super) job: View,
}

/// Where questions are put. Cheap to clone.
#[derive(Clone)]
pub(super) struct Desk {
    cases: Sender<Case>,
    metrics: Metrics,
}

impl Desk {
    /// Puts a question; one for which there is no room is counted and dropped.
    pub(super) fn ask(&self, question: Question, job: &View) {
        let case = Case {
            question,
            job: job.clone(),
        };
        if self.cases.try_send(case).is_err() {
            self.metrics.count_answer(Answer::Dropped);
        }
    }
}

/// Who answers them.
pub(super) struct Inspector {
    client: Client,
    emitter: Emitter,
    metrics: Metrics,
    told: Mutex<VecDeque<(Arc<str>, Reason)>>,
}

/// Why a question could not be answered.
enum Failure {
    /// It may pass.
    Passing(String),
    /// It will not.
    Lasting(String),
}

/// What a live look gave.
enum Look {
    /// The Job is still there: a label of it went, nothing else.
    Still,
    /// It is as the question says.
    Found {
        found: Found,
        /// The run, for the Event about it.
        run: Option<Regarding>,
    },
}

impl Inspector {
    /// An inspector, and the desk that questions to it are put on.
    pub(super) fn new(
        client: Client,
        emitter: Emitter,
        metrics: Metrics,
    ) -> (Self, Desk, Receiver<Case>) {
        let (cases, receiver) = channel(WAITING);
        let desk = Desk {
            cases,
            metrics: metrics.clone(),
        };
        let inspector = Self {
            client,
            emitter,
            metrics,
            told: Mutex::default(),
        };
        (inspector, desk, receiver)
    }

    /// Answers for ever.
    pub(super) async fn run(&self, mut cases: Receiver<Case>) {
        poll_fn(|context| cases.poll_recv(context))
            .for_each_concurrent(AT_ONCE, |case| self.answer(case))
            .await;
    }

    async fn answer(&self, case: Case) {
        let mut wait = FIRST_WAIT;
        for _ in 0..TRIES {
            match self.look(&case).await {
                Ok(look) => return self.conclude(&case, look),
                Err(Failure::Lasting(error)) => {
                    self.say_failed(&case, &error);
                    return;
                }
                Err(Failure::Passing(error)) => {
                    tracing::debug!(job = %case.job.name, error, "A Job could not be looked into, trying again");
                }
            }
            sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            wait *= 2;
        }
        self.say_failed(&case, "the API server did not answer");
    }

    fn say_failed(&self, case: &Case, error: &str) {
        let View {
            namespace, name, ..
        } = &case.job;
        tracing::warn!(%namespace, job = %name, error, "Why a Job goes could not be found out");
        self.metrics.count_answer(Answer::Failed);
    }

    fn conclude(&self, case: &Case, look: Look) {
        let Look::Found { found, run } = look else {
            return self.metrics.count_answer(Answer::InOrder);
        };
        let job = &case.job;
        let notice = match judge(case.question, job, &found, Timestamp::now()) {
            Verdict::InOrder => return self.metrics.count_answer(Answer::InOrder),
            Verdict::Endangered(hazard, notice) => {
                self.metrics.count_hazards(hazard, 1);
                notice
            }
            Verdict::Premature {
                class,
                stage,
                notice,
            } => {
                self.metrics.count_premature(class, stage);
                tracing::warn!(
                    namespace = %job.namespace, run = %job.owner.name, job = %job.name,
                    %class, stage = stage.as_str(), "Job deleted before its outcome was stored"
                );
                notice
            }
        };
        let answer = match (notice, run) {
            (Some(notice), Some(run)) if self.is_new(job, notice.reason) => {
                self.tell(job, run, notice);
                Answer::Told
            }
            (_, _) => Answer::Counted,
        };
        self.metrics.count_answer(answer);
    }

    fn is_new(&self, job: &View, reason: Reason) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(uid, said): &(Arc<str>, Reason)| *uid == job.uid && *said == reason;
        if told.iter().any(is_it) {
            return false;
        }
        if told.len() == REMEMBERED {
            told.pop_front();
        }
        told.push_back((Arc::clone(&job.uid), reason));
        true
    }

    /// In the words and under the name that the controller would give it, so that all make one Event.
    fn tell(&self, job: &View, run: Regarding, notice: Notice) {
        let Notice { reason, note } = notice;
        let related = Regarding::job(&job.namespace, &job.name).with_uid(&*job.uid);
        let occurrence = Occurrence::new(run, reason, Note::new(note)).related_to(related);
        self.emitter.emit(Effect::Real, occurrence);
    }

    /// Reads no more than the verdict needs.
    async fn look(&self, case: &Case) -> Result<Look, Failure> {
        let job = &case.job;
        let mut absence = Absence::NotFound;
        if case.question == Question::Gone {
            let jobs: Api<Job> = Api::namespaced(self.client.clone(), &job.namespace);
            match answered(jobs.get_metadata_opt(&job.name)).await? {
                Some(there) if there.uid().as_deref() == Some(&*job.uid) => return Ok(Look::Still),
                Some(_) => absence = Absence::NameTaken,
                None => {}
            }
        }
        let (run, regarding) = self.run_of(job).await?;
        let is_over = matches!(&run, Run::There(standing) if standing.is_recorded);
        let mut found = Found {
            absence,
            run,
            namespace_terminating: false,
            pods: Vec::new(),
        };
        if !is_over {
            found.namespace_terminating = self.is_terminating(&job.namespace).await?;
            if matches!(case.question, Question::Going | Question::Gone) {
                found.pods = self.pods_of(job).await?;
            }
        }
        Ok(Look::Found {
            found,
            run: regarding,
        })
    }

    async fn run_of(&self, job: &View) -> Result<(Run, Option<Regarding>), Failure> {
        match job.owner.kind == Kind::ToolRun {
            true => self.read(job, Standing::of_tool_run).await,
            false => self.read(job, Standing::of_agent_run).await,
        }
    }

    async fn read<R>(
        &self,
        job: &View,
        standing: fn(&R, &View) -> Standing,
    ) -> Result<(Run, Option<Regarding>), Failure>
    where
        R: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let runs: Api<R> = Api::namespaced(self.client.clone(), &job.namespace);
        Ok(match answered(runs.get_opt(&job.owner.name)).await? {
            None => (Run::Gone, None),
            Some(run) if run.uid().as_deref() != Some(&*job.owner.uid) => (Run::Replaced, None),
            Some(run) => (Run::There(standing(&run, job)), Some(Regarding::of(&run))),
        })
    }

    /// Where that may not be asked, the namespace counts as staying, as it does for the controller.
    async fn is_terminating(&self, namespace: &str) -> Result<bool, Failure> {
        let all: Api<Namespace> = Api::all(self.client.clone());
        match answered(all.get_metadata_opt(namespace)).await {
            Ok(Some(namespace)) => Ok(namespace.metadata.deletion_timestamp.is_some()),
            Ok(None) => Ok(true),
            Err(Failure::Lasting(_)) => Ok(false),
            Err(passing) => Err(passing),
        }
    }

    async fn pods_of(&self, job: &View) -> Result<Vec<PodEvidence>, Failure> {
        let pods: Api<PodSight> = Api::namespaced(self.client.clone(), &job.namespace);
        let labels = format!(
            "{}={},{}={}",
            label::RUN_UID,
            job.owner.uid,
            label::JOB_NAME,
            job.name
        );
        let params = ListParams::default().labels(&labels).limit(PODS);
        let pods = answered(pods.list(&params)).await?;
        let told = |pod: &PodSight| {
            let node = pod.spec.node_name.as_deref();
            testimony(&pod.metadata, node, pod.status.as_ref())
        };
        Ok(pods.iter().filter_map(told).collect())
    }
}

/// An answer of the API server, in time. What it refuses it will refuse again.
async fn answered<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, Failure> {
    match timeout(CALL, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 400..=428) => {
            Err(Failure::Lasting(status.to_string()))
        }
        Ok(Err(error)) => Err(Failure::Passing(error.to_string())),
        Err(_) => Err(Failure::Passing("no answer in time".to_owned())),
    }
}
