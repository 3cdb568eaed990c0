//! What is checked, without a policy yet: the objects, what they refer to, and what stands in the cluster.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::Value;

use super::document::Place;
use super::gather::{Gathered, Object, gather};
use super::judge::{Law, judge};
use super::report::{Finding, Judged, Level, Report};
use super::source::{self, Source, Unread};
use super::{metadata, record};
use crate::admission::decide::Stance;
use crate::admission::decision::{Decision, awaited};
use crate::admission::in_force::InForce;
use crate::admission::known::Known;
use crate::admission::question::question;
use crate::api::kind::Kind;
use crate::api::object::cause::FieldPath;
use crate::api::registration::rung::Rung;
use crate::cluster::Scope;

/// As the webhook stands when it is rolled out.
pub(crate) fn stance() -> Stance {
    Stance {
        rung: Rung::Fail,
        restorers: Vec::new(),
    }
}

/// The objects that stand in these files, as those that others refer to. Without a file nothing is said about what is
/// missing.
pub(crate) fn standing(paths: &[PathBuf], namespace: &str) -> Result<Known, Unread> {
    let sources = source::read(paths, &mut io::empty())?;
    let objects = gather(&sources, namespace).objects;
    let stands = (!paths.is_empty()).then_some(objects.as_slice());
    Ok(known(&[], stands))
}

/// Everything that does not depend on a policy.
pub(crate) struct Input {
    sources: Vec<Source>,
    gathered: Gathered,
    /// What stands in the cluster, by who it is.
    standing: HashMap<String, Value>,
    pub(crate) known: Known,
    pub(crate) now: Timestamp,
}

impl Input {
    pub(crate) fn new(sources: Vec<Source>, standing: Option<&[Source]>, namespace: &str) -> Self {
        let gathered = gather(&sources, namespace);
        let stands = standing.map(|sources| gather(sources, namespace).objects);
        let known = known(&gathered.objects, stands.as_deref());
        Self {
            sources,
            gathered,
            standing: stands
                .into_iter()
                .flatten()
                .map(|object| (object.whose.to_string(), object.value))
                .collect(),
            known,
            now: Timestamp::now(),
        }
    }

    pub(crate) fn report(&self, in_force: &InForce) -> Report {
        let stance = stance();
        let law = Law {
            in_force,
            known: &self.known,
            stance: &stance,
            now: self.now,
        };
        let objects = self.gathered.objects.iter();
        Report {
            sources: self.sources.clone(),
            judged: objects.map(|object| self.judged(law, object)).collect(),
            faults: self.gathered.faults.clone(),
            others: self.gathered.others,
            policy: in_force.active.hash.clone(),
        }
    }

    /// What the webhook would be asked, one review per line.
    pub(crate) fn record(&self) -> String {
        let objects = self.gathered.objects.iter();
        let lines = objects.map(|object| {
            let old = self.standing.get(&object.whose.to_string());
            let namespace = &object.whose.namespace;
            record::line(question(object.kind, namespace, &object.value, old))
        });
        lines.collect()
    }

    fn judged(&self, law: Law<'_>, object: &Object) -> Judged {
        let old = self.standing.get(&object.whose.to_string());
        let mut findings = metadata::faults(&object.node);
        if findings.is_empty() {
            let decided = judge(
                law,
                object.kind,
                &object.whose.namespace,
                &object.value,
                old,
            );
            findings = match decided {
                Ok(decision) => told(&decision, |field| object.node.find(field)),
                Err(malformed) => vec![metadata::malformed(&object.node, &malformed.to_string())],
            };
        }
        findings.sort_by_key(|finding| (finding.place.line, finding.place.column));
        Judged {
            source: object.source,
            whose: object.whose.clone(),
            place: object.node.place,
            findings,
        }
    }
}

/// What was decided, each at its place in the text.
pub(crate) fn told(decision: &Decision, find: impl Fn(&FieldPath) -> Place) -> Vec<Finding> {
    let broken = decision.findings.iter().map(|finding| Finding {
        level: finding.mode.into(),
        rule: finding.rule.as_str(),
        reason: finding.cause.reason.as_str(),
        field: finding.cause.field.to_string(),
        message: finding.cause.message.clone(),
        place: find(&finding.cause.field),
    });
    let missing = decision.missing.iter().map(|missing| Finding {
        level: Level::Warning,
        rule: "Reference",
        reason: "ReferenceMissing",
        field: missing.at.to_string(),
        message: awaited(missing),
        place: find(&missing.at),
    });
    broken.chain(missing).collect()
}

/// What objects may refer to: those of the input, and those that stand. Only where it is said what stands is a reference
/// to anything else known to lead nowhere.
fn known(objects: &[Object], standing: Option<&[Object]>) -> Known {
    let known = Known::default();
    for kind in Kind::ALL {
        let Some((_, shelf)) = known.shelf(kind) else {
            continue;
        };
        if standing.is_some() {
            shelf.begin(&Scope::Cluster);
            shelf.complete(&Scope::Cluster);
        }
        let all = standing.into_iter().flatten().chain(objects);
        for object in all.filter(|object| object.kind == kind) {
            let name = object.whose.name.as_deref().unwrap_or_default();
            shelf.put(&object.whose.namespace, name, &object.value);
        }
    }
    known
}
