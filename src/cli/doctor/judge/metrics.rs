//! Whether anyone reads what the programs count.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use crate::api::registration::selects;
use crate::cli::doctor::check::Verdict::{self, Bad, Beside, Good, Warning};
use crate::cli::doctor::check::{Check, When, seen, some};
use crate::cli::doctor::facts::{Component, Facts, Labels, Unseen};

/// A sidecar that is younger has not had its turn yet: the chart has it scraped every 30 s.
const YOUNG: f64 = 60.0;

/// About metrics.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "monitor-selected",
        title: "a Prometheus selects our ServiceMonitor",
        hint: "give it the label that your Prometheus chooses by: metrics.serviceMonitor.labels, often `release: NAME`",
        link: "docs/install.md#metrics",
        when: When::After,
        judge: monitor_selected,
    },
    Check {
        id: "sidecar-scraped",
        title: "the sidecar is scraped",
        hint: "see the targets page of Prometheus, the ServiceMonitor, and whether NetworkPolicies let Prometheus reach port 9464",
        link: "docs/runbooks/AgentsSidecarDown.md",
        when: When::After,
        judge: sidecar_scraped,
    },
];

fn monitor_selected(facts: &Facts) -> Verdict {
    let monitors = match &facts.monitors {
        Err(Unseen::Absent(what)) => {
            return Beside(format!("{what} is not there; another scraper may be"));
        }
        other => other,
    };
    seen(monitors, |monitors| {
        if monitors.is_empty() {
            return match facts.values.monitor {
                true => Bad("the values ask for a ServiceMonitor, and there is none".to_owned()),
                false => Beside("there is no ServiceMonitor of ours".to_owned()),
            };
        }
        seen(&facts.prometheuses, |prometheuses| {
            if prometheuses.is_empty() {
                return Warning("there is a ServiceMonitor and no Prometheus object".to_owned());
            }
            let is_selected = |monitor: &&Value| {
                let mut all = prometheuses.iter();
                all.any(|prometheus| chooses(prometheus, monitor, facts))
            };
            let (chosen, left): (Vec<&Value>, Vec<&Value>) = monitors.iter().partition(is_selected);
            let shown = |monitor: &&Value| {
                let name = monitor["metadata"]["name"].as_str().unwrap_or_default();
                let namespace = monitor["metadata"]["namespace"].as_str();
                format!("{name} in namespace {}", namespace.unwrap_or_default())
            };
            match left.is_empty() {
                true => Good(some(&chosen.iter().map(shown).collect::<Vec<_>>())),
                false => {
                    let left: Vec<String> = left.iter().map(shown).collect();
                    Bad(format!("no Prometheus selects {}", some(&left)))
                }
            }
        })
    })
}

/// Whether a Prometheus chooses a monitor, as its operator reads it: no selector of monitors chooses none, an empty one
/// all; no selector of namespaces means its own.
fn chooses(prometheus: &Value, monitor: &Value, facts: &Facts) -> bool {
    let sort = match monitor["kind"].as_str() {
        Some("PodMonitor") => "podMonitor",
        _ => "serviceMonitor",
    };
    let spec = &prometheus["spec"];
    let Some(wanted) = selector(&spec[format!("{sort}Selector")]) else {
        return false;
    };
    let place = |object: &Value| object["metadata"]["namespace"].as_str().map(str::to_owned);
    let there = place(monitor).unwrap_or_default();
    let reaches = match selector(&spec[format!("{sort}NamespaceSelector")]) {
        None => place(prometheus).as_ref() == Some(&there),
        Some(namespaces) => {
            let all = facts.namespaces.as_ref().ok();
            let labels = all.and_then(|all| all.get(&there)).cloned();
            selects(Some(&namespaces), &labels.unwrap_or_default())
        }
    };
    let labels: Labels =
        serde_json::from_value(monitor["metadata"]["labels"].clone()).unwrap_or_default();
    reaches && selects(Some(&wanted), &labels)
}

fn selector(value: &Value) -> Option<LabelSelector> {
    let given = value.is_object().then(|| value.clone())?;
    serde_json::from_value(given).ok()
}

fn sidecar_scraped(facts: &Facts) -> Verdict {
    match facts.program(Component::Controllers) {
        None => return Beside("the controllers are not installed here".to_owned()),
        Some(program) if !program.has_sidecar => {
            return Bad(format!("{} has no sidecar", program.name));
        }
        Some(_) => {}
    }
    seen(&facts.sidecars, |sidecars| {
        let left = sidecars.iter().filter(|sidecar| {
            let is_young = sidecar.age.is_some_and(|age| age < YOUNG);
            sidecar.scrapes == 0 && !is_young
        });
        let left: Vec<String> = left.map(|sidecar| sidecar.pod.clone()).collect();
        match (left.as_slice(), sidecars.len()) {
            (_, 0) => Bad("no pod of the controllers has one that answers".to_owned()),
            ([], count) => Good(format!("{count} pages are read")),
            (left, _) => Bad(format!(
                "no scraper has read the page of {} since it began",
                some(left)
            )),
        }
    })
}
