//! What another policy would change about the same objects.

use serde::Serialize;

use super::json::Entry;
use super::report::{Finding, Judged, Report};
use crate::cli::shown::{FailOn, Paint, Tone};

/// How an object fares under the second policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Fate {
    /// It was accepted and would be refused.
    NewlyRefused,
    /// It was refused and would be accepted.
    NewlyAccepted,
    /// Refused or accepted as before, but for other reasons or with other words.
    OtherwiseJudged,
}

impl Fate {
    const ALL: [Self; 3] = [
        Self::NewlyRefused,
        Self::NewlyAccepted,
        Self::OtherwiseJudged,
    ];

    const fn words(self) -> &'static str {
        match self {
            Self::NewlyRefused => "newly refused",
            Self::NewlyAccepted => "newly accepted",
            Self::OtherwiseJudged => "otherwise judged",
        }
    }

    const fn tone(self) -> Tone {
        match self {
            Self::NewlyRefused => Tone::Bad,
            Self::NewlyAccepted => Tone::Good,
            Self::OtherwiseJudged => Tone::Warn,
        }
    }
}

/// An object that the two policies judge differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference<'a> {
    /// How it fares.
    pub(crate) fate: Fate,
    old: &'a Judged,
    new: &'a Judged,
}

impl<'a> Difference<'a> {
    /// What the second policy no longer finds.
    fn gone(&self) -> impl Iterator<Item = &'a Finding> {
        let Self { old, new, .. } = *self;
        let found = old.findings.iter();
        found.filter(|finding| !new.findings.contains(finding))
    }

    /// What the second policy finds anew.
    fn come(&self) -> impl Iterator<Item = &'a Finding> {
        let Self { old, new, .. } = *self;
        let found = new.findings.iter();
        found.filter(|finding| !old.findings.contains(finding))
    }
}

/// The objects that fare differently, the newly refused first. Both reports are about the same objects.
pub(crate) fn differences<'a>(old: &'a Report, new: &'a Report) -> Vec<Difference<'a>> {
    let pairs = old.judged.iter().zip(&new.judged);
    let mut found: Vec<Difference<'a>> = pairs
        .filter(|(old, new)| old.findings != new.findings)
        .map(|(old, new)| {
            let fate = match (old.is_refused(), new.is_refused()) {
                (false, true) => Fate::NewlyRefused,
                (true, false) => Fate::NewlyAccepted,
                (true, true) | (false, false) => Fate::OtherwiseJudged,
            };
            Difference { fate, old, new }
        })
        .collect();
    found.sort_by_key(|difference| difference.fate);
    found
}

/// Whether there is one that counts: an object that would be newly refused is an error, any other is a warning.
pub(crate) fn is_grave(differences: &[Difference<'_>], fail_on: FailOn) -> bool {
    match fail_on {
        FailOn::Error => differences.iter().any(|it| it.fate == Fate::NewlyRefused),
        FailOn::Warning => !differences.is_empty(),
    }
}

/// The differences for people.
pub(crate) fn text(report: &Report, differences: &[Difference<'_>], paint: Paint) -> String {
    let mut out = String::new();
    for difference in differences {
        let Difference { fate, new, .. } = difference;
        let head = paint.tone(fate.tone(), fate.words());
        let (file, line) = (report.source_name(new.source), new.place.line);
        out += &format!("{head}: {} ({file}:{line})\n", new.whose);
        for (sign, tone, finding) in difference
            .gone()
            .map(|finding| ('-', Tone::Good, finding))
            .chain(difference.come().map(|finding| ('+', Tone::Bad, finding)))
        {
            let Finding {
                level,
                reason,
                field,
                message,
                ..
            } = finding;
            let line = format!("{sign} {}[{reason}]: {field}: {message}", level.as_str());
            out += &format!("  {}\n", paint.tone(tone, &line));
        }
    }
    let count = |fate: Fate| differences.iter().filter(|it| it.fate == fate).count();
    let counts = Fate::ALL.map(|fate| format!("{} {}", count(fate), fate.words()));
    let objects = report.judged.len();
    out + &format!(
        "{objects} objects under both policies: {}\n",
        counts.join(", ")
    )
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    format: &'static str,
    old_policy: &'a str,
    new_policy: &'a str,
    objects: usize,
    differences: Vec<Shown<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    fate: Fate,
    kind: &'a str,
    namespace: &'a str,
    name: Option<&'a str>,
    file: &'a str,
    line: usize,
    gone: Vec<Entry<'a>>,
    come: Vec<Entry<'a>>,
}

/// The differences for programs.
///
/// # Errors
///
/// Never, as far as anyone knows: everything in here can be written as JSON.
pub(crate) fn json(
    old: &Report,
    new: &Report,
    differences: &[Difference<'_>],
) -> serde_json::Result<String> {
    let shown = differences.iter().map(|difference| {
        let judged = difference.new;
        Shown {
            fate: difference.fate,
            kind: &judged.whose.kind,
            namespace: &judged.whose.namespace,
            name: judged.whose.name.as_deref(),
            file: new.source_name(judged.source),
            line: judged.place.line,
            gone: difference
                .gone()
                .map(|finding| Entry::of(old, difference.old, finding))
                .collect(),
            come: difference
                .come()
                .map(|finding| Entry::of(new, judged, finding))
                .collect(),
        }
    });
    let whole = Whole {
        format: "agents.check.diff/v1",
        old_policy: &old.policy,
        new_policy: &new.policy,
        objects: new.judged.len(),
        differences: shown.collect(),
    };
    Ok(serde_json::to_string_pretty(&whole)? + "\n")
}
