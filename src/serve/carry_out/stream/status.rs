//! How the control plane stands, as its stream tells it. Pure.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::contract::control_plane_event;
use crate::serve::carry_out::leader::Leader;

/// What is known.
#[derive(Clone, Debug)]
pub(super) struct Known<'a> {
    pub(super) now: Timestamp,
    pub(super) namespace: &'a str,
    pub(super) leader: Option<&'a Leader>,
    /// Namespace and name of the lease.
    pub(super) lease: (&'a str, &'a str),
    /// Kinds that cannot be read now.
    pub(super) unread: Vec<&'static str>,
    /// When anything was last heard of the cluster.
    pub(super) heard_at: Option<Timestamp>,
    pub(super) untouched: (usize, Option<Timestamp>),
}

/// The message of the stream.
pub(super) fn message(known: &Known<'_>) -> Value {
    json!({"type": control_plane_event::STATUS, "namespace": known.namespace, "status": status(known)})
}

fn status(known: &Known<'_>) -> Value {
    let Known {
        now,
        namespace,
        leader,
        lease,
        unread,
        heard_at,
        untouched: (count, oldest),
    } = known;
    let has_leader = leader.is_some_and(|leader| leader.is_held);
    let mut degraded = Vec::new();
    if !has_leader {
        degraded.push("controllers");
    }
    if !unread.is_empty() {
        degraded.push("watches");
    }
    let health = |is_well: bool| if is_well { "healthy" } else { "degraded" };
    let message = match has_leader {
        true => "",
        false => "no controller holds the lease, so nothing is worked on",
    };
    let age = oldest.map(|oldest| now.duration_since(oldest).as_secs_f64().max(0.0));
    json!({
        "service": "agents",
        "generated_at": now,
        "leader_election": {
            "enabled": true, "is_leader": false, "lease_namespace": lease.0, "lease_name": lease.1,
            "holder": leader.map(|leader| &leader.holder), "held": has_leader,
        },
        "controllers": [{
            "name": "agents-controllers", "enabled": true, "started": has_leader, "crds_ready": unread.is_empty(),
            "missing_crds": [], "last_checked_at": now, "status": health(has_leader), "message": message,
        }],
        "runtime_adapters": [],
        "watch_reliability": {"status": health(unread.is_empty()), "unread": unread},
        "agentrun_ingestion": {
            "status": health(has_leader), "last_watch_event_at": heard_at,
            "untouched_run_count": count, "oldest_untouched_age_seconds": age.unwrap_or_default(),
        },
        "namespaces": [{
            "namespace": namespace, "status": health(degraded.is_empty()), "degraded_components": degraded,
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_amiss_is_named() {
        let leader = Leader {
            holder: "pod_uid".to_owned(),
            is_held: true,
            key: None,
        };
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let well = Known {
            now,
            namespace: "a",
            leader: Some(&leader),
            lease: ("n", "l"),
            unread: Vec::new(),
            heard_at: None,
            untouched: (2, "2026-01-01T00:00:00Z".parse().ok()),
        };
        let told = message(&well)["status"].clone();
        assert_eq!(told["namespaces"][0]["status"], "healthy");
        assert_eq!(told["agentrun_ingestion"]["untouched_run_count"], 2);
        assert_eq!(
            told["agentrun_ingestion"]["oldest_untouched_age_seconds"],
            60.0
        );
        let amiss = Known {
            leader: None,
            unread: vec!["Agent"],
            ..well
        };
        let told = message(&amiss)["status"].clone();
        assert_eq!(
            told["namespaces"][0]["degraded_components"],
            json!(["controllers", "watches"])
        );
        assert_eq!(told["controllers"][0]["started"], false);
    }
}
