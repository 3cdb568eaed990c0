//! What is counted about our own registration.

use agents::api::registration::Check;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::{counter::Counter, family::Family, gauge::Gauge};
use prometheus_client::registry::Registry;

use super::said::{Seen, Trouble};

/// Stands beside the checks: whether the registration could be judged at all. Without it, zero would mean two things.
const UNSEEN: &str = "unseen";

/// Metrics of the looks at the registration.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    findings: Family<CheckLabel, Gauge>,
    looks: Family<ResultLabel, Counter>,
}

impl Metrics {
    /// Registers them, every label from the start; the caller chooses the prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { findings, looks } = &metrics; // a metric left out here does not compile
        registry.register(
            "registration_findings",
            "What is wrong with the webhook configurations in the cluster, by check; unseen is 1 if they cannot be judged",
            findings.clone(),
        );
        registry.register(
            "registration_looks",
            "Looks at the webhook configurations in the cluster, by result",
            looks.clone(),
        );
        for check in Check::ALL {
            metrics.set(check.as_str(), 0);
        }
        metrics.set(UNSEEN, 0);
        for result in ["judged", "missing", "forbidden", "unanswered"] {
            drop(looks.get_or_create(&ResultLabel { result }));
        }
        metrics
    }

    pub(super) fn show(&self, seen: &Seen) {
        let result = match seen {
            Seen::Findings(_) => "judged",
            Seen::Trouble(Trouble::Missing(_)) => "missing",
            Seen::Trouble(Trouble::Forbidden(_)) => "forbidden",
            Seen::Trouble(Trouble::Unanswered(_)) => "unanswered",
        };
        self.looks.get_or_create(&ResultLabel { result }).inc();
        let findings = match seen {
            Seen::Findings(findings) => {
                self.set(UNSEEN, 0);
                findings
            }
            // What was found before may still be so; nobody can tell.
            Seen::Trouble(_) => return self.set(UNSEEN, 1),
        };
        for check in Check::ALL {
            let count = findings
                .iter()
                .filter(|(_, finding)| finding.check == check);
            let count = count.count().try_into().unwrap_or(i64::MAX);
            self.set(check.as_str(), count);
        }
    }

    fn set(&self, check: &'static str, value: i64) {
        self.findings
            .get_or_create(&CheckLabel { check })
            .set(value);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabel {
    check: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[cfg(test)]
mod tests {
    use agents::api::registration::Finding;
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn lines(registry: &Registry) -> Vec<String> {
        let mut page = String::new();
        encode(&mut page, registry).unwrap();
        let lines = page.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn every_label_is_there_from_the_start_and_shows_the_last_look() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let start = lines(&registry);
        assert_eq!(start.len(), Check::ALL.len() + 1 + 4);
        assert!(start.iter().all(|line| line.ends_with(" 0")), "{start:?}");

        let finding = |check| {
            let (hook, text) = ("h".to_owned(), "t".to_owned());
            (true, Finding { check, hook, text })
        };
        metrics.show(&Seen::Findings(vec![
            finding(Check::Pods),
            finding(Check::Pods),
            finding(Check::Rung),
        ]));
        metrics.show(&Seen::Trouble(Trouble::Missing("x".to_owned())));
        let end = lines(&registry);
        for line in [
            "registration_findings{check=\"pods\"} 2",
            "registration_findings{check=\"rung\"} 1",
            "registration_findings{check=\"leases\"} 0",
            "registration_findings{check=\"unseen\"} 1",
            "registration_looks_total{result=\"judged\"} 1",
            "registration_looks_total{result=\"missing\"} 1",
        ] {
            assert!(end.iter().any(|shown| shown == line), "{line}: {end:?}");
        }
        metrics.show(&Seen::Findings(Vec::new()));
        let clean = lines(&registry);
        let mut findings = clean.iter().filter(|line| line.contains("_findings{"));
        assert!(findings.all(|line| line.ends_with(" 0")), "{clean:?}");
    }
}
