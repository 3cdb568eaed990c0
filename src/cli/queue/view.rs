//! The queue as a table.

use jiff::Timestamp;

use super::figures::{Snapshot, Source};
use crate::cli::run::view::between;
use crate::cli::shown::{Cell, Paint, Tone, age, table};
use crate::controller::load::{Figures, Load, Named, Ranked};

/// The table, with repositories if it is wide, and who says so.
pub(super) fn table_of(snapshot: &Snapshot, is_wide: bool, paint: Paint) -> String {
    let Snapshot {
        at,
        source,
        leader,
        figures,
    } = snapshot;
    let Figures {
        cluster,
        namespaces,
        agents,
        repositories,
    } = figures;
    let mut rows = vec![row("cluster", "", cluster, *at)];
    add(&mut rows, "namespace", namespaces, *at);
    add(&mut rows, "agent", agents, *at);
    if is_wide {
        add(&mut rows, "repository", repositories, *at);
    }
    let head = ["SCOPE", "NAME", "WAITING", "RUNNING", "OLDEST", "HELD BACK"];
    let said = match (source, leader) {
        (Source::Leader, Some(pod)) => format!("told by {pod}, which leads"),
        (Source::Leader | Source::Runs, _) => "counted from the runs".to_owned(),
    };
    let said = paint.tone(Tone::Dim, &format!("At {at:.0}, {said}."));
    format!("{}{said}\n", table(&head, &rows, paint))
}

fn add(rows: &mut Vec<Vec<Cell>>, sort: &str, ranked: &Ranked, now: Timestamp) {
    for Named {
        namespace,
        name,
        load,
    } in &ranked.top
    {
        let name = match namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.clone(),
        };
        rows.push(row(sort, &name, load, now));
    }
    if ranked.rest.scopes > 0 {
        let name = format!("{} more", ranked.rest.scopes);
        rows.push(row(sort, &name, &ranked.rest.load, now));
    }
}

fn row(sort: &str, name: &str, load: &Load, now: Timestamp) -> Vec<Cell> {
    let Load {
        waiting,
        running,
        blocked,
        oldest_waiting_since,
    } = load;
    let held: Vec<String> = blocked
        .iter()
        .map(|(reason, many)| format!("{many} {reason}"))
        .collect();
    let oldest = oldest_waiting_since.map(|since| age(between(since, now)));
    vec![
        Cell::from(sort),
        Cell::from(name),
        Cell::toned(waiting.to_string(), (*waiting > 0).then_some(Tone::Warn)),
        Cell::from(running.to_string()),
        Cell::from(oldest.unwrap_or_default()),
        Cell::toned(held.join(", "), Some(Tone::Warn)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::figures::Told;
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_leader_tells_is_a_row_for_each_scope() {
        let load = json!({"waiting": 2, "running": 1, "blocked": {"ConcurrencyLimit": 2}, "oldestWaitingSince": "2026-01-01T11:00:00Z"});
        let mut agent = load.clone();
        agent["namespace"] = json!("team");
        agent["name"] = json!("coder");
        let rest = json!({"scopes": 3, "waiting": 4, "running": 5, "blocked": {"RateLimit": 4}, "oldestWaitingSince": "2026-01-01T11:30:00Z"});
        // As a leader of an earlier version tells it.
        let older = json!({"top": [], "rest": {"scopes": 1, "waiting": 6, "running": 7}});
        let none = json!({"top": [], "rest": {"scopes": 0, "waiting": 0, "running": 0, "blocked": {}, "oldestWaitingSince": null}});
        let told: Told = serde_json::from_value(json!({
            "at": "2026-01-01T12:00:00Z", "leader": true, "stream": {},
            "queue": {"cluster": load, "namespaces": none, "agents": {"top": [agent], "rest": rest}, "repositories": older},
        }))
        .unwrap();
        let snapshot = Snapshot {
            at: told.at,
            source: Source::Leader,
            leader: Some("agents-controllers-1".to_owned()),
            figures: told.queue.unwrap(),
        };
        let expected = "\
SCOPE        NAME         WAITING   RUNNING   OLDEST   HELD BACK
cluster                   2         1         60m      2 ConcurrencyLimit
agent        team/coder   2         1         60m      2 ConcurrencyLimit
agent        3 more       4         5         30m      4 RateLimit
repository   1 more       6         7
At 2026-01-01T12:00:00Z, told by agents-controllers-1, which leads.
";
        assert_eq!(table_of(&snapshot, true, Paint::PLAIN), expected);
    }
}
