//! Variables that are set, start like ours, and are probably a setting misspelt.

use std::collections::BTreeMap;

use super::{Entry, PREFIXES};

/// How many letters may differ. Kubernetes sets `AGENTS_SERVICE_HOST` and the like, and the programs share one
/// environment, so only a near miss is worth a word.
const DISTANCE: usize = 2;

/// One sentence per variable that nobody reads and that is almost one of `entries`.
pub(super) fn suspects(entries: &[Entry], environment: &BTreeMap<String, String>) -> Vec<String> {
    let known = |name: &str| entries.iter().any(|entry| entry.variable == name);
    let ours = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    environment
        .keys()
        .filter(|name| ours(name) && !known(name))
        .filter_map(|name| nearest(entries, name).map(|meant| (name, meant)))
        .map(|(name, meant)| format!("{name} is no setting of this program; did you mean {meant}?"))
        .collect()
}

fn nearest(entries: &[Entry], name: &str) -> Option<&'static str> {
    entries
        .iter()
        .map(|entry| (strsim::osa_distance(entry.variable, name), entry.variable))
        .filter(|(distance, _)| *distance <= DISTANCE)
        .min()
        .map(|(_, variable)| variable)
}
