//! The rules themselves, each a function over what entered.

use super::{Finding, Intake, Mode, Patterns, Policy, Rule, SecretEntry, SecretWay};
use crate::api::cause::{Cause, FieldPath, Path, Reason, listed, quoted};
use crate::api::kinds::SecretBinding;

/// How many entries of a list a message repeats.
const SHOWN: usize = 5;

pub(super) fn evaluate(policy: &Policy, intake: &Intake<'_>) -> Vec<Finding> {
    let mut report = Report {
        policy,
        findings: Vec::new(),
    };
    labels(&mut report, intake);
    images(&mut report, intake);
    secrets(&mut report, intake);
    service_accounts(&mut report, intake);
    bindings(&mut report, intake);
    report.findings
}

struct Report<'a> {
    policy: &'a Policy,
    findings: Vec<Finding>,
}

impl Report<'_> {
    fn add(&mut self, rule: Rule, field: FieldPath, reason: Reason, message: String) {
        self.add_at_most(
            Mode::Enforce,
            rule,
            Cause {
                field,
                reason,
                message,
            },
        );
    }

    fn add_at_most(&mut self, most: Mode, rule: Rule, cause: Cause) {
        let mode = self.policy.mode(rule).min(most);
        self.findings.push(Finding { rule, mode, cause });
    }

    /// A run that does not need version control goes on without it, so its credentials cannot refuse the run.
    fn add_secret(&mut self, rule: Rule, entry: &SecretEntry, reason: Reason, message: String) {
        let most = match entry.way {
            SecretWay::VersionControl { required: false } => Mode::Warn,
            SecretWay::VersionControl { required: true }
            | SecretWay::Environment
            | SecretWay::Volume
            | SecretWay::ImagePull
            | SecretWay::Memory
            | SecretWay::SystemPrompt
            | SecretWay::OperatorCredentials
            | SecretWay::Tracker => Mode::Enforce,
        };
        let field = entry.at.clone();
        self.add_at_most(
            most,
            rule,
            Cause {
                field,
                reason,
                message,
            },
        );
    }
}

fn labels(report: &mut Report<'_>, intake: &Intake<'_>) {
    let Some(labels) = &intake.labels else {
        return;
    };
    let policy = report.policy;
    let metadata = Path::root("metadata");
    let field = metadata.field("labels");
    let present: Vec<&str> = labels
        .iter()
        .filter(|(_, value)| !value.trim().is_empty())
        .map(|(key, _)| *key)
        .collect();
    let missing: Vec<&str> = policy
        .labels
        .required
        .iter()
        .map(String::as_str)
        .filter(|key| !present.contains(key))
        .collect();
    if !missing.is_empty() {
        let message = format!(
            "these labels are required here; add them with a value: {}",
            listed(&missing)
        );
        report.add(
            Rule::RequiredLabels,
            (&field).into(),
            Reason::MissingRequiredLabels,
            message,
        );
    }
    for key in present {
        let at = FieldPath::from(&field.key(key));
        if let Some(pattern) = policy.labels.denied.covering(key) {
            let message = format!(
                "label {} is denied here by {}; remove it",
                quoted(key),
                quoted(&pattern)
            );
            report.add(
                Rule::DeniedLabels,
                at.clone(),
                Reason::LabelBlocked,
                message,
            );
        }
        if not_on(&policy.labels.allowed, key) {
            let allowed = some_of(&policy.labels.allowed.written());
            let message = format!(
                "label {} is not allowed here; allowed: {allowed}",
                quoted(key)
            );
            report.add(Rule::AllowedLabels, at, Reason::LabelNotAllowed, message);
        }
    }
}

fn images(report: &mut Report<'_>, intake: &Intake<'_>) {
    let rules = &report.policy.images;
    for entry in &intake.images {
        let image = &entry.value;
        if let Some(pattern) = rules.denied.covering(image) {
            let message = format!(
                "image {} is denied here by {}; use another one",
                quoted(image),
                quoted(&pattern)
            );
            report.add(
                Rule::DeniedImages,
                entry.at.clone(),
                Reason::ImageBlocked,
                message,
            );
        }
        if not_on(&rules.allowed, image) {
            let allowed = some_of(&rules.allowed.written());
            let message = format!(
                "image {} is not allowed here; allowed: {allowed}",
                quoted(image)
            );
            report.add(
                Rule::AllowedImages,
                entry.at.clone(),
                Reason::ImageNotAllowed,
                message,
            );
        }
    }
}

fn secrets(report: &mut Report<'_>, intake: &Intake<'_>) {
    for entry in &intake.secrets {
        let name = quoted(&entry.name);
        if report.policy.blocked_secrets.contains(&entry.name) {
            let message = format!("secret {name} may not be used here; use another one");
            report.add_secret(Rule::BlockedSecrets, entry, Reason::SecretBlocked, message);
        }
        if is_undeclared(intake, entry) {
            let message =
                format!("secret {name} is used but not named in spec.secrets; add it there");
            report.add_secret(
                Rule::DeclaredSecrets,
                entry,
                Reason::SecretNotAllowed,
                message,
            );
        }
        if let Some(allowed) = intake
            .allowed_secrets
            .filter(|allowed| !allowed.contains(&entry.name))
        {
            let message = format!(
                "the Agent does not allow secret {name}; allowed: {}",
                some_of(allowed)
            );
            report.add_secret(Rule::AgentSecrets, entry, Reason::SecretNotAllowed, message);
        }
    }
}

/// A prompt from a secret must always be declared; a memory only if the run declares secrets at all.
fn is_undeclared(intake: &Intake<'_>, entry: &SecretEntry) -> bool {
    let Some(declared) = intake.declared_secrets else {
        return false;
    };
    match entry.way {
        SecretWay::SystemPrompt => !declared.contains(&entry.name),
        SecretWay::Memory => !declared.is_empty() && !declared.contains(&entry.name),
        SecretWay::Environment
        | SecretWay::Volume
        | SecretWay::ImagePull
        | SecretWay::VersionControl { .. }
        | SecretWay::OperatorCredentials
        | SecretWay::Tracker => false,
    }
}

fn service_accounts(report: &mut Report<'_>, intake: &Intake<'_>) {
    let Some(allowed) = intake.allowed_service_accounts else {
        return;
    };
    for entry in intake
        .service_accounts
        .iter()
        .filter(|entry| !allowed.contains(&entry.value))
    {
        let account = quoted(&entry.value);
        let message = format!(
            "the Agent does not allow service account {account}; allowed: {}",
            some_of(allowed)
        );
        let reason = Reason::ServiceAccountNotAllowed;
        report.add(
            Rule::AgentServiceAccounts,
            entry.at.clone(),
            reason,
            message,
        );
    }
}

/// An Agent that some binding names may use what the bindings give; one that none names is free, unless the operator
/// requires a binding. What the operator gives to every run needs none.
fn bindings(report: &mut Report<'_>, intake: &Intake<'_>) {
    let Some(agent) = intake.agent_name else {
        return;
    };
    let bound = |entry: &&SecretEntry| entry.way != SecretWay::OperatorCredentials;
    let naming: Vec<&SecretBinding> = intake
        .bindings
        .iter()
        .filter(|binding| names_agent(binding, agent, intake.namespace))
        .collect();
    if naming.is_empty() {
        if report.policy.require_secret_binding && intake.secrets.iter().any(|entry| bound(&entry))
        {
            let spec = Path::root("spec");
            let message = format!(
                "secrets are used, but no SecretBinding names Agent {}; create one with the Agent as subject",
                quoted(agent)
            );
            let at = (&spec.field("agentRef")).into();
            report.add(
                Rule::SecretBindings,
                at,
                Reason::SecretBindingMissing,
                message,
            );
        }
        return;
    }
    let given: Vec<&String> = naming
        .iter()
        .filter_map(|binding| binding.spec.allowed_secrets.as_ref())
        .flatten()
        .collect();
    for entry in intake.secrets.iter().filter(bound) {
        if !given.contains(&&entry.name) {
            let message = format!(
                "no SecretBinding gives secret {} to Agent {}; add it to one that names the Agent",
                quoted(&entry.name),
                quoted(agent)
            );
            report.add_secret(
                Rule::SecretBindings,
                entry,
                Reason::SecretNotAllowed,
                message,
            );
        }
    }
}

/// Namespaces are compared only where both sides have one.
fn names_agent(binding: &SecretBinding, agent: &str, namespace: Option<&str>) -> bool {
    let subjects = binding.spec.subjects.as_deref().unwrap_or_default();
    subjects.iter().any(|subject| {
        let elsewhere = match (subject.namespace.as_deref(), namespace) {
            (Some(subject), Some(run)) => subject != run,
            (None, _) | (_, None) => false,
        };
        subject.kind == "Agent" && subject.name == agent && !elsewhere
    })
}

fn not_on(allowed: &Patterns, text: &str) -> bool {
    !allowed.is_empty() && allowed.covering(text).is_none()
}

/// The start of a list, in quotes.
fn some_of(entries: &[String]) -> String {
    let shown: Vec<&str> = entries.iter().take(SHOWN).map(String::as_str).collect();
    match entries.len().saturating_sub(SHOWN) {
        0 => listed(&shown),
        more => format!("{} and {more} more", listed(&shown)),
    }
}
