//! The rules themselves, each a function over what entered.

mod bindings;

use super::{Finding, Intake, Mode, Patterns, Policy, Rule, SecretEntry, SecretWay};
use crate::api::object::cause::{Cause, FieldPath, Path, Reason, listed, quoted};

/// How many entries of a list a message repeats.
const SHOWN: usize = 5;

/// Findings that are told at once; further ones are only counted.
const TOLD: usize = 100;

pub(super) fn evaluate(policy: &Policy, intake: &Intake<'_>) -> Vec<Finding> {
    let mut report = Report {
        policy,
        judging: String::new(),
        findings: Vec::new(),
        beyond: None,
    };
    labels(&mut report, intake);
    images(&mut report, intake);
    secrets(&mut report, intake);
    service_accounts(&mut report, intake);
    bindings::judge(&mut report, intake);
    if intake.is_beyond {
        let message =
            "brings in more images, secrets and service accounts than can be judged; split it";
        let field = (&Path::root("spec")).into();
        report.judging("");
        report.add(Rule::Amount, field, Reason::TooMany, message.to_owned());
    }
    report.told()
}

struct Report<'a> {
    policy: &'a Policy,
    /// What is being judged.
    judging: String,
    findings: Vec<Finding>,
    beyond: Option<Beyond>,
}

/// Findings beyond those that are told: how many, and the gravest of them.
struct Beyond {
    count: usize,
    rule: Rule,
    mode: Mode,
}

impl Report<'_> {
    /// What follows is about this.
    fn judging(&mut self, what: &str) {
        self.judging.clear();
        self.judging.push_str(what);
    }

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
        if self.findings.len() < TOLD {
            let judged = self.judging.clone();
            self.findings.push(Finding {
                rule,
                mode,
                cause,
                judged,
            });
            return;
        }
        let first = Beyond {
            count: 0,
            rule,
            mode,
        };
        let beyond = self.beyond.get_or_insert(first);
        beyond.count += 1;
        if mode > beyond.mode {
            (beyond.rule, beyond.mode) = (rule, mode);
        }
    }

    /// All findings, or the first hundred and how many more there are.
    fn told(mut self) -> Vec<Finding> {
        if let Some(Beyond { count, rule, mode }) = self.beyond {
            let message = format!("{count} more faults are not listed; mend these first");
            let cause = Cause::new(&Path::root("spec"), Reason::TooManyFaults, message);
            self.findings.push(Finding {
                rule,
                mode,
                cause,
                judged: String::new(),
            });
        }
        self.findings
    }

    /// Whether the operator refuses this secret to everyone. No other advice about it helps then.
    fn is_blocked(&self, entry: &SecretEntry) -> bool {
        let mode = self
            .policy
            .mode(Rule::BlockedSecrets)
            .min(gravest(entry.way));
        mode == Mode::Enforce && self.policy.blocked_secrets.contains(&entry.name)
    }

    fn add_secret(&mut self, rule: Rule, entry: &SecretEntry, reason: Reason, message: String) {
        let field = entry.at.clone();
        self.judging(&entry.name);
        self.add_at_most(
            gravest(entry.way),
            rule,
            Cause {
                field,
                reason,
                message,
            },
        );
    }
}

/// What a secret can cause at most. A run that does not need version control goes on without it, so its credentials
/// cannot refuse the run.
fn gravest(way: SecretWay) -> Mode {
    match way {
        SecretWay::VersionControl { required: false } => Mode::Warn,
        SecretWay::VersionControl { required: true }
        | SecretWay::Environment
        | SecretWay::Volume
        | SecretWay::ImagePull
        | SecretWay::Memory
        | SecretWay::SystemPrompt
        | SecretWay::OperatorCredentials
        | SecretWay::Tracker
        | SecretWay::Binding => Mode::Enforce,
    }
}

fn labels(report: &mut Report<'_>, intake: &Intake<'_>) {
    let Some(labels) = &intake.labels else {
        return;
    };
    let has_value = |(_, value): &&(&str, &str)| !value.trim().is_empty();
    let present = || labels.iter().filter(has_value).map(|(key, _)| *key);
    let metadata = Path::root("metadata");
    let field = metadata.field("labels");
    let required = report.policy.labels.required.iter().map(String::as_str);
    let missing: Vec<&str> = required
        .filter(|key| !present().any(|own| own == *key))
        .collect();
    required_labels(report, &field, &missing);
    for key in present() {
        label(report, &field.key(key), key);
    }
}

fn required_labels(report: &mut Report<'_>, at: &Path<'_>, missing: &[&str]) {
    if !missing.is_empty() {
        report.judging(&missing.join(","));
        let message = format!(
            "these labels are required here; add them with a value: {}",
            listed(missing)
        );
        report.add(
            Rule::RequiredLabels,
            at.into(),
            Reason::MissingRequiredLabels,
            message,
        );
    }
}

fn label(report: &mut Report<'_>, at: &Path<'_>, key: &str) {
    let rules = &report.policy.labels;
    report.judging(key);
    if let Some(pattern) = rules.denied.covering(key) {
        let message = format!(
            "label {} is denied here by {}; remove it",
            quoted(key),
            quoted(&pattern)
        );
        report.add(Rule::DeniedLabels, at.into(), Reason::LabelBlocked, message);
    }
    if not_on(&rules.allowed, key) {
        let allowed = some_of(&rules.allowed.written());
        let message = format!(
            "label {} is not allowed here; allowed: {allowed}",
            quoted(key)
        );
        report.add(
            Rule::AllowedLabels,
            at.into(),
            Reason::LabelNotAllowed,
            message,
        );
    }
}

fn images(report: &mut Report<'_>, intake: &Intake<'_>) {
    let rules = &report.policy.images;
    for entry in &intake.images {
        let image = &entry.value;
        report.judging(image);
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
        if report.policy.blocked_secrets.contains(&entry.name) {
            let name = quoted(&entry.name);
            let message = format!("secret {name} may not be used here; use another one");
            report.add_secret(Rule::BlockedSecrets, entry, Reason::SecretBlocked, message);
        }
        if report.is_blocked(entry) {
            continue;
        }
        if is_undeclared(intake, entry) {
            let name = quoted(&entry.name);
            let message =
                format!("secret {name} is used but not named in spec.secrets; add it there");
            report.add_secret(
                Rule::DeclaredSecrets,
                entry,
                Reason::SecretNotAllowed,
                message,
            );
        }
        let allowed = &intake.allowed_secrets;
        if !allowed.is_empty() && !allowed.contains(&entry.name.as_str()) {
            let name = quoted(&entry.name);
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
    let Some(declared) = &intake.declared_secrets else {
        return false;
    };
    let is_declared = declared.contains(&entry.name.as_str());
    match entry.way {
        SecretWay::SystemPrompt => !is_declared,
        SecretWay::Memory => !declared.is_empty() && !is_declared,
        SecretWay::Environment
        | SecretWay::Volume
        | SecretWay::ImagePull
        | SecretWay::VersionControl { .. }
        | SecretWay::OperatorCredentials
        | SecretWay::Tracker
        | SecretWay::Binding => false,
    }
}

fn service_accounts(report: &mut Report<'_>, intake: &Intake<'_>) {
    let allowed = &intake.allowed_service_accounts;
    if allowed.is_empty() {
        return;
    }
    for entry in intake
        .service_accounts
        .iter()
        .filter(|entry| !allowed.contains(&entry.value.as_str()))
    {
        report.judging(&entry.value);
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

fn not_on(allowed: &Patterns, text: &str) -> bool {
    !allowed.is_empty() && allowed.covering(text).is_none()
}

/// The start of a list, in quotes.
fn some_of(entries: &[impl AsRef<str>]) -> String {
    let shown: Vec<&str> = entries.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match entries.len().saturating_sub(SHOWN) {
        0 => listed(&shown),
        more => format!("{} and {more} more", listed(&shown)),
    }
}
