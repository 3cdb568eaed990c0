//! The paragraph about a run, from what was found. Pure: the same facts give the same words.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::policy::Verdict;
use super::{advice, evidence};
use crate::api::condition::{Condition, ConditionType, Hindrance, Lifecycle};
use crate::api::custody::Class;
use crate::api::kinds::AgentRun;
use crate::api::kinds::shared::{JobMissing, JobRef};
use crate::api::object::cause;
use crate::api::phase::Phase;
use crate::cli::run::view;
use crate::cli::shown::age;
use crate::controller::is_of_policy;

/// What was found about a run. What could not be looked at is absent.
pub(super) struct Facts {
    pub(super) run: AgentRun,
    pub(super) events: Option<Vec<Said>>,
    pub(super) jobs: Option<Vec<Job>>,
    pub(super) pods: Option<Vec<Pod>>,
    /// What the policy in force says.
    pub(super) verdict: Option<Verdict>,
    pub(super) now: Timestamp,
}

/// What an Event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) is_warning: bool,
    pub(super) reason: String,
    pub(super) note: String,
    pub(super) at: Option<Timestamp>,
}

/// Why the run is in its state, and what to do about it.
pub(super) fn text(facts: &Facts) -> String {
    let told = why(&facts.run);
    let mut sentences = standing(facts);
    sentences.extend(told.sentences);
    sentences.extend(evidence::sentences(facts));
    sentences.extend(by_policy(facts));
    let so_far = sentences.join(" ");
    sentences.extend(last_warning(facts, &so_far));
    sentences.extend(unseen(facts));
    sentences.extend(told.advice.map(str::to_owned));
    sentences.join(" ")
}

/// A condition of the run that holds.
fn holds(run: &AgentRun, type_: ConditionType) -> Option<&Condition> {
    let conditions = run.status.as_ref()?.conditions.as_ref()?;
    let mut all = conditions.iter();
    all.find(|one| one.type_ == type_.as_str() && one.status == "True")
}

/// A moment, and how long ago it was.
pub(super) fn when(at: Timestamp, now: Timestamp) -> String {
    format!("{at} ({} ago)", age(view::between(at, now)))
}

fn standing(facts: &Facts) -> Vec<String> {
    let Facts { run, now, .. } = facts;
    let name = run.name_any();
    let made = run.creation_timestamp().map(|made| made.0);
    let Some(status) = &run.status else {
        let made = made.map_or_else(String::new, |at| {
            format!(" It was made at {}.", when(at, *now))
        });
        return vec![format!(
            "{name} has no status: no controller has looked at it.{made}"
        )];
    };
    let phase = view::phase(run);
    let first = match (view::ended(run), status.started_at, status.finished_at) {
        (Some(_), Some(from), Some(to)) => {
            let worked = age(view::between(from, to));
            format!(
                "{name} is {phase} since {}, after {worked} of work.",
                when(to, *now)
            )
        }
        (Some(_), None, Some(to)) => {
            format!(
                "{name} is {phase} since {}, without having begun.",
                when(to, *now)
            )
        }
        (None, Some(from), _) => format!("{name} is {phase}; it began at {}.", when(from, *now)),
        (Some(_) | None, _, _) => {
            let made = made.map_or_else(String::new, |at| {
                format!("; it was made at {}", when(at, *now))
            });
            format!("{name} is {phase}{made}.")
        }
    };
    let mut sentences = vec![first];
    sentences.extend(behind(run));
    if let Some(at) = &run.metadata.deletion_timestamp {
        sentences.push(format!("It is being deleted since {}.", when(at.0, *now)));
    }
    if run.spec.cancel == Some(true) && view::ended(run).is_none() {
        sentences.push("It was asked to stop.".to_owned());
    }
    sentences
}

/// That the status is about an older spec.
fn behind(run: &AgentRun) -> Option<String> {
    let (seen, newest) = (
        run.status.as_ref()?.observed_generation?,
        run.metadata.generation?,
    );
    (seen < newest).then(|| {
        format!("Its spec was changed since: the status is about generation {seen}, and {newest} is the newest.")
    })
}

/// Why, and what to do about it.
struct Told {
    sentences: Vec<String>,
    advice: Option<&'static str>,
}

/// The missing Job says most; then what holds the run back; then how it ended or goes.
fn why(run: &AgentRun) -> Told {
    if run.status.is_none() {
        return Told {
            sentences: Vec::new(),
            advice: Some("See that agents-controllers run and that they follow this namespace."),
        };
    }
    let missing = holds(run, ConditionType::JobMissing);
    if let Some(class) = missing.and_then(|one| Class::parse(one.reason.as_deref()?)) {
        return missing_job(run, class);
    }
    let is_over = view::ended(run).is_some();
    if let Some(blocked) = holds(run, ConditionType::Blocked).filter(|_| !is_over) {
        let word = blocked.reason.as_deref().unwrap_or_default();
        let mut sentences = vec![format!("It is held back: {}", meaning(blocked))];
        sentences.extend(waits_for(run));
        return Told {
            sentences,
            advice: Hindrance::parse(word).map(advice::of_blocked),
        };
    }
    let Some(told) = view::told(run) else {
        return Told {
            sentences: Vec::new(),
            advice: None,
        };
    };
    let word = told.reason.as_deref().unwrap_or_default();
    let advice = match is_over && view::ended(run) != Some(Phase::Succeeded) {
        true => advice::of_end(Lifecycle::parse(word), cause::Reason::parse(word)),
        false => None,
    };
    Told {
        sentences: vec![format!("The reason: {}", meaning(told))],
        advice,
    }
}

/// The step that a workflow is at.
fn waits_for(run: &AgentRun) -> Option<String> {
    let steps = run.status.as_ref()?.workflow.as_ref()?.steps.as_ref()?;
    let step = steps.iter().find(|step| step.finished_at.is_none())?;
    Some(format!("It is at step {}.", step.name.as_deref()?))
}

/// What a condition says: the meaning of its word, and its own message.
fn meaning(told: &Condition) -> String {
    let word = told.reason.as_deref().unwrap_or("unknown");
    let known = Lifecycle::parse(word).map(Lifecycle::meaning);
    let known = known.or_else(|| cause::Reason::parse(word).map(cause::Reason::meaning));
    let known = known.or_else(|| Class::parse(word).map(Class::meaning));
    let known = known.map(|text| lower(text.trim_end_matches('.')));
    let message = told
        .message
        .as_deref()
        .unwrap_or_default()
        .trim_end_matches('.');
    match (known, message) {
        (Some(known), "") => format!("{known} ({word})."),
        (Some(known), message) => format!("{known} ({word}): {message}."),
        (None, "") => format!("{word}."),
        (None, message) => format!("{word}: {message}."),
    }
}

/// The sentence within another one. A word with more capitals is a name and stays.
pub(super) fn lower(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_name = first.chars().skip(1).any(char::is_uppercase);
    let mut letters = text.chars();
    match letters.next() {
        Some(letter) if !is_name => letter.to_lowercase().chain(letters).collect(),
        Some(_) | None => text.to_owned(),
    }
}

fn missing_job(run: &AgentRun, class: Class) -> Told {
    let reference = missed(run);
    let name = reference
        .and_then(|job| job.name.as_deref())
        .unwrap_or("of the run");
    let found = reference.and_then(|job| job.missing.as_ref());
    let why = lower(class.meaning().trim_end_matches('.'));
    let certainty = found.and_then(|found| found.certainty.as_deref());
    let certainty = certainty.map_or_else(String::new, |word| format!(", {word}"));
    let mut sentences = vec![format!(
        "Its Job {name} is missing: {why} ({class}{certainty})."
    )];
    if let Some(actor) = found.and_then(|found| found.actor.as_deref()) {
        sentences.push(format!("It was deleted by {actor}."));
    }
    let deleted = reference.and_then(|job| job.deletion.as_ref()?.deleted_at);
    if let Some(at) = deleted {
        sentences.push(format!("Its deletion was asked for at {at}."));
    }
    match class {
        // What never was had no end; why it never was, the API server said.
        Class::JobNeverCreated => sentences.extend(refusal(run)),
        Class::JobReplaced
        | Class::NamespaceTerminating
        | Class::OwnerDeleted
        | Class::JobTtlExpired
        | Class::JobDeletedWhileRunning
        | Class::JobDeletedOrphaned
        | Class::JobDeletedByActor
        | Class::JobDeletedUnknown => sentences.extend(found.and_then(recovered)),
    }
    Told {
        sentences,
        advice: Some(advice::of_missing(class)),
    }
}

/// What was said when the Job was to be made.
fn refusal(run: &AgentRun) -> Option<String> {
    let message = view::told(run)?.message.as_deref()?;
    Some(format!("It was told: {}.", message.trim_end_matches('.')))
}

fn recovered(found: &JobMissing) -> Option<String> {
    let witness = match found.recovered.as_deref()? {
        "none" => return Some("Nobody knows how it ended.".to_owned()),
        "fromDeletedObject" => "its last state, as the watch saw it",
        "fromPod" => "its pod",
        "fromRunnerReport" => "the report of its runner",
        _ => return None,
    };
    Some(format!(
        "How it ended is known all the same, from {witness}."
    ))
}

/// The Job that was missed last.
fn missed(run: &AgentRun) -> Option<&JobRef> {
    let found = view::jobs(run).find(|job| job.missing.is_some() || job.deletion.is_some());
    found.or_else(|| view::jobs(run).next())
}

/// What the policy in force says, where that matters: a run that ended well is past it, and one that it accepts is only
/// told so if a policy stopped it.
fn by_policy(facts: &Facts) -> Option<String> {
    if view::ended(&facts.run) == Some(Phase::Succeeded) {
        return None;
    }
    let word =
        view::told(&facts.run).and_then(|told| cause::Reason::parse(told.reason.as_deref()?));
    match facts.verdict.as_ref()? {
        Verdict::Refused(causes) => Some(format!(
            "By the policy in force it would be refused: {}.",
            causes.join("; ").trim_end_matches('.')
        )),
        Verdict::Accepted if word.is_some_and(is_of_policy) => {
            Some("By the policy in force it would be accepted.".to_owned())
        }
        Verdict::Accepted | Verdict::NoPolicy => None,
    }
}

/// The last warning, unless its words were said already.
fn last_warning(facts: &Facts, said: &str) -> Option<String> {
    let warnings = facts
        .events
        .iter()
        .flatten()
        .filter(|event| event.is_warning);
    let last = warnings.max_by_key(|event| event.at)?;
    let Said {
        reason, note, at, ..
    } = last;
    let note = note.trim_end_matches('.');
    if said.contains(note) {
        return None;
    }
    let at = at.map_or_else(String::new, |at| {
        format!(", {} ago", age(view::between(at, facts.now)))
    });
    Some(format!("The last warning about it{at}: {note} ({reason})."))
}

/// What could not be looked at, so that nobody takes silence for health.
fn unseen(facts: &Facts) -> Option<String> {
    let parts = [
        ("Events", facts.events.is_none()),
        ("Jobs", facts.jobs.is_none()),
        ("pods", facts.pods.is_none()),
    ];
    let lacking: Vec<&str> = parts
        .iter()
        .filter(|(_, lacking)| *lacking)
        .map(|(part, _)| *part)
        .collect();
    let policy = "The policy in force could not be read.";
    let policy = facts.verdict.is_none().then(|| policy.to_owned());
    let lacking = (!lacking.is_empty())
        .then(|| format!("Its {} could not be looked at.", lacking.join(", ")));
    lacking
        .into_iter()
        .chain(policy)
        .reduce(|one, other| format!("{one} {other}"))
}

#[cfg(test)]
mod tests;
