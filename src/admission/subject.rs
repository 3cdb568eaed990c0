//! What a review is about: which door it came in by, which of our resources, which operation, old and new object.
//!
//! Sorts only. A review that no rule is about is foreign; one whose object contradicts its request says so here, and is
//! refused by `decide`.

use std::fmt;

use crate::api::contract::VERSION;
use crate::api::kind::Kind;
use crate::api::object::cause::{Cause, Path, Reason, quoted};
pub use crate::api::registration::{Door, Operation};

use crate::admission::review::{GroupKind, Object, Request, User};

/// The resource that a review is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An object of ours.
    Spec(Kind),
    /// The status of one.
    Status(Kind),
    /// A Job.
    Job,
}

impl Target {
    /// The kind as manifests write it.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Spec(kind) | Self::Status(kind) => kind.as_str(),
            Self::Job => "Job",
        }
    }

    /// The group of the kind.
    pub fn group(self) -> &'static str {
        match self {
            Self::Spec(kind) | Self::Status(kind) => kind.group(),
            Self::Job => "batch",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(kind) => f.write_str(kind.plural()),
            Self::Status(kind) => write!(f, "{}/status", kind.plural()),
            Self::Job => f.write_str("jobs"),
        }
    }
}

/// A review that a rule is about.
#[derive(Debug)]
pub struct Subject<'a> {
    /// Where it came in.
    pub door: Door,
    /// What it is about.
    pub target: Target,
    /// What is done.
    pub operation: Operation,
    /// Everything else that was asked.
    pub request: Request<'a>,
}

/// What a review turned out to be.
#[derive(Debug)]
pub enum Sorted<'a> {
    /// One that rules are about.
    Ours(Subject<'a>),
    /// One that none is about: another resource, or an operation that this door does not judge.
    Foreign(Request<'a>),
}

/// Sorts a review.
pub fn sort(door: Door, request: Request<'_>) -> Sorted<'_> {
    let kind = Kind::of_resource(&request.resource.group, &request.resource.resource);
    let is_job = &*request.resource.group == "batch" && &*request.resource.resource == "jobs";
    let known = match (door, &*request.sub_resource, &*request.operation) {
        (Door::Mutate | Door::Validate, "", "CREATE") => {
            kind.map(|kind| (Target::Spec(kind), Operation::Create))
        }
        (Door::Mutate | Door::Validate, "", "UPDATE") => {
            kind.map(|kind| (Target::Spec(kind), Operation::Update))
        }
        (Door::MutateStatus | Door::ValidateStatus, "status", "UPDATE") => {
            kind.map(|kind| (Target::Status(kind), Operation::Update))
        }
        (Door::ValidateDelete, "", "DELETE") if is_job => Some((Target::Job, Operation::Delete)),
        _ => None,
    };
    match known {
        Some((target, operation)) => Sorted::Ours(Subject {
            door,
            target,
            operation,
            request,
        }),
        None => Sorted::Foreign(request),
    }
}

impl<'a> Subject<'a> {
    /// The object that the review shows: the new one, or the one that is about to go.
    pub fn shown(&self) -> Option<&Object<'a>> {
        let Request {
            object, old_object, ..
        } = &self.request;
        object.as_ref().or(old_object.as_ref())
    }

    /// The name that people know the object by: its own, or the beginning of the one that it will get.
    pub fn name(&self) -> &str {
        let metadata = self.shown().map(|object| &object.metadata);
        let given = metadata.map(|metadata| (&*metadata.name, &*metadata.generate_name));
        let (own, beginning) = given.unwrap_or_default();
        let names = [&*self.request.name, own, beginning];
        names
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or("")
    }

    /// The namespace of the object.
    pub fn namespace(&self) -> &str {
        &self.request.namespace
    }

    /// The uid of the object, if it is stored already.
    pub fn uid(&self) -> Option<&str> {
        let old = self.request.old_object.as_ref();
        let uid = old.or(self.request.object.as_ref())?;
        Some(&*uid.metadata.uid).filter(|uid| !uid.is_empty())
    }

    /// Who asks.
    pub fn user(&self) -> &User<'a> {
        &self.request.user_info
    }

    /// Whether nothing will be stored.
    pub fn dry_run(&self) -> bool {
        self.request.dry_run.unwrap_or(false)
    }

    /// How the objects contradict what the request says that they are.
    pub fn contradiction(&self) -> Option<Cause> {
        let Request {
            kind,
            object,
            old_object,
            ..
        } = &self.request;
        let (needs_new, needs_old) = match self.operation {
            Operation::Create => (true, false),
            Operation::Update => (true, true),
            Operation::Delete => (false, true),
        };
        if needs_new && object.is_none() {
            return Some(mismatch("object", "the request holds no object"));
        }
        if needs_old && old_object.is_none() {
            return Some(mismatch("oldObject", "the request holds no old object"));
        }
        if !self.is_declared(kind) {
            let message = format!(
                "the request declares the kind {} of {}, which is not the kind of its resource {}",
                quoted(&kind.kind),
                quoted(&kind.group),
                self.target
            );
            return Some(mismatch("kind", message));
        }
        let shown = [object.as_ref(), old_object.as_ref()];
        shown
            .into_iter()
            .flatten()
            .find_map(|object| self.contradicts(object))
    }

    fn is_declared(&self, kind: &GroupKind<'_>) -> bool {
        let version = match self.target {
            Target::Spec(_) | Target::Status(_) => VERSION,
            Target::Job => "v1",
        };
        &*kind.kind == self.target.kind()
            && &*kind.group == self.target.group()
            && &*kind.version == version
    }

    fn contradicts(&self, object: &Object<'_>) -> Option<Cause> {
        let Request {
            kind,
            name,
            namespace,
            ..
        } = &self.request;
        let (group, version) = object.api_version.split_once('/').unwrap_or_default();
        if group != &*kind.group || version != &*kind.version {
            return Some(differs("apiVersion", &object.api_version, "its resource"));
        }
        if object.kind != kind.kind {
            return Some(differs("kind", &object.kind, "its resource"));
        }
        let differ = |own: &str, asked: &str| !own.is_empty() && !asked.is_empty() && own != asked;
        let metadata = &object.metadata;
        if metadata.name.is_empty() && metadata.generate_name.is_empty() {
            return Some(mismatch("metadata.name", "the object has no name"));
        }
        if differ(&metadata.name, name) {
            return Some(differs("metadata.name", &metadata.name, "the request"));
        }
        if differ(&metadata.namespace, namespace) {
            let field = "metadata.namespace";
            return Some(differs(field, &metadata.namespace, "the request"));
        }
        None
    }
}

fn differs(field: &'static str, given: &str, other: &str) -> Cause {
    mismatch(field, format!("{} contradicts {other}", quoted(given)))
}

fn mismatch(field: &'static str, message: impl Into<String>) -> Cause {
    Cause::new(&Path::root(field), Reason::ObjectMismatch, message)
}
