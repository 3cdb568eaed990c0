//! Asks the endpoint, and keeps what it said until the status says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};
use kube::ResourceExt;

use super::reference::Reference;
use super::reply::{self, LIMIT, Question, Reply, Said};
use super::{Errand, trace};
use crate::api::kinds::AgentRun;
use crate::controller::agent_run::AgentRuns;
use crate::controller::agent_run::status::phase;
use crate::controller::driver::fault::Fault;
use crate::kit::egress::{Call, Failure, Target};

/// By which an endpoint knows that it has been given this run before.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const WHAT: &str = "call the endpoint of the run";

/// What endpoints said last, by the uid of the run; at most one for each run that has not ended.
#[derive(Debug, Default)]
pub(in crate::controller::agent_run) struct Replies(Mutex<HashMap<String, Arc<Reply>>>);

impl Replies {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Reply>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the endpoint of a run said last.
    pub(in crate::controller::agent_run) fn of(&self, run: &AgentRun) -> Option<Arc<Reply>> {
        self.all().get(&run.uid()?).cloned()
    }

    /// The status of a run has changed, or it is gone: what is stored need not be kept.
    pub(in crate::controller::agent_run) fn settle(
        &self,
        before: &AgentRun,
        after: Option<&AgentRun>,
    ) {
        let Some(uid) = before.uid() else {
            return;
        };
        let mut all = self.all();
        let Some(reply) = all.get(&uid) else {
            return;
        };
        let open = after.filter(|after| after.uid().as_ref() == Some(&uid));
        let open = open.filter(|after| !phase(*after).is_terminal());
        let is_open = open
            .and_then(Reference::of)
            .is_some_and(|reference| match reply.question {
                Question::Submit(attempt) => {
                    attempt == reference.attempt && reference.submitted_at.is_none()
                }
                Question::Ask => true,
            });
        if !is_open {
            all.remove(&uid);
        }
    }
}

impl AgentRuns {
    /// Carries out an errand, unless too many are under way.
    pub(in crate::controller::agent_run) async fn run_errand(
        &self,
        run: &AgentRun,
        errand: &Errand,
    ) -> Result<bool, Fault> {
        let (question, url) = match errand {
            Errand::Submit {
                endpoint, attempt, ..
            } => (Question::Submit(*attempt), endpoint),
            Errand::Ask { url } => (Question::Ask, url),
        };
        let said = match Target::parse(url) {
            Err(refusal) => Said::Denied {
                why: Failure::Refused(refusal).to_string(),
            },
            Ok(target) => {
                let call = call(run, errand, target.clone());
                let Some(answer) = self.context.call_out(WHAT, call).await? else {
                    return Ok(false);
                };
                reply::read(&target, answer)
            }
        };
        let Some(uid) = run.uid() else {
            return Ok(false);
        };
        let mut all = self.replies.all();
        let before = all.get(&uid).filter(|before| before.question == question);
        let failures = match said {
            Said::Busy { .. } => before.map_or(0, |before| before.failures).saturating_add(1),
            Said::Taken(_) | Said::Refused { .. } | Said::Denied { .. } => 0,
        };
        let reply = Reply {
            question,
            at: self.context.clock.now(),
            said,
            failures,
        };
        all.insert(uid, Arc::new(reply));
        Ok(true)
    }
}

fn call(run: &AgentRun, errand: &Errand, target: Target) -> Call {
    let json = HeaderValue::from_static("application/json");
    let mut headers = vec![(header::ACCEPT, json.clone())];
    let text = |text: &str| HeaderValue::from_str(text).ok();
    let trace = trace(run).and_then(|trace| text(trace));
    headers.extend(trace.map(|trace| (TRACEPARENT, trace)));
    let (method, body) = match errand {
        Errand::Submit { body, .. } => {
            headers.push((header::CONTENT_TYPE, json));
            let key = run.uid().as_deref().and_then(text);
            headers.extend(key.map(|key| (IDEMPOTENCY_KEY, key)));
            (Method::POST, Bytes::from(body.clone()))
        }
        Errand::Ask { .. } => (Method::GET, Bytes::new()),
    };
    Call {
        method,
        target,
        headers,
        credential: None,
        body,
        limit: LIMIT,
    }
}
