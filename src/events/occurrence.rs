//! What a program says when it emits an Event: about which object, why, and in which words.
//!
//! Nothing here knows how often it has been said before; that is `limiter`.

use std::borrow::Cow;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

use super::reason::Reason;
use crate::api::kind::Kind;
use crate::api::text::sanitise::{NOTE_LIMIT, Secrets, sanitise};

/// Longest name of an object. A refused object may carry a longer one, which nobody has checked yet.
const NAME_LIMIT: usize = 253;

/// Whether what caused the Event is stored. Asked for at every emission, so that a dry run cannot be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is real.
    Real,
    /// It is a rehearsal and must leave no trace.
    DryRun,
}

impl Effect {
    /// As an admission request says it: `dryRun` is absent or false when the request is real.
    pub fn of_request(dry_run: bool) -> Self {
        if dry_run { Self::DryRun } else { Self::Real }
    }
}

/// The object that an Event is about. It need not exist: the object of a refused request has no uid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Regarding {
    pub(super) api_version: Cow<'static, str>,
    pub(super) kind: Cow<'static, str>,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: Option<String>,
    /// Separates the series of one spec from those of the next; not part of the Event.
    pub(super) generation: Option<i64>,
}

impl Regarding {
    /// An object as it was read.
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        let meta = object.meta();
        let name = meta.name.as_deref().or(meta.generate_name.as_deref());
        Self {
            api_version: K::api_version(&()),
            kind: K::kind(&()),
            namespace: meta.namespace.clone(),
            name: fit(name.unwrap_or_default()),
            uid: meta.uid.clone(),
            generation: meta.generation,
        }
    }

    /// An object of one of our kinds by its name, existing or not.
    pub fn named(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            api_version: kind.api_version().into(),
            kind: kind.as_str().into(),
            namespace: Some(namespace.to_owned()),
            name: fit(name),
            uid: None,
            generation: None,
        }
    }

    /// A Job by its name, existing or not.
    pub fn job(namespace: &str, name: &str) -> Self {
        Self {
            api_version: "batch/v1".into(),
            kind: "Job".into(),
            namespace: Some(namespace.to_owned()),
            name: fit(name),
            uid: None,
            generation: None,
        }
    }

    /// A pod by its name: the program's own, as the downward API tells it.
    pub fn pod(namespace: &str, name: &str, uid: Option<String>) -> Self {
        Self {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: Some(namespace.to_owned()),
            name: fit(name),
            uid,
            generation: None,
        }
    }

    /// The same, with the uid that the object has.
    pub fn with_uid(self, uid: impl Into<String>) -> Self {
        Self {
            uid: Some(uid.into()),
            ..self
        }
    }

    /// The same, at a generation of its spec: Events about the next spec do not count as repeats of those about this.
    pub fn at_generation(self, generation: i64) -> Self {
        Self {
            generation: Some(generation),
            ..self
        }
    }

    /// Where its Events live. Those of objects without a namespace live in `default`.
    pub(super) fn event_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version.clone().into_owned()),
            kind: Some(self.kind.clone().into_owned()),
            namespace: self.namespace.clone(),
            name: Some(self.name.clone()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

fn fit(name: &str) -> String {
    let shown = name.chars().filter(|c| !c.is_control());
    let mut length = 0;
    shown
        .take_while(|c| {
            length += c.len_utf8();
            length <= NAME_LIMIT
        })
        .collect()
}

/// The words of an Event. They are sanitised before they leave; the secrets named here are masked whatever they look
/// like.
#[derive(Clone, Debug)]
pub struct Note {
    text: String,
    secrets: Secrets,
}

impl Note {
    /// A sentence. Keep what changes each time (counters, times, request ids) out of it: repeats keep the first note.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            secrets: Secrets::NONE,
        }
    }

    /// The same, with text of others behind it, such as an error.
    pub fn because(mut self, cause: &str) -> Self {
        self.text.push_str(": ");
        self.text.push_str(cause);
        self
    }

    /// The same, without these values.
    pub fn without(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The words as they leave the process.
    pub(crate) fn sanitised(&self) -> String {
        sanitise(&self.text, &self.secrets, NOTE_LIMIT)
    }
}

/// Something that happened and deserves an Event.
#[derive(Clone, Debug)]
pub struct Occurrence {
    pub(super) regarding: Regarding,
    pub(super) related: Option<Regarding>,
    pub(super) reason: Reason,
    pub(super) note: Note,
}

impl Occurrence {
    /// About one object.
    pub fn new(regarding: Regarding, reason: Reason, note: Note) -> Self {
        Self {
            regarding,
            related: None,
            reason,
            note,
        }
    }

    /// The same, with a second object that has to do with it, such as the Job of a run.
    pub fn related_to(self, related: Regarding) -> Self {
        Self {
            related: Some(related),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    #[test]
    fn an_object_is_referred_to_by_all_that_is_known_of_it() {
        let job = Job {
            metadata: ObjectMeta {
                name: Some("j".into()),
                namespace: Some("ns".into()),
                uid: Some("u".into()),
                generation: Some(3),
                ..ObjectMeta::default()
            },
            ..Job::default()
        };
        let expected = ObjectReference {
            api_version: Some("batch/v1".into()),
            kind: Some("Job".into()),
            namespace: Some("ns".into()),
            name: Some("j".into()),
            uid: Some("u".into()),
            ..ObjectReference::default()
        };
        assert_eq!(Regarding::of(&job).reference(), expected);
        assert_eq!(Regarding::of(&job).generation, Some(3));
    }

    #[test]
    fn a_refused_object_is_referred_to_without_uid() {
        let expected = ObjectReference {
            api_version: Some("agents.proompteng.ai/v1alpha1".into()),
            kind: Some("AgentRun".into()),
            namespace: Some("ns".into()),
            name: Some("r".into()),
            ..ObjectReference::default()
        };
        assert_eq!(
            Regarding::named(Kind::AgentRun, "ns", "r").reference(),
            expected
        );
    }

    #[test]
    fn an_object_that_lets_the_server_choose_goes_by_its_prefix() {
        let mut job = Job::default();
        job.metadata.generate_name = Some("nightly-".into());
        assert_eq!(Regarding::of(&job).name, "nightly-");
    }

    #[test]
    fn an_unchecked_name_is_cut_and_cannot_steer_a_terminal() {
        let hostile = format!("\u{1b}[31m{}", "ä".repeat(1_000));
        let name = Regarding::named(Kind::Agent, "ns", &hostile).name;
        assert_eq!(name, format!("[31m{}", "ä".repeat(124)));
    }

    #[test]
    fn events_about_cluster_wide_objects_live_in_the_default_namespace() {
        assert_eq!(Regarding::of(&Job::default()).event_namespace(), "default");
    }
}
