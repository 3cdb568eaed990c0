//! Checks of names and references: there, in the right form, each once.

use std::collections::HashMap;

use crate::api::kinds::shared::{LocalRef, SecretRef, Subject, SystemPromptRef};
use crate::api::object::cause::{Causes, Path, Reason, quoted};
use crate::api::text::names::Form;

/// A name that must be there and have this form.
pub(in crate::api::validate) fn check_name(
    causes: &mut Causes,
    at: &Path<'_>,
    name: &str,
    form: Form,
) {
    if name.trim().is_empty() {
        causes.add(at, Reason::Required, "is blank; give a name");
    } else if !form.fits(name) {
        causes.add(
            at,
            Reason::InvalidName,
            format!("{} cannot be a name here; {}", quoted(name), form.rule()),
        );
    }
}

/// A reference to an object in the same namespace.
pub(in crate::api::validate) fn check_ref(
    causes: &mut Causes,
    at: &Path<'_>,
    reference: &LocalRef,
) {
    check_name(
        causes,
        &at.field("name"),
        &reference.name,
        Form::DnsSubdomain,
    );
}

/// A reference that may be left out.
pub(in crate::api::validate) fn check_optional_ref(
    causes: &mut Causes,
    at: &Path<'_>,
    reference: Option<&LocalRef>,
) {
    if let Some(reference) = reference {
        check_ref(causes, at, reference);
    }
}

/// A reference to an entry of a Secret.
pub(in crate::api::validate) fn check_secret_ref(
    causes: &mut Causes,
    at: &Path<'_>,
    secret: &SecretRef,
) {
    check_name(causes, &at.field("name"), &secret.name, Form::DnsSubdomain);
    check_not_blank(causes, &at.field("key"), secret.key.as_deref());
}

/// A text that may be left out, but not be blank.
pub(in crate::api::validate) fn check_not_blank(
    causes: &mut Causes,
    at: &Path<'_>,
    text: Option<&str>,
) {
    if text.is_some_and(|text| text.trim().is_empty()) {
        causes.add(
            at,
            Reason::Required,
            "is blank; give a value or leave it out",
        );
    }
}

/// The names of a list of Secrets or service accounts; they are compared exactly.
pub(in crate::api::validate) fn check_names(
    causes: &mut Causes,
    at: &Path<'_>,
    names: Option<&Vec<String>>,
) {
    for (index, name) in names.into_iter().flatten().enumerate() {
        check_name(causes, &at.index(index), name, Form::DnsSubdomain);
    }
}

/// Entries of a list, by a field of theirs: each value once. Blank ones are another fault.
pub(in crate::api::validate) fn check_unique<'v>(
    causes: &mut Causes,
    at: &Path<'_>,
    field: &str,
    values: impl Iterator<Item = &'v str>,
) {
    for (index, first, value) in repeated(values) {
        causes.add(
            &at.index(index).field(field),
            Reason::Duplicate,
            format!(
                "{} is already given at index {first}; give each only once",
                quoted(value)
            ),
        );
    }
}

/// Steps, each with a name of its own.
pub(in crate::api::validate) fn check_unique_steps<'v>(
    causes: &mut Causes,
    at: &Path<'_>,
    names: impl Iterator<Item = &'v str>,
    reason: Reason,
) {
    for (index, first, name) in repeated(names) {
        let message = format!(
            "step {first} is called {} as well; give each step its own name",
            quoted(name)
        );
        causes.add(&at.index(index).field("name"), reason, message);
    }
}

/// The values that stand in a list before: index, first index, value.
pub(in crate::api::validate) fn repeated<'v>(
    values: impl Iterator<Item = &'v str>,
) -> Vec<(usize, usize, &'v str)> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut repeated = Vec::new();
    for (index, value) in values.enumerate() {
        let value = value.trim();
        let earlier = *first.entry(value).or_insert(index);
        if earlier != index && !value.is_empty() {
            repeated.push((index, earlier, value));
        }
    }
    repeated
}

/// A system prompt: text or reference, not both, and a reference that is complete.
pub(in crate::api::validate) fn check_system_prompt(
    causes: &mut Causes,
    at: &Path<'_>,
    prompt: Option<&String>,
    reference: Option<&SystemPromptRef>,
) {
    let Some(reference) = reference else {
        return;
    };
    let field = at.field("systemPromptRef");
    if prompt.is_some() {
        causes.add(
            &field,
            Reason::SystemPromptConflict,
            "systemPrompt is set as well; keep one of the two",
        );
    }
    for (name, value) in [("name", &reference.name), ("key", &reference.key)] {
        if value.trim().is_empty() {
            let message = "is blank; name the object and the entry that hold the prompt";
            causes.add(&field.field(name), Reason::InvalidSystemPromptRef, message);
        }
    }
}

/// Subjects of a policy or binding; kind and name are compared exactly.
pub(in crate::api::validate) fn check_subjects(
    causes: &mut Causes,
    at: &Path<'_>,
    subjects: Option<&Vec<Subject>>,
) {
    for (index, subject) in subjects.into_iter().flatten().enumerate() {
        let here = at.index(index);
        if subject.kind.trim().is_empty() {
            causes.add(
                &here.field("kind"),
                Reason::Required,
                "is blank; give the kind of the subject, e.g. Agent",
            );
        }
        check_name(
            causes,
            &here.field("name"),
            &subject.name,
            Form::DnsSubdomain,
        );
        if let Some(namespace) = &subject.namespace {
            check_name(causes, &here.field("namespace"), namespace, Form::DnsLabel);
        }
    }
}
