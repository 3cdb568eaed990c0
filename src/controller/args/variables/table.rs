//! The table itself: section by section as existing installations document it.

use super::Stance::{self, Accepted, Refused, RefusedIf};
use super::Variable;
use crate::api::contract::{env, path};

/// Every variable that existing installations may set.
pub const TABLE: &[Variable] = &[
    // Which kinds, and where.
    setting("ENABLED", env::ENABLED, GROUPS),
    setting("NAMESPACES", env::NAMESPACES, GROUPS),
    setting(
        "CLUSTER_SCOPED",
        env::CLUSTER_SCOPED,
        "all_namespaces_need_rights_in_the_whole_cluster",
    ),
    setting(
        "ORCHESTRATIONS_ENABLED",
        env::ORCHESTRATIONS_ENABLED,
        GROUPS,
    ),
    setting(
        "ORCHESTRATIONS_NAMESPACES",
        env::ORCHESTRATIONS_NAMESPACES,
        GROUPS,
    ),
    setting("SUPPORTING_ENABLED", env::SUPPORTING_ENABLED, GROUPS),
    setting("SUPPORTING_NAMESPACES", env::SUPPORTING_NAMESPACES, GROUPS),
    // How many runs.
    setting("CONCURRENCY_NAMESPACE", env::CONCURRENCY_NAMESPACE, LIMITS),
    setting("CONCURRENCY_AGENT", env::CONCURRENCY_AGENT, LIMITS),
    setting("CONCURRENCY_CLUSTER", env::CONCURRENCY_CLUSTER, LIMITS),
    setting(
        "REPO_CONCURRENCY_ENABLED",
        env::REPO_CONCURRENCY_ENABLED,
        LIMITS,
    ),
    setting(
        "REPO_CONCURRENCY_DEFAULT",
        env::REPO_CONCURRENCY_DEFAULT,
        LIMITS,
    ),
    setting(
        "REPO_CONCURRENCY_OVERRIDES",
        env::REPO_CONCURRENCY_OVERRIDES,
        LIMITS,
    ),
    setting("QUEUE_NAMESPACE", env::QUEUE_NAMESPACE, LIMITS),
    setting("QUEUE_REPO", env::QUEUE_REPO, LIMITS),
    setting("QUEUE_CLUSTER", env::QUEUE_CLUSTER, LIMITS),
    setting("RATE_WINDOW", env::RATE_WINDOW, LIMITS),
    setting("RATE_NAMESPACE", env::RATE_NAMESPACE, LIMITS),
    setting("RATE_REPO", env::RATE_REPO, LIMITS),
    setting("RATE_CLUSTER", env::RATE_CLUSTER, LIMITS),
    // What runs may be.
    setting(
        "IDEMPOTENCY_ENABLED",
        env::IDEMPOTENCY_ENABLED,
        "keys_mean_nothing_where_they_are_switched_off",
    ),
    setting(
        "IDEMPOTENCY_RETENTION_DAYS",
        env::IDEMPOTENCY_RETENTION_DAYS,
        KEPT,
    ),
    other(
        "JANGAR_AGENTRUN_IDEMPOTENCY_RESERVATION_TTL_SECONDS",
        RefusedIf {
            when: |value| value != "0",
            value: "any value but `0`",
            why: "a key belongs to the run that has it, so no reservation grows old and none is taken back; leave it out",
            otherwise: "no reservation grows old",
        },
    ),
    setting(
        "IMMUTABILITY_ENFORCED",
        env::IMMUTABILITY_ENFORCED,
        "where_that_is_wished_such_a_run_only_warns",
    ),
    // How long what they leave is kept.
    setting("RUN_RETENTION", env::RUN_RETENTION, KEPT),
    setting("RUNNER_JOB_TTL", env::RUNNER_JOB_TTL, KEPT),
    setting("RUNNER_LOG_RETENTION", env::RUNNER_LOG_RETENTION, PODS),
    // What their pods get.
    setting("RUNNER_IMAGE", env::RUNNER_IMAGE, PODS),
    setting("AGENT_IMAGE", env::AGENT_IMAGE, PODS),
    setting("RUNNER_SERVICE_ACCOUNT", env::RUNNER_SERVICE_ACCOUNT, PODS),
    setting("AUTH_SECRET_NAME", env::AUTH_SECRET_NAME, PODS),
    setting("AUTH_SECRET_KEY", env::AUTH_SECRET_KEY, PODS),
    setting("AUTH_SECRET_MOUNT_PATH", env::AUTH_SECRET_MOUNT_PATH, PODS),
    setting(
        "RUNNER_NATS_AUTH_SECRET_NAME",
        env::RUNNER_NATS_AUTH_SECRET_NAME,
        NATS,
    ),
    setting(
        "RUNNER_NATS_AUTH_USERNAME_KEY",
        env::RUNNER_NATS_AUTH_USERNAME_KEY,
        NATS,
    ),
    setting(
        "RUNNER_NATS_AUTH_PASSWORD_KEY",
        env::RUNNER_NATS_AUTH_PASSWORD_KEY,
        NATS,
    ),
    setting("RUNNER_BACKOFF_LIMIT", env::RUNNER_BACKOFF_LIMIT, PODS),
    setting("RUNNER_NODE_SELECTOR", env::RUNNER_NODE_SELECTOR, PODS),
    setting("RUNNER_AFFINITY", env::RUNNER_AFFINITY, PODS),
    setting(
        "RUNNER_POD_SECURITY_CONTEXT",
        env::RUNNER_POD_SECURITY_CONTEXT,
        PODS,
    ),
    setting("RUNNER_TOLERATIONS", env::RUNNER_TOLERATIONS, PODS),
    setting(
        "RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS",
        env::RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS,
        PODS,
    ),
    setting(
        "RUNNER_IMAGE_PULL_SECRETS",
        env::RUNNER_IMAGE_PULL_SECRETS,
        PODS,
    ),
    setting("RUNNER_PRIORITY_CLASS", env::RUNNER_PRIORITY_CLASS, PODS),
    setting("RUNNER_SCHEDULER_NAME", env::RUNNER_SCHEDULER_NAME, PODS),
    // Schedules.
    other(
        "JANGAR_SCHEDULE_RUNNER_IMAGE",
        Refused(
            "a schedule makes its runs itself, so no pod would have this image; leave it out, and set JANGAR_AGENT_RUNNER_IMAGE for runs that name none",
        ),
    ),
    other("JANGAR_IMAGE", Accepted(SCHEDULES)),
    other(
        "JANGAR_SCHEDULE_SERVICE_ACCOUNT",
        Refused(
            "a schedule makes its runs itself, with the rights of the controllers and not of this account; leave it out, and set JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT for the account that runs have",
        ),
    ),
    other("JANGAR_SERVICE_ACCOUNT_NAME", Accepted(SCHEDULES)),
    // Who leads.
    setting("POD_NAMESPACE", env::POD_NAMESPACE, OWN_LEASE),
    setting("POD_UID", env::POD_UID, OWN_LEASE),
    honoured("HOSTNAME", OWN_LEASE),
    setting(
        "LEADER_ELECTION_ENABLED",
        env::LEADER_ELECTION_ENABLED,
        OWN_LEASE,
    ),
    setting(
        "LEADER_ELECTION_LEASE_NAME",
        env::LEADER_ELECTION_LEASE_NAME,
        OWN_LEASE,
    ),
    setting(
        "LEADER_ELECTION_LEASE_NAMESPACE",
        env::LEADER_ELECTION_LEASE_NAMESPACE,
        OWN_LEASE,
    ),
    setting(
        "LEADER_ELECTION_LEASE_DURATION",
        env::LEADER_ELECTION_LEASE_DURATION,
        OWN_LEASE,
    ),
    setting(
        "LEADER_ELECTION_RENEW_DEADLINE",
        env::LEADER_ELECTION_RENEW_DEADLINE,
        CUT_OFF,
    ),
    setting(
        "LEADER_ELECTION_RETRY_PERIOD",
        env::LEADER_ELECTION_RETRY_PERIOD,
        CUT_OFF,
    ),
    // What is told.
    setting("EVENTS_ENABLED", env::EVENTS_ENABLED, TOLD),
    setting(
        "EVENTS_RATE_LIMIT_PER_MIN",
        env::EVENTS_RATE_LIMIT_PER_MIN,
        TOLD,
    ),
    honoured("OTEL_METRICS_EXPORTER", ENDPOINTS),
    honoured("OTEL_EXPORTER_OTLP_ENDPOINT", ENDPOINTS),
    honoured("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", ENDPOINTS),
    honoured("OTEL_EXPORTER_OTLP_PROTOCOL", WORDS),
    honoured("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", WORDS),
    honoured("OTEL_EXPORTER_OTLP_HEADERS", OWN_WAY),
    honoured("OTEL_EXPORTER_OTLP_METRICS_HEADERS", OWN_WAY),
    honoured("OTEL_EXPORTER_OTLP_TIMEOUT", OWN_WAY),
    honoured("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", OWN_WAY),
    honoured("OTEL_METRIC_EXPORT_INTERVAL", OWN_WAY),
    honoured("OTEL_SERVICE_NAME", OWN_WAY),
    honoured("OTEL_SERVICE_NAMESPACE", OWN_WAY),
    honoured(
        "OTEL_SERVICE_INSTANCE_ID",
        "the_instance_is_the_pod_unless_said_otherwise",
    ),
    other("JANGAR_PROMETHEUS_METRICS_ENABLED", Accepted(METRICS)),
    other(
        "JANGAR_PROMETHEUS_METRICS_PATH",
        RefusedIf {
            when: |value| value != path::METRICS,
            value: "any value but `/metrics`",
            why: "the page is the sidecar's and is at /metrics, so whoever reads it elsewhere would find nothing; leave it out",
            otherwise: METRICS,
        },
    ),
    other(
        "JANGAR_AUDIT_SINK_TYPE",
        RefusedIf {
            when: |value| !value.eq_ignore_ascii_case("none"),
            value: "any value but `none`",
            why: "nothing is audited by this program, so whoever relies on it would find nothing; set it to none",
            otherwise: "nothing is audited",
        },
    ),
    other(
        "JANGAR_AUDIT_SINK_HTTP_*",
        Accepted("nothing is audited by this program"),
    ),
    // Other programs.
    other(
        "JANGAR_GRPC_*",
        Accepted("calls are answered by the control plane, not by the controllers"),
    ),
    other(
        "JANGAR_CONTROL_PLANE_CACHE_ENABLED",
        Accepted("the control plane reads it, the controllers keep their copies in any case"),
    ),
    other(
        "PORT",
        Accepted("AGENTS_ADMIN_LISTEN says where probes are answered"),
    ),
    other(
        "NODE_ENV",
        RefusedIf {
            when: |value| value == "test",
            value: "`test`",
            why: "it switches nothing off here; set the ENABLED variables of the groups to false",
            otherwise: "it only ever switched controllers off",
        },
    ),
    // Stores.
    honoured("DATABASE_URL", OWN_DATABASE),
    honoured("PGSSLROOTCERT", OWN_DATABASE),
    other(
        "JANGAR_MIGRATIONS",
        Accepted("there is no database whose tables could be changed"),
    ),
    other(
        "JANGAR_PRIMITIVES_RECONCILER",
        RefusedIf {
            when: |value| !["0", "false", "no", "off"].contains(&&*value.to_ascii_lowercase()),
            value: "any value that switches it on",
            why: "objects are not copied into a database, so whoever reads them there would find nothing; set it to false",
            otherwise: "the cluster itself is the record",
        },
    ),
    other(
        "JANGAR_PRIMITIVES_NAMESPACES",
        Accepted("objects are not copied into a database; the cluster itself is the record"),
    ),
    // Never built.
    other(
        "TEMPORAL_*",
        Refused("runs of type temporal are refused, so nobody would ever connect; leave it out"),
    ),
    other(
        "JANGAR_CONTROLLER_FINALIZER_CLEANUP_TIMEOUT_MS",
        Accepted(NOTES),
    ),
    other("JANGAR_CONTROLLER_KUBECTL_TIMEOUT_MS", Accepted(NOTES)),
    other("JANGAR_CONTROLLER_DB_TIMEOUT_MS", Accepted(NOTES)),
    other("JANGAR_CONTROLLER_CONFLICT_RETRY_ATTEMPTS", Accepted(NOTES)),
    other("JANGAR_CONTROLLER_CONFLICT_RETRY_BASE_MS", Accepted(NOTES)),
    other("JANGAR_KUBECTL_FIELD_MANAGER", Accepted(NOTES)),
    other("JANGAR_ORCHESTRATION_CANCEL_TIMEOUT_MS", Accepted(NOTES)),
    honoured(env::LABELS_REQUIRED, POLICY),
    honoured(env::LABELS_ALLOWED, POLICY),
    honoured(env::LABELS_DENIED, POLICY),
    honoured(env::IMAGES_ALLOWED, POLICY),
    honoured(env::IMAGES_DENIED, POLICY),
    honoured(env::BLOCKED_SECRETS, POLICY),
    honoured(env::VCS_PROVIDERS_ENABLED, HOSTS),
    honoured(env::VCS_DEPRECATED_TOKEN_TYPES, HOSTS),
    honoured(env::VCS_PR_RATE_LIMITS, HOSTS),
    honoured(env::GITHUB_REPOS_ALLOWED, HOSTS),
    honoured(env::ARTIFACTS_MAX, HOSTS),
    honoured(env::ARTIFACTS_STRICT, HOSTS),
    other(env::DELIVERIES_MAX, Accepted(INBOUND)),
    setting("DELIVERIES_RETRY_BASE", env::DELIVERIES_RETRY_BASE, RETRIED),
    setting("DELIVERIES_RETRY_MAX", env::DELIVERIES_RETRY_MAX, RETRIED),
    setting("DELIVERIES_ATTEMPTS", env::DELIVERIES_ATTEMPTS, RETRIED),
];

// The tests.
const GROUPS: &str = "each_group_works_where_it_is_told_to_and_can_be_off";
const LIMITS: &str = "every_limit_holds_back";
const PODS: &str = "each_setting_of_pods_shows_in_the_job";
const NATS: &str = HOSTS;
const KEPT: &str = "each_time_shows_in_how_long_something_is_kept";
const OWN_LEASE: &str = "the_lease_is_called_held_and_placed_as_the_operator_says";
const CUT_OFF: &str = "a_holder_that_cannot_renew_writes_nothing_when_another_begins";
const RETRIED: &str = "a_delivery_that_fails_is_tried_again_and_given_up";
const TOLD: &str = "events_are_told_as_the_operator_wishes";
const ENDPOINTS: &str = "endpoints_follow_the_rules_of_opentelemetry";
const WORDS: &str = "what_this_program_cannot_do_is_refused_in_words";
const OWN_WAY: &str = "metrics_can_go_another_way_than_traces";
const POLICY: &str = "the_operators_variables_are_obeyed";
const OWN_DATABASE: &str = "the_database_of_the_installation_is_known_by_its_variables";
const HOSTS: &str = "version_control_and_artifacts_are_as_the_operator_says";

// The sentences.
const SCHEDULES: &str =
    "a schedule makes its runs itself, so there is no helper whose image or account it could be";
const METRICS: &str = "metrics are pushed over OTLP to the sidecar, which has the page";
const INBOUND: &str = "the control plane says how many deliveries may wait";
const NOTES: &str = "no version has ever read it";

/// A setting, by its constant in `contract::env`.
const fn setting(constant: &'static str, name: &'static str, test: &'static str) -> Variable {
    Variable {
        name,
        constant,
        stance: Stance::Honoured { test },
    }
}

/// A setting whose name is written out in the sources.
const fn honoured(name: &'static str, test: &'static str) -> Variable {
    setting("", name, test)
}

/// A variable that is no setting.
const fn other(name: &'static str, stance: Stance) -> Variable {
    Variable {
        name,
        constant: "",
        stance,
    }
}
