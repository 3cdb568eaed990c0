//! Every name that crosses a process boundary, written once.
//!
//! Here is what more than one program reads or writes, and what operators already have in their manifests: labels,
//! annotations, finalizers, ports, paths, variables. A setting of ours that one program reads stands in its `args.rs`, and
//! one that every program reads in `kit::args`, each with its default. Nothing here is computed. `docs/compatibility.md`
//! lists what may not change.

/// Group of the seven core kinds, and the prefix of every label, annotation and finalizer of ours.
pub const GROUP: &str = "agents.proompteng.ai";

/// The one served and stored version of every group.
pub const VERSION: &str = "v1alpha1";

/// Category on every CRD: `kubectl get agents-all` lists all 19 kinds.
pub const CATEGORY: &str = "agents-all";

/// Who writes, in the bookkeeping of the API server.
pub const FIELD_MANAGER: &str = "agents-controller";

/// The same where a person writes by the command line.
pub const COMMAND_LINE_MANAGER: &str = "agents-cli";

/// Labels on the objects that the controller makes.
pub mod label {
    /// Name of the AgentRun that a Job, pod or ConfigMap belongs to.
    pub const AGENT_RUN: &str = "agents.proompteng.ai/agent-run";
    /// Uid of the run that a Job or pod belongs to; tells it from a later run of the same name. Every Job of ours has it,
    /// whatever sort of run it carries out.
    pub const RUN_UID: &str = "agents.proompteng.ai/run-uid";
    /// Name of the Agent, made fit for a label value.
    pub const AGENT: &str = "agents.proompteng.ai/agent";
    /// Name of the AgentProvider, made fit for a label value.
    pub const PROVIDER: &str = "agents.proompteng.ai/provider";
    /// Name of the ImplementationSpec, made fit for a label value.
    pub const IMPLEMENTATION: &str = "agents.proompteng.ai/implementation";
    /// Name of the workflow step, made fit for a label value.
    pub const STEP: &str = "agents.proompteng.ai/step";
    /// Position of the workflow step, from 1.
    pub const STEP_INDEX: &str = "agents.proompteng.ai/step-index";
    /// Round of the workflow step, from 1.
    pub const STEP_ITERATION: &str = "agents.proompteng.ai/step-iteration";
    /// Try of the workflow step within its round, from 1.
    pub const STEP_ATTEMPT: &str = "agents.proompteng.ai/step-attempt";
    /// On a pod, from the cluster itself: name of the Job that it belongs to.
    pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
    /// Delivery that caused an object, for idempotent submission.
    pub const DELIVERY_ID: &str = "jangar.proompteng.ai/delivery-id";
    /// Name of the ToolRun that a Job, pod or ConfigMap belongs to.
    pub const TOOL_RUN: &str = "jangar.proompteng.ai/tool-run";
    /// Name of the Schedule that made a run.
    pub const SCHEDULE: &str = "schedules.proompteng.ai/schedule";
    /// Name of the OrchestrationRun that the object of a step belongs to.
    pub const ORCHESTRATION_RUN: &str = "jangar.proompteng.ai/orchestration-run";
    /// Name of the step that an object carries out.
    pub const ORCHESTRATION_STEP: &str = "jangar.proompteng.ai/orchestration-step";
    /// Name of the Workspace that a claim belongs to.
    pub const WORKSPACE: &str = "workspaces.proompteng.ai/workspace";
    /// The tracker that an ImplementationSpec was taken over from.
    pub const SOURCE_PROVIDER: &str = "agents.proompteng.ai/source-provider";
    /// The tracker that a delivery came from, on the ConfigMap in which it waits to be worked on.
    pub const DELIVERY: &str = "agents.proompteng.ai/delivery";
    /// On a namespace: how admission treats it while the webhook does not answer.
    pub const ADMISSION: &str = "agents.proompteng.ai/admission";
    /// The value of [`ADMISSION`] by which a namespace is ahead of the others: nothing is stored unjudged.
    pub const ADMISSION_FAIL: &str = "fail";
    /// On a pod of a Rollout: whether it is of the stable version or of the one on trial.
    pub const ROLLOUT: &str = "agents.proompteng.ai/rollout";
    /// The value of [`ROLLOUT`] on a pod of the version on trial.
    pub const ROLLOUT_CANARY: &str = "canary";
    /// On a pod of a Rollout, from Argo Rollouts: tells its version from every other.
    pub const ROLLOUT_HASH: &str = "rollouts-pod-template-hash";
}

/// Annotations that one program writes and another reads.
pub mod annotation {
    /// Mark on a Job: its outcome is stored in the owner's status, so it may go.
    pub const OUTCOME_RECORDED: &str = "agents.proompteng.ai/outcome-recorded";
    /// W3C trace context of the admission that let the object in.
    pub const TRACEPARENT: &str = "agents.proompteng.ai/traceparent";
    /// The trace context that admission itself wrote last. One that differs from it was pinned by the user, and stays.
    pub const TRACEPARENT_STAMPED: &str = "agents.proompteng.ai/traceparent-stamped";
    /// On an OrchestrationRun: how many orchestrations have started one another up to it.
    pub const ORCHESTRATION_DEPTH: &str = "agents.proompteng.ai/orchestration-depth";
    /// On an ImplementationSpec: the version of the issue that it was taken over from.
    pub const SOURCE_VERSION: &str = "agents.proompteng.ai/source-version";
    /// On the lease of the controllers: who is asked to hold it next, by identity or by name of the pod.
    pub const YIELD_TO: &str = "agents.proompteng.ai/yield-to";
    /// On the lease: who was asked says that it is ready, as its identity and the renewal that it saw.
    pub const YIELD_READY: &str = "agents.proompteng.ai/yield-ready";
    /// On the lease: why the last request was not granted.
    pub const YIELD_REFUSED: &str = "agents.proompteng.ai/yield-refused";
    /// On the lease: version of its holder, where versions are rolled out one beside the other.
    pub const HOLDER_REVISION: &str = "agents.proompteng.ai/holder-revision";
    /// On the lease: what a reader of the holder's queue must show. Who may read the lease may read the queue.
    pub const QUEUE_KEY: &str = "agents.proompteng.ai/queue-key";
    /// On a webhook configuration: the rung that it was made for.
    pub const RUNG: &str = "agents.proompteng.ai/rung";
    /// On an AgentRun or an Agent: name of the Budget that its runs are held to.
    pub const BUDGET: &str = "agents.proompteng.ai/budget";
    /// On an object that was submitted with an idempotency key: SHA-256 of the request, in hex.
    pub const SUBMISSION_HASH: &str = "agents.proompteng.ai/submission-hash";
    /// On a run: who deleted its Job before the outcome was stored, as JSON with `job`, `uid`, `user` and `at`.
    pub const JOB_DELETED_BY: &str = "agents.proompteng.ai/job-deleted-by";
}

/// Finalizers of ours.
pub mod finalizer {
    /// On a Job: held until its outcome is stored.
    pub const OUTCOME: &str = "agents.proompteng.ai/outcome";
    /// On the pods of a Job: held until their exit is read.
    pub const EVIDENCE: &str = "agents.proompteng.ai/evidence";
    /// On an AgentRun: held until what it runs has been stopped.
    pub const RUNTIME_CLEANUP: &str = "agents.proompteng.ai/runtime-cleanup";
}

/// Containers of the pods that the controller makes.
pub mod container {
    /// The one that does the work of an AgentRun.
    pub const AGENT_RUNNER: &str = "agent-runner";
}

/// Paths of the admin endpoint, the same in all three programs.
pub mod path {
    /// The process answers.
    pub const LIVEZ: &str = "/livez";
    /// Every gate named at start is open.
    pub const READYZ: &str = "/readyz";
    /// Prometheus text exposition.
    pub const METRICS: &str = "/metrics";
    /// CPU profile of the running process, where switched on.
    pub const PROFILE: &str = "/debug/pprof/profile";
}

/// Paths at which the controllers tell how their queue stands.
pub mod queue {
    /// The numbers as they are now, as JSON.
    pub const SNAPSHOT: &str = "/v1/queue";
    /// The same with every change, as server-sent events.
    pub const STREAM: &str = "/v1/queue/stream";
    /// Header by which a caller from outside the pod shows the key that is on the lease.
    pub const KEY: &str = "agents-queue-key";
}

/// Names of the events in the stream of the queue.
pub mod queue_event {
    /// Everything as it is now: at the start, and where a reader cannot go on from where it was.
    pub const SNAPSHOT: &str = "snapshot";
    /// Everything after a change.
    pub const QUEUE: &str = "queue";
    /// The reader was too slow and has missed something; the stream ends.
    pub const DROPPED: &str = "dropped";
    /// The program ends, and with it the stream.
    pub const END: &str = "end";
}

/// Paths of the API of the control plane that other programs ask for.
pub mod api_path {
    /// What happens to all objects of a namespace, as server-sent events.
    pub const CONTROL_PLANE_STREAM: &str = "/v1/control-plane/stream";
    /// What the sidecar sees that runs beside the controller that leads.
    pub const SIDECAR: &str = "/v1/sidecar";
    /// The description of the API.
    pub const OPENAPI: &str = "/openapi.json";
    /// What GitHub calls with news of issues.
    pub const GITHUB: &str = "/api/agents/implementation-sources/webhooks/github";
    /// What Linear calls with them.
    pub const LINEAR: &str = "/api/agents/implementation-sources/webhooks/linear";
}

/// Names of the events in the stream of the control plane; the `type` in their data is the same word.
pub mod control_plane_event {
    /// Something happened to an object.
    pub const RESOURCE: &str = "resource";
    /// How the control plane itself stands.
    pub const STATUS: &str = "status";
    /// Something could not be read.
    pub const ERROR: &str = "error";
    /// Where a stream that begins anew has told all there is.
    pub const READY: &str = "ready";
}

/// Paths at which the webhook answers reviews.
pub mod door {
    /// Objects of ours before the schema is looked at.
    pub const MUTATE: &str = "/mutate";
    /// Objects of ours as they would be stored.
    pub const VALIDATE: &str = "/validate";
    /// Status writes, to repair.
    pub const MUTATE_STATUS: &str = "/mutate-status";
    /// Status writes, to judge.
    pub const VALIDATE_STATUS: &str = "/validate-status";
    /// Deletions of Jobs of ours.
    pub const VALIDATE_DELETE: &str = "/validate-delete";
}

/// Users of the cluster itself.
pub mod user {
    /// Removes what has no owner any more.
    pub const GARBAGE_COLLECTOR: &str =
        "system:serviceaccount:kube-system:generic-garbage-collector";
    /// Empties namespaces that are being deleted.
    pub const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";
    /// Removes Jobs whose time to live after their end is over.
    pub const TTL_CONTROLLER: &str =
        "system:serviceaccount:kube-system:ttl-after-finished-controller";
    /// All controllers of the cluster at once, where they share a user.
    pub const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
}

/// Ports on which the programs listen by default.
pub mod port {
    /// Admin endpoint of `agents`.
    pub const AGENTS_ADMIN: u16 = 8080;
    /// Admin endpoint of `agents-webhook`.
    pub const WEBHOOK_ADMIN: u16 = 8081;
    /// Admin endpoint of `agents-sidecar`; also where Prometheus scrapes.
    pub const SIDECAR_ADMIN: u16 = 9464;
    /// Admission reviews, over TLS.
    pub const WEBHOOK: u16 = 8443;
    /// OTLP over gRPC into the sidecar.
    pub const OTLP_GRPC: u16 = 4317;
    /// OTLP over HTTP into the sidecar.
    pub const OTLP_HTTP: u16 = 4318;
    /// How the queue of the controllers stands; on loopback.
    pub const QUEUE: u16 = 8082;
    /// The same for the control plane, which must show a key.
    pub const QUEUE_RELAY: u16 = 8083;
    /// The API of the control plane, `agents serve`.
    pub const SERVE: u16 = 8090;
    /// The same over gRPC.
    pub const GRPC: u16 = 50051;
}

/// Environment variables of the operators.
pub mod env {
    /// Whether Events are emitted.
    pub const EVENTS_ENABLED: &str = "JANGAR_CONTROLLER_EVENTS_ENABLED";
    /// Most Event writes about one object in a minute.
    pub const EVENTS_RATE_LIMIT_PER_MIN: &str = "JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN";
    /// Whether agents, their runs and what they refer to are worked on.
    pub const ENABLED: &str = "JANGAR_AGENTS_CONTROLLER_ENABLED";
    /// Whether the program has rights in the whole cluster.
    pub const CLUSTER_SCOPED: &str = "JANGAR_RBAC_CLUSTER_SCOPED";
    /// Namespaces whose objects are followed.
    pub const NAMESPACES: &str = "JANGAR_AGENTS_CONTROLLER_NAMESPACES";
    /// Whether orchestrations and their runs are worked on.
    pub const ORCHESTRATIONS_ENABLED: &str = "JANGAR_ORCHESTRATION_CONTROLLER_ENABLED";
    /// Namespaces in which they are.
    pub const ORCHESTRATIONS_NAMESPACES: &str = "JANGAR_ORCHESTRATION_CONTROLLER_NAMESPACES";
    /// Whether all kinds besides agents and orchestrations are worked on.
    pub const SUPPORTING_ENABLED: &str = "JANGAR_SUPPORTING_CONTROLLER_ENABLED";
    /// Namespaces in which they are.
    pub const SUPPORTING_NAMESPACES: &str = "JANGAR_SUPPORTING_CONTROLLER_NAMESPACES";
    /// Labels that every AgentRun must have.
    pub const LABELS_REQUIRED: &str = "JANGAR_AGENTS_CONTROLLER_LABELS_REQUIRED";
    /// The only labels that an AgentRun may have.
    pub const LABELS_ALLOWED: &str = "JANGAR_AGENTS_CONTROLLER_LABELS_ALLOWED";
    /// Labels that no AgentRun may have.
    pub const LABELS_DENIED: &str = "JANGAR_AGENTS_CONTROLLER_LABELS_DENIED";
    /// The only images that anything may use.
    pub const IMAGES_ALLOWED: &str = "JANGAR_AGENTS_CONTROLLER_IMAGES_ALLOWED";
    /// Images that nothing may use.
    pub const IMAGES_DENIED: &str = "JANGAR_AGENTS_CONTROLLER_IMAGES_DENIED";
    /// Secrets that nothing may use.
    pub const BLOCKED_SECRETS: &str = "JANGAR_AGENTS_CONTROLLER_BLOCKED_SECRETS";
    /// Secret with the credentials that every run gets.
    pub const AUTH_SECRET_NAME: &str = "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_NAME";
    /// Image of runs that name none.
    pub const RUNNER_IMAGE: &str = "JANGAR_AGENT_RUNNER_IMAGE";
    /// The same, where the one above is not set.
    pub const AGENT_IMAGE: &str = "JANGAR_AGENT_IMAGE";
    /// Service account of runs that name none.
    pub const RUNNER_SERVICE_ACCOUNT: &str = "JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT";
    /// Entry of the Secret with the credentials that every run gets.
    pub const AUTH_SECRET_KEY: &str = "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_KEY";
    /// Where that entry is mounted.
    pub const AUTH_SECRET_MOUNT_PATH: &str = "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_MOUNT_PATH";
    /// Seconds that a Job is kept once its outcome is stored.
    pub const RUNNER_JOB_TTL: &str = "JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS";
    /// The same for a Job that failed.
    pub const RUNNER_FAILED_JOB_TTL: &str = "AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS";
    /// Seconds before which no Job goes after its end.
    pub const RUNNER_JOB_TTL_FLOOR: &str = "AGENTS_RUNNER_JOB_TTL_FLOOR_SECONDS";
    /// Seconds that a Job and its pods are kept at least, so that logs can be read.
    pub const RUNNER_JOB_LOG_RETENTION: &str = "AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS";
    /// Seconds that the runner keeps its log.
    pub const RUNNER_LOG_RETENTION: &str = "JANGAR_AGENT_RUNNER_LOG_RETENTION_SECONDS";
    /// How often a Job tries a failed pod again.
    pub const RUNNER_BACKOFF_LIMIT: &str = "JANGAR_AGENT_RUNNER_BACKOFF_LIMIT";
    /// Node selector of pods.
    pub const RUNNER_NODE_SELECTOR: &str = "JANGAR_AGENT_RUNNER_NODE_SELECTOR";
    /// Affinity of pods.
    pub const RUNNER_AFFINITY: &str = "JANGAR_AGENT_RUNNER_AFFINITY";
    /// Security context of pods.
    pub const RUNNER_POD_SECURITY_CONTEXT: &str = "JANGAR_AGENT_RUNNER_POD_SECURITY_CONTEXT";
    /// Security context of containers.
    pub const RUNNER_CONTAINER_SECURITY_CONTEXT: &str = "AGENTS_RUNNER_CONTAINER_SECURITY_CONTEXT";
    /// Tolerations of pods.
    pub const RUNNER_TOLERATIONS: &str = "JANGAR_AGENT_RUNNER_TOLERATIONS";
    /// Topology spread constraints of pods.
    pub const RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS: &str =
        "JANGAR_AGENT_RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS";
    /// Secrets that pull the images of pods.
    pub const RUNNER_IMAGE_PULL_SECRETS: &str = "JANGAR_AGENT_RUNNER_IMAGE_PULL_SECRETS";
    /// Priority class of pods.
    pub const RUNNER_PRIORITY_CLASS: &str = "JANGAR_AGENT_RUNNER_PRIORITY_CLASS";
    /// Scheduler of pods.
    pub const RUNNER_SCHEDULER_NAME: &str = "JANGAR_AGENT_RUNNER_SCHEDULER_NAME";
    /// Secret with which runners sign in to NATS.
    pub const RUNNER_NATS_AUTH_SECRET_NAME: &str = "JANGAR_AGENT_RUNNER_NATS_AUTH_SECRET_NAME";
    /// Entry of that Secret with the user.
    pub const RUNNER_NATS_AUTH_USERNAME_KEY: &str = "JANGAR_AGENT_RUNNER_NATS_AUTH_USERNAME_KEY";
    /// Entry of that Secret with the password.
    pub const RUNNER_NATS_AUTH_PASSWORD_KEY: &str = "JANGAR_AGENT_RUNNER_NATS_AUTH_PASSWORD_KEY";
    /// Whether runs use version control.
    pub const VCS_PROVIDERS_ENABLED: &str = "JANGAR_AGENTS_CONTROLLER_VCS_PROVIDERS_ENABLED";
    /// Token types that are warned of.
    pub const VCS_DEPRECATED_TOKEN_TYPES: &str =
        "JANGAR_AGENTS_CONTROLLER_VCS_DEPRECATED_TOKEN_TYPES";
    /// Limits of pull requests, for runners.
    pub const VCS_PR_RATE_LIMITS: &str = "JANGAR_AGENTS_CONTROLLER_VCS_PR_RATE_LIMITS";
    /// The only repositories on GitHub that runs may use.
    pub const GITHUB_REPOS_ALLOWED: &str = "JANGAR_GITHUB_REPOS_ALLOWED";
    /// Seconds that a run is kept after its end.
    pub const RUN_RETENTION: &str = "JANGAR_AGENTS_CONTROLLER_AGENTRUN_RETENTION_SECONDS";
    /// Most runs of one namespace at a time.
    pub const CONCURRENCY_NAMESPACE: &str = "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_NAMESPACE";
    /// Most runs of one agent at a time.
    pub const CONCURRENCY_AGENT: &str = "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_AGENT";
    /// Most runs at a time.
    pub const CONCURRENCY_CLUSTER: &str = "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_CLUSTER";
    /// Whether runs of one repository are limited.
    pub const REPO_CONCURRENCY_ENABLED: &str = "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_ENABLED";
    /// Most runs of one repository at a time.
    pub const REPO_CONCURRENCY_DEFAULT: &str = "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_DEFAULT";
    /// The same for single repositories.
    pub const REPO_CONCURRENCY_OVERRIDES: &str =
        "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_OVERRIDES";
    /// Most runs of one namespace that wait.
    pub const QUEUE_NAMESPACE: &str = "JANGAR_AGENTS_CONTROLLER_QUEUE_NAMESPACE";
    /// Most runs of one repository that wait.
    pub const QUEUE_REPO: &str = "JANGAR_AGENTS_CONTROLLER_QUEUE_REPO";
    /// Most runs that wait.
    pub const QUEUE_CLUSTER: &str = "JANGAR_AGENTS_CONTROLLER_QUEUE_CLUSTER";
    /// Seconds within which runs that begin are counted.
    pub const RATE_WINDOW: &str = "JANGAR_AGENTS_CONTROLLER_RATE_WINDOW_SECONDS";
    /// Most runs of one namespace that begin within that time.
    pub const RATE_NAMESPACE: &str = "JANGAR_AGENTS_CONTROLLER_RATE_NAMESPACE";
    /// Most runs of one repository that begin within that time.
    pub const RATE_REPO: &str = "JANGAR_AGENTS_CONTROLLER_RATE_REPO";
    /// Most runs that begin within that time.
    pub const RATE_CLUSTER: &str = "JANGAR_AGENTS_CONTROLLER_RATE_CLUSTER";
    /// Whether a run is carried out only once for its idempotency key.
    pub const IDEMPOTENCY_ENABLED: &str = "JANGAR_AGENTRUN_IDEMPOTENCY_ENABLED";
    /// Days for which a run that has ended keeps its key.
    pub const IDEMPOTENCY_RETENTION_DAYS: &str = "JANGAR_AGENTRUN_IDEMPOTENCY_RETENTION_DAYS";
    /// Whether a run fails whose spec is changed after it has begun.
    pub const IMMUTABILITY_ENFORCED: &str = "JANGAR_AGENTRUN_IMMUTABILITY_ENFORCED";
    /// Artifacts that a run keeps.
    pub const ARTIFACTS_MAX: &str = "JANGAR_AGENTRUN_ARTIFACTS_MAX";
    /// Whether a run fails whose artifacts break the limits.
    pub const ARTIFACTS_STRICT: &str = "JANGAR_AGENTRUN_ARTIFACTS_STRICT";
    /// Seconds that a run waits for something that it refers to.
    pub const REFERENCE_GRACE: &str = "AGENTS_REFERENCE_GRACE_SECONDS";
    /// Objects of one kind that are worked on at a time.
    pub const WORKERS: &str = "AGENTS_CONTROLLER_WORKERS";
    /// Seconds between two looks at every object.
    pub const SWEEP: &str = "AGENTS_CONTROLLER_SWEEP_SECONDS";
    /// Where the controllers tell how their queue stands.
    pub const QUEUE_LISTEN: &str = "AGENTS_QUEUE_LISTEN";
    /// Where they tell it to a control plane.
    pub const QUEUE_RELAY_LISTEN: &str = "AGENTS_QUEUE_RELAY_LISTEN";
    /// Shortest time between two events of that stream.
    pub const QUEUE_STREAM_INTERVAL: &str = "AGENTS_QUEUE_STREAM_INTERVAL";
    /// Seconds between two looks at the tracker of a source.
    pub const SOURCE_SYNC: &str = "AGENTS_SOURCE_SYNC_SECONDS";
    /// Whether the API answers over gRPC as well.
    pub const GRPC_ENABLED: &str = "JANGAR_GRPC_ENABLED";
    /// The address at which it does.
    pub const GRPC_HOST: &str = "JANGAR_GRPC_HOST";
    /// The port at which it does.
    pub const GRPC_PORT: &str = "JANGAR_GRPC_PORT";
    /// Deliveries of trackers that may wait to be worked on.
    pub const DELIVERIES_MAX: &str = "JANGAR_AGENTS_CONTROLLER_WEBHOOK_QUEUE_SIZE";
    /// Seconds until a delivery that failed is tried again; they double each time.
    pub const DELIVERIES_RETRY_BASE: &str =
        "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_BASE_DELAY_SECONDS";
    /// Most seconds until it is.
    pub const DELIVERIES_RETRY_MAX: &str =
        "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_MAX_DELAY_SECONDS";
    /// How often a delivery is tried.
    pub const DELIVERIES_ATTEMPTS: &str = "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_MAX_ATTEMPTS";
    /// Time between two looks at what Memories and VersionControlProviders name outside.
    pub const REACH: &str = "AGENTS_REACH_CHECK_SECONDS";
    /// Whether only the holder of the lease works.
    pub const LEADER_ELECTION_ENABLED: &str = "JANGAR_LEADER_ELECTION_ENABLED";
    /// Name of the lease.
    pub const LEADER_ELECTION_LEASE_NAME: &str = "JANGAR_LEADER_ELECTION_LEASE_NAME";
    /// Namespace of the lease.
    pub const LEADER_ELECTION_LEASE_NAMESPACE: &str = "JANGAR_LEADER_ELECTION_LEASE_NAMESPACE";
    /// Seconds for which the lease is held without a renewal.
    pub const LEADER_ELECTION_LEASE_DURATION: &str =
        "JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS";
    /// Seconds in which a renewal must succeed.
    pub const LEADER_ELECTION_RENEW_DEADLINE: &str =
        "JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS";
    /// Seconds between two tries.
    pub const LEADER_ELECTION_RETRY_PERIOD: &str = "JANGAR_LEADER_ELECTION_RETRY_PERIOD_SECONDS";
    /// File with the labels of the pod.
    pub const POD_LABELS_FILE: &str = "AGENTS_POD_LABELS_FILE";
    /// Namespace of the program's own pod.
    pub const POD_NAMESPACE: &str = "JANGAR_POD_NAMESPACE";
    /// Uid of the program's own pod.
    pub const POD_UID: &str = "JANGAR_POD_UID";
    /// How far the webhook has been rolled out.
    pub const WEBHOOK_RUNG: &str = "AGENTS_WEBHOOK_RUNG";
    /// File with the admission policy.
    pub const POLICY_FILE: &str = "AGENTS_POLICY_FILE";
    /// File with a policy that is tried beside the one in force.
    pub const POLICY_CANDIDATE_FILE: &str = "AGENTS_POLICY_CANDIDATE_FILE";
    /// Whether an Agent needs a SecretBinding to use secrets.
    pub const POLICY_REQUIRE_SECRET_BINDING: &str = "AGENTS_POLICY_REQUIRE_SECRET_BINDING";
    /// Modes of the rules of the policy.
    pub const POLICY_MODES: &str = "AGENTS_POLICY_MODES";
    /// Modes of the rules of the status contract.
    pub const POLICY_STATUS_MODES: &str = "AGENTS_POLICY_STATUS_MODES";
    /// What happens when a Job is deleted before its outcome is stored.
    pub const POLICY_JOB_DELETE: &str = "AGENTS_POLICY_JOB_DELETE";
}

/// `reportingController` of the Events that each program emits.
pub mod reporter {
    /// The reconcilers.
    pub const CONTROLLER: &str = "agents.proompteng.ai/controller";
    /// The admission webhook.
    pub const WEBHOOK: &str = "agents.proompteng.ai/webhook";
    /// The sidecar.
    pub const SIDECAR: &str = "agents.proompteng.ai/sidecar";
}

/// Metrics on the page of the sidecar that the control plane and the command line read.
pub mod sidecar_metric {
    /// Pages that were written, by `format`.
    pub const PAGES: &str = "agents_sidecar_pages_total";
    /// Whether a stream is followed now, by `source`.
    pub const SOURCE_UP: &str = "agents_sidecar_source_up";
    /// Whether the source holds the lease, by `source`.
    pub const SOURCE_LEADER: &str = "agents_sidecar_source_leader";
    /// Whether there is nothing to follow, by `source`.
    pub const SOURCE_STOPPED: &str = "agents_sidecar_source_stopped";
    /// Seconds since the last event, by `source`.
    pub const SOURCE_LAST_EVENT_AGE: &str = "agents_sidecar_source_last_event_age_seconds";
    /// Times that a stream was opened, by `source`.
    pub const SOURCE_CONNECTIONS: &str = "agents_sidecar_source_connections_total";
    /// Times that it ended or could not be opened, by `source` and `cause`.
    pub const SOURCE_DISCONNECTS: &str = "agents_sidecar_source_disconnects_total";
    /// Events that the source could not keep, by `source`.
    pub const SOURCE_DROPPED: &str = "agents_sidecar_source_dropped_total";
    /// Times that the source could not go on from the last event, by `source`.
    pub const SOURCE_GAPS: &str = "agents_sidecar_source_gaps_total";
    /// 1 for how the watch of Jobs stands, by `mode`.
    pub const JOB_WATCH_MODE: &str = "agents_sidecar_job_watch_mode";
    /// Jobs that there are, by `state`.
    pub const JOB_KNOWN: &str = "agents_sidecar_job_known";
    /// Jobs that have ended and whose outcome is not stored.
    pub const JOB_UNRECORDED: &str = "agents_sidecar_job_unrecorded";
    /// Seconds since the first of those ended.
    pub const JOB_OLDEST_UNRECORDED: &str = "agents_sidecar_job_oldest_unrecorded_seconds";
    /// Pods of ours that no Job looks after.
    pub const JOB_ORPHANED_PODS: &str = "agents_sidecar_job_orphaned_pods";
    /// Jobs deleted before their outcome was stored, by `class` and `stage`.
    pub const JOB_PREMATURE_DELETIONS: &str = "agents_sidecar_job_premature_deletions_total";
    /// What endangered an outcome, by `hazard`.
    pub const JOB_HAZARDS: &str = "agents_sidecar_job_hazards_total";
}

/// Metrics that the controllers push, as OpenTelemetry names them.
pub mod metric {
    /// Reconciles, by `kind` and `result`.
    pub const RECONCILES: &str = "agents.reconciles";
    /// Time of one reconcile in seconds, by `kind`.
    pub const RECONCILE_DURATION: &str = "agents.reconcile.duration";
    /// Reconciles that panicked, by `kind`.
    pub const RECONCILE_PANICS: &str = "agents.reconcile.panics";
    /// Objects that are ready to be worked on, by `kind`.
    pub const QUEUE_DEPTH: &str = "agents.queue.depth";
    /// Watches that broke and were started anew, by `kind`.
    pub const WATCH_RESTARTS: &str = "agents.watch.restarts";
    /// Requests to yield the lease, by `result`: yielded or refused.
    pub const LEASE_YIELDS: &str = "agents.lease.yields";
    /// 1 while this process holds the lease, else 0.
    pub const LEADING: &str = "agents.leading";
    /// Runs that ended, by `phase` and `runtime`.
    pub const RUNS: &str = "agents.runs";
    /// From the start of a run to its end in seconds, by `runtime`.
    pub const RUN_DURATION: &str = "agents.run.duration";
    /// AgentRuns in line for a slot; only from the holder of the lease.
    pub const RUNS_WAITING: &str = "agents.runs.waiting";
    /// Seconds since the AgentRun was made that has been in line for longest, 0 if none is; only from the holder of the lease.
    pub const RUNS_OLDEST_WAITING: &str = "agents.runs.oldest_waiting";
    /// AgentRuns that have begun and not ended; only from the holder of the lease.
    pub const RUNS_RUNNING: &str = "agents.runs.running";
    /// AgentRuns that are held back, by `reason`; only from the holder of the lease.
    pub const RUNS_BLOCKED: &str = "agents.runs.blocked";
    /// AgentRuns that had to wait because too many began within the window, by `scope` of the limit.
    pub const RATE_LIMIT_HITS: &str = "agents.rate_limit.hits";
    /// From the end of a Job to its stored outcome, in seconds.
    pub const OUTCOME_RECORD: &str = "agents.job.outcome.record";
    /// Jobs that have ended and whose outcome is not stored yet; only from the holder of the lease.
    pub const OUTCOME_UNRECORDED: &str = "agents.job.outcome.unrecorded";
    /// Seconds since the first of those Jobs ended, 0 if there is none; only from the holder of the lease.
    pub const OUTCOME_UNRECORDED_AGE: &str = "agents.job.outcome.unrecorded_age";
    /// Jobs that are missing, by `class` and `recovered`.
    pub const JOBS_MISSING: &str = "agents.job.missing";
    /// Events stored, by `type` and `group`.
    pub const EVENTS_EMITTED: &str = "agents.events.emitted";
    /// Writes of the count of a series of Events.
    pub const EVENTS_UPDATED: &str = "agents.events.updated";
    /// Occurrences counted in a series instead of stored.
    pub const EVENTS_AGGREGATED: &str = "agents.events.aggregated";
    /// Occurrences held back, by `limit`.
    pub const EVENTS_SUPPRESSED: &str = "agents.events.suppressed";
    /// Occurrences lost, by `cause`.
    pub const EVENTS_DROPPED: &str = "agents.events.dropped";
    /// Calls about Events that failed, by `cause`.
    pub const EVENTS_ERRORS: &str = "agents.events.errors";
    /// Calls to the API server, by `verb`, `resource` and `code`.
    pub const API_CALLS: &str = "agents.api.calls";
    /// Time to the first answer of such a call in seconds, by `verb`.
    pub const API_CALL_DURATION: &str = "agents.api.call.duration";
    /// Readers of the stream of the queue.
    pub const STREAM_READERS: &str = "agents.queue_stream.readers";
    /// Events that readers of the stream have not taken yet.
    pub const STREAM_BACKLOG: &str = "agents.queue_stream.backlog";
    /// Readers that came.
    pub const STREAM_OPENED: &str = "agents.queue_stream.opened";
    /// Readers that went.
    pub const STREAM_CLOSED: &str = "agents.queue_stream.closed";
    /// Readers that were too slow.
    pub const STREAM_DROPPED: &str = "agents.queue_stream.dropped";
    /// Readers for whom there was no room.
    pub const STREAM_REFUSED: &str = "agents.queue_stream.refused";
    /// The name that dashboards know for the depth of a queue, by `name`.
    pub const WORKQUEUE_DEPTH: &str = "workqueue_depth";
    /// Objects that were put into a queue, by `name`.
    pub const WORKQUEUE_ADDS: &str = "workqueue_adds_total";
    /// Seconds that an object stands in a queue, by `name`.
    pub const WORKQUEUE_QUEUE_DURATION: &str = "workqueue_queue_duration_seconds";
    /// Seconds that an object is worked on, by `name`.
    pub const WORKQUEUE_WORK_DURATION: &str = "workqueue_work_duration_seconds";
    /// Objects that are tried again after a failure, by `name`.
    pub const WORKQUEUE_RETRIES: &str = "workqueue_retries_total";
    /// Seconds that all objects which are worked on now have taken so far, by `name`.
    pub const WORKQUEUE_UNFINISHED: &str = "workqueue_unfinished_work_seconds";
    /// Seconds of the one that has taken longest, by `name`.
    pub const WORKQUEUE_LONGEST: &str = "workqueue_longest_running_processor_seconds";
    /// Calls to addresses in objects that were refused, by `reason`.
    pub const EGRESS_REFUSED: &str = "agents.egress.refused";
}
