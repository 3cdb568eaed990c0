//! New objects in which the rules find nothing, as most are: judged from a tree that borrows from the review.
//!
//! The API server has held the object against its schema by the time it asks `/validate`, so what is left there are the
//! rules beyond it and the policy; before `/mutate` nobody has. As soon as anything is found, the object is looked at as a
//! whole, so this is about being quick and decides nothing else.

#[cfg(test)]
mod tests;

use crate::api::kind::Kind;
use crate::api::object::conform::conforms;
use crate::api::object::defaults::fill;
use crate::api::object::references::references_of;
use crate::api::object::tree::Tree;
use crate::api::policy::{Bearer, Intake, Mode, Policy, evaluate};
use crate::api::validate::is_clean;

use super::policy::told;
use super::spec::note_missing;
use super::{Context, conclude, trace};
use crate::admission::decision::{Decision, Rule};
use crate::admission::patch;
use crate::admission::review::{Labels, Object};
use crate::admission::subject::Subject;

/// Decides about the object if it is such a one, and says whether it did.
pub(super) fn decide(
    kind: Kind,
    subject: &Subject<'_>,
    context: &Context<'_>,
    new: &Object<'_>,
    decision: &mut Decision,
) -> bool {
    // The steps of an Orchestration hand on what its own schema does not know, so nobody has looked at that.
    let is_new = subject.request.old_object.is_none();
    if !is_new || kind == Kind::Orchestration {
        return false;
    }
    let Some(Ok(mut spec @ Tree::Fields(_))) = new.spec.map(|raw| Tree::parse(raw.get())) else {
        return false;
    };
    let mutates = subject.door.mutates();
    let filled = match mutates {
        true => fill(kind, &mut spec),
        false => Vec::new(),
    };
    let name = Some(&*new.metadata.name).filter(|name| !name.is_empty());
    if (mutates && !conforms(kind, &spec)) || !is_clean(kind, name, &spec) {
        return false;
    }
    if mutates {
        let filled = filled.into_iter();
        let filled = filled.map(|(path, value)| patch::addition(path, value));
        decision.patch.extend(filled);
        let stamp = trace::stamp(subject, context.traceparent);
        decision.patch.extend(stamp);
    }
    let spec_mode = context.stance.cap(Mode::Enforce);
    decision.find(Rule::Spec, spec_mode, trace::fault(subject));
    let namespace = subject.namespace();
    let judge = |policy: &Policy| {
        let around = context.known.surroundings_of(kind, namespace, &spec);
        let bearer = Bearer {
            labels: new.metadata.labels.iter().flat_map(Labels::iter).collect(),
            namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
        };
        let intake = Intake::of_spec(kind, bearer, &spec, &around, &policy.defaults);
        told(evaluate(policy, &intake))
    };
    conclude(subject, context, judge, decision);
    if !mutates && context.stance.rung.warns() {
        note_missing(subject, context, &references_of(kind, &spec), decision);
    }
    true
}
