{{/* What the values say, as variables of the controllers: JSON map of name to text. Empty texts and empty lists are left out, zeros
     and false are not. The webhook and the sidecar take from it what they share with the controllers. */}}
{{- define "agents.settings" -}}
{{- $v := .Values -}}{{- $c := $v.controller -}}{{- $work := $c.defaultWorkload -}}{{- $policy := $c.admissionPolicy -}}
{{- $e := dict -}}
{{- $always := dict
  "JANGAR_AGENTS_CONTROLLER_ENABLED" $c.enabled
  "JANGAR_ORCHESTRATION_CONTROLLER_ENABLED" $v.orchestrationController.enabled
  "JANGAR_SUPPORTING_CONTROLLER_ENABLED" $v.supportingController.enabled
  "JANGAR_RBAC_CLUSTER_SCOPED" $v.rbac.clusterScoped
  "JANGAR_LEADER_ELECTION_ENABLED" $c.leaderElection.enabled
  "JANGAR_LEADER_ELECTION_LEASE_NAME" $c.leaderElection.leaseName
  "JANGAR_LEADER_ELECTION_LEASE_NAMESPACE" ($c.leaderElection.leaseNamespace | default (include "agents.namespace" .))
  "JANGAR_LEADER_ELECTION_LEASE_DURATION_SECONDS" $c.leaderElection.leaseDurationSeconds
  "JANGAR_LEADER_ELECTION_RENEW_DEADLINE_SECONDS" $c.leaderElection.renewDeadlineSeconds
  "JANGAR_LEADER_ELECTION_RETRY_PERIOD_SECONDS" $c.leaderElection.retryPeriodSeconds
  "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_NAMESPACE" $c.concurrency.perNamespace
  "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_AGENT" $c.concurrency.perAgent
  "JANGAR_AGENTS_CONTROLLER_CONCURRENCY_CLUSTER" $c.concurrency.cluster
  "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_ENABLED" $c.repoConcurrency.enabled
  "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_DEFAULT" $c.repoConcurrency.default
  "JANGAR_AGENTS_CONTROLLER_QUEUE_NAMESPACE" $c.queue.perNamespace
  "JANGAR_AGENTS_CONTROLLER_QUEUE_REPO" $c.queue.perRepo
  "JANGAR_AGENTS_CONTROLLER_QUEUE_CLUSTER" $c.queue.cluster
  "JANGAR_AGENTS_CONTROLLER_RATE_WINDOW_SECONDS" $c.rate.windowSeconds
  "JANGAR_AGENTS_CONTROLLER_RATE_NAMESPACE" $c.rate.perNamespace
  "JANGAR_AGENTS_CONTROLLER_RATE_REPO" $c.rate.perRepo
  "JANGAR_AGENTS_CONTROLLER_RATE_CLUSTER" $c.rate.cluster
  "JANGAR_AGENTS_CONTROLLER_AGENTRUN_RETENTION_SECONDS" $c.agentRunRetentionSeconds
  "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_BASE_DELAY_SECONDS" $c.webhook.retry.baseDelaySeconds
  "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_MAX_DELAY_SECONDS" $c.webhook.retry.maxDelaySeconds
  "JANGAR_AGENTS_CONTROLLER_WEBHOOK_RETRY_MAX_ATTEMPTS" $c.webhook.retry.maxAttempts
  "JANGAR_AGENTRUN_ARTIFACTS_MAX" $c.agentRunArtifacts.max
  "JANGAR_AGENTRUN_ARTIFACTS_STRICT" $c.agentRunArtifacts.strict
  "JANGAR_AGENT_RUNNER_LOG_RETENTION_SECONDS" $c.logRetentionSeconds
  "JANGAR_AGENT_RUNNER_JOB_TTL_SECONDS" (include "agents.jobTtl" .)
  "AGENTS_RUNNER_JOB_TTL_FLOOR_SECONDS" $c.jobTtlFloorSeconds
  "AGENTS_RUNNER_JOB_LOG_RETENTION_SECONDS" $c.jobLogRetentionSeconds
  "JANGAR_AGENT_RUNNER_BACKOFF_LIMIT" $c.jobBackoffLimit
  "AGENTS_REFERENCE_GRACE_SECONDS" $c.referenceGraceSeconds
  "JANGAR_AGENTS_CONTROLLER_VCS_PROVIDERS_ENABLED" $c.vcsProviders.enabled
  "AGENTS_POLICY_REQUIRE_SECRET_BINDING" $policy.requireSecretBinding
  "JANGAR_CONTROLLER_EVENTS_ENABLED" $v.events.enabled
  "JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN" $v.events.rateLimitPerMinute
-}}
{{- range $name, $value := $always -}}{{- $_ := set $e $name (include "agents.text" $value) -}}{{- end -}}
{{- if not (kindIs "invalid" $c.failedJobTtlSeconds) -}}{{- $_ := set $e "AGENTS_RUNNER_FAILED_JOB_TTL_SECONDS" (include "agents.text" $c.failedJobTtlSeconds) -}}{{- end -}}
{{- $namespaces := dict
  "JANGAR_AGENTS_CONTROLLER_NAMESPACES" $c.namespaces
  "JANGAR_ORCHESTRATION_CONTROLLER_NAMESPACES" $v.orchestrationController.namespaces
  "JANGAR_SUPPORTING_CONTROLLER_NAMESPACES" $v.supportingController.namespaces
-}}
{{- range $name, $own := $namespaces -}}{{- $_ := set $e $name (include "agents.namespacesOf" (dict "root" $ "own" $own) | fromJsonArray | join ",") -}}{{- end -}}
{{- $texts := dict
  "JANGAR_AGENT_RUNNER_IMAGE" (include "agents.runnerImage" .)
  "JANGAR_AGENT_IMAGE" $v.runtime.agentImage
  "JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT" (include "agents.runnerAccountOfRuns" .)
  "JANGAR_AGENT_RUNNER_PRIORITY_CLASS" $work.priorityClassName
  "JANGAR_AGENT_RUNNER_SCHEDULER_NAME" $work.schedulerName
  "KUBERNETES_SERVICE_HOST" $v.kubernetesApi.host
  "KUBERNETES_SERVICE_PORT" $v.kubernetesApi.port
-}}
{{- range $name, $value := $texts -}}{{- if $value -}}{{- $_ := set $e $name (include "agents.text" $value) -}}{{- end -}}{{- end -}}
{{- if $c.authSecret.name -}}
{{- $_ := set $e "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_NAME" $c.authSecret.name -}}
{{- $_ := set $e "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_KEY" $c.authSecret.key -}}
{{- $_ := set $e "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_MOUNT_PATH" $c.authSecret.mountPath -}}
{{- end -}}
{{- $json := dict
  "JANGAR_AGENTS_CONTROLLER_REPO_CONCURRENCY_OVERRIDES" $c.repoConcurrency.overrides
  "JANGAR_AGENTS_CONTROLLER_LABELS_REQUIRED" $policy.labels.required
  "JANGAR_AGENTS_CONTROLLER_LABELS_ALLOWED" $policy.labels.allowed
  "JANGAR_AGENTS_CONTROLLER_LABELS_DENIED" $policy.labels.denied
  "JANGAR_AGENTS_CONTROLLER_IMAGES_ALLOWED" $policy.images.allowed
  "JANGAR_AGENTS_CONTROLLER_IMAGES_DENIED" $policy.images.denied
  "JANGAR_AGENTS_CONTROLLER_BLOCKED_SECRETS" $policy.secrets.blocked
  "JANGAR_AGENTS_CONTROLLER_VCS_DEPRECATED_TOKEN_TYPES" $c.vcsProviders.deprecatedTokenTypes
  "JANGAR_AGENTS_CONTROLLER_VCS_PR_RATE_LIMITS" $c.vcsProviders.prRateLimits
  "JANGAR_AGENT_RUNNER_NODE_SELECTOR" $work.nodeSelector
  "JANGAR_AGENT_RUNNER_TOLERATIONS" $work.tolerations
  "JANGAR_AGENT_RUNNER_AFFINITY" $work.affinity
  "JANGAR_AGENT_RUNNER_TOPOLOGY_SPREAD_CONSTRAINTS" $work.topologySpreadConstraints
  "JANGAR_AGENT_RUNNER_POD_SECURITY_CONTEXT" $work.podSecurityContext
  "AGENTS_RUNNER_CONTAINER_SECURITY_CONTEXT" (include "agents.runContainerContext" . | fromJson)
  "JANGAR_AGENT_RUNNER_IMAGE_PULL_SECRETS" ($work.imagePullSecrets | default $v.runner.image.pullSecrets)
-}}
{{- range $name, $value := $json -}}{{- if $value -}}{{- $_ := set $e $name (toJson $value) -}}{{- end -}}{{- end -}}
{{- with $policy.modes -}}{{- $_ := set $e "AGENTS_POLICY_MODES" (include "agents.modes" .) -}}{{- end -}}
{{- $e | toJson -}}
{{- end -}}

{{/* Rules with their modes, as RULE=mode,RULE=mode. */}}
{{- define "agents.modes" -}}
{{- $pairs := list -}}{{- range $rule, $mode := . -}}{{- $pairs = append $pairs (printf "%s=%s" $rule $mode) -}}{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{/* Security context of the containers of runs. Without one no pod of a run would be let into a namespace that the chart holds to the
     level `restricted`. */}}
{{- define "agents.runContainerContext" -}}
{{- $v := .Values -}}{{- $own := $v.controller.defaultWorkload.containerSecurityContext -}}
{{- $here := include "agents.namespace" . -}}{{- $runs := false -}}
{{- range list $v.controller $v.supportingController -}}
{{- $places := include "agents.namespacesOf" (dict "root" $ "own" .namespaces) | fromJsonArray -}}
{{- if and .enabled (or (has $here $places) (has "*" $places)) -}}{{- $runs = true -}}{{- end -}}
{{- end -}}
{{- if and (not $own) $runs (eq (include "agents.enforcedLevel" .) "restricted") -}}
{{- $own = dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- end -}}
{{- $own | toJson -}}
{{- end -}}

{{/* The level of Pod Security that the chart holds the release's namespace to; empty if none. */}}
{{- define "agents.enforcedLevel" -}}
{{- with .Values.podSecurityAdmission -}}
{{- if and .enabled .createNamespace -}}
{{- if .labels -}}{{- get .labels "pod-security.kubernetes.io/enforce" -}}{{- else -}}restricted{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The two names of one value. That they agree is checked in _validate.tpl. */}}
{{- define "agents.jobTtl" -}}
{{- $c := .Values.controller -}}
{{- if not (kindIs "invalid" $c.jobTtlSecondsAfterFinished) -}}{{ include "agents.text" $c.jobTtlSecondsAfterFinished }}
{{- else if not (kindIs "invalid" $c.jobTtlSeconds) -}}{{ include "agents.text" $c.jobTtlSeconds }}
{{- else -}}600{{- end -}}
{{- end -}}

{{- define "agents.runnerImage" -}}
{{- $image := .Values.runner.image -}}
{{- if $image.repository -}}
{{- $image.repository -}}:{{- $image.tag -}}{{- with $image.digest -}}@{{ . }}{{- end -}}
{{- else -}}{{ .Values.runtime.agentRunnerImage }}{{- end -}}
{{- end -}}

{{- define "agents.runnerAccountOfRuns" -}}
{{- if .Values.controller.defaultWorkload.serviceAccountName -}}{{ .Values.controller.defaultWorkload.serviceAccountName }}
{{- else if .Values.runnerServiceAccount.setAsDefault -}}{{ include "agents.runnerServiceAccountName" . }}{{- end -}}
{{- end -}}

{{/* Variables that every program reads: logs, traces. */}}
{{- define "agents.commonSettings" -}}
{{- $e := dict "AGENTS_LOG_FILTER" .Values.logging.level "AGENTS_LOG_FORMAT" .Values.logging.format -}}
{{- with .Values.tracing.endpoint -}}{{- $_ := set $e "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" . -}}{{- end -}}
{{- $e | toJson -}}
{{- end -}}

{{/* Maps of variables laid over each other, the later over the earlier, as one JSON map of texts. */}}
{{- define "agents.overlay" -}}
{{- $all := dict -}}
{{- range . -}}{{- range $name, $value := . -}}{{- $_ := set $all $name (include "agents.text" $value) -}}{{- end -}}{{- end -}}
{{- $all | toJson -}}
{{- end -}}

{{/* Variables of the reconcilers: the values, env.vars, controllers.env.vars. */}}
{{- define "agents.controllersSettings" -}}
{{- $own := dict "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" "http://127.0.0.1:4317" "OTEL_SERVICE_NAMESPACE" (include "agents.namespace" .) -}}
{{- if not .Values.metrics.enabled -}}{{- $own = dict "OTEL_METRICS_EXPORTER" "none" -}}{{- end -}}
{{- $_ := set $own "AGENTS_POD_LABELS_FILE" "/etc/agents/pod/labels" -}}
{{- /* The control plane reads the queue from the leader by way of the API server, which reaches no loopback. */ -}}
{{- if .Values.controlPlane.enabled -}}{{- $_ := set $own "AGENTS_QUEUE_RELAY_LISTEN" "[::]:8083" -}}{{- end -}}
{{- include "agents.overlay" (list (include "agents.commonSettings" . | fromJson) $own (include "agents.settings" . | fromJson) .Values.env.vars .Values.controllers.env.vars) -}}
{{- end -}}

{{/* Of some variables those that are set. */}}
{{- define "agents.only" -}}
{{- $found := dict -}}{{- $from := .from -}}
{{- range .names -}}{{- if hasKey $from . -}}{{- $_ := set $found . (get $from .) -}}{{- end -}}{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Variables of the sidecar. What it shares with the reconcilers beside it is what they were told, whoever said it. */}}
{{- define "agents.sidecarSettings" -}}
{{- $shared := list "JANGAR_AGENTS_CONTROLLER_ENABLED" "JANGAR_AGENTS_CONTROLLER_NAMESPACES" "JANGAR_SUPPORTING_CONTROLLER_ENABLED" "JANGAR_SUPPORTING_CONTROLLER_NAMESPACES" "JANGAR_CONTROLLER_EVENTS_ENABLED" "JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN" "KUBERNETES_SERVICE_HOST" "KUBERNETES_SERVICE_PORT" -}}
{{- $from := include "agents.only" (dict "names" $shared "from" (include "agents.controllersSettings" . | fromJson)) | fromJson -}}
{{- $own := dict "AGENTS_SIDECAR_JOBS" (.Values.sidecar.jobs.enabled | ternary "follow" "off") -}}
{{- /* Where a monitor has it scraped, it stays for the last scrape, as long as the pod has to end. */ -}}
{{- $optional := include "agents.optional" . | fromJson -}}
{{- $last := sub .Values.terminationGracePeriodSeconds 5 -}}
{{- if and (or (eq $optional.ServiceMonitor "yes") (eq $optional.PodMonitor "yes")) (gt $last 0) -}}{{- $_ := set $own "AGENTS_SHUTDOWN_LINGER" (printf "%ds" $last) -}}{{- end -}}
{{- with .Values.sidecar.forward.endpoint -}}{{- $_ := set $own "AGENTS_SIDECAR_FORWARD_ENDPOINT" . -}}{{- $_ := set $own "AGENTS_SIDECAR_FORWARD_PROTOCOL" $.Values.sidecar.forward.protocol -}}{{- end -}}
{{- include "agents.overlay" (list (include "agents.commonSettings" . | fromJson) $from $own .Values.sidecar.env.vars) -}}
{{- end -}}

{{/* Variables of the webhook. It judges by the same policy and the same defaults as the reconcilers. */}}
{{- define "agents.webhookSettings" -}}
{{- $shared := list "JANGAR_AGENTS_CONTROLLER_NAMESPACES" "JANGAR_AGENTS_CONTROLLER_LABELS_REQUIRED" "JANGAR_AGENTS_CONTROLLER_LABELS_ALLOWED" "JANGAR_AGENTS_CONTROLLER_LABELS_DENIED" "JANGAR_AGENTS_CONTROLLER_IMAGES_ALLOWED" "JANGAR_AGENTS_CONTROLLER_IMAGES_DENIED" "JANGAR_AGENTS_CONTROLLER_BLOCKED_SECRETS" "AGENTS_POLICY_REQUIRE_SECRET_BINDING" "AGENTS_POLICY_MODES" "JANGAR_AGENT_RUNNER_IMAGE" "JANGAR_AGENT_IMAGE" "JANGAR_AGENT_RUNNER_SERVICE_ACCOUNT" "JANGAR_AGENTS_CONTROLLER_AUTH_SECRET_NAME" "JANGAR_AGENT_RUNNER_IMAGE_PULL_SECRETS" "JANGAR_CONTROLLER_EVENTS_ENABLED" "JANGAR_CONTROLLER_EVENTS_RATE_LIMIT_PER_MIN" "KUBERNETES_SERVICE_HOST" "KUBERNETES_SERVICE_PORT" -}}
{{- $from := include "agents.only" (dict "names" $shared "from" (include "agents.controllersSettings" . | fromJson)) | fromJson -}}
{{- $name := include "agents.workloadName" (dict "root" . "component" "webhook") -}}
{{- $own := dict
  "AGENTS_WEBHOOK_RUNG" (include "agents.rung" .)
  "AGENTS_WEBHOOK_CONFIGURATION_NAME" $name
  "AGENTS_TLS_SERVER_NAMES" (printf "%s.%s.svc" $name (include "agents.namespace" .))
  "AGENTS_POLICY_JOB_DELETE" .Values.controller.admissionPolicy.jobDelete
-}}
{{- with .Values.controller.admissionPolicy.statusModes -}}{{- $_ := set $own "AGENTS_POLICY_STATUS_MODES" (include "agents.modes" .) -}}{{- end -}}
{{- if eq .Values.webhook.tls.source "rotator" -}}
{{- $_ := set $own "AGENTS_WEBHOOK_ROTATOR_SECRET" (printf "%s-rotator" $name) -}}
{{- $_ := set $own "AGENTS_WEBHOOK_ROTATOR_LIFETIME" .Values.webhook.rotator.lifetime -}}
{{- $_ := set $own "AGENTS_WEBHOOK_ROTATOR_AUTHORITY_LIFETIME" .Values.webhook.rotator.authorityLifetime -}}
{{- $_ := set $own "AGENTS_WEBHOOK_ROTATOR_SETTLE" .Values.webhook.rotator.settle -}}
{{- end -}}
{{- with .Values.webhook.restoreUsers -}}{{- $_ := set $own "AGENTS_WEBHOOK_RESTORE_USERS" (toJson .) -}}{{- end -}}
{{- include "agents.overlay" (list (include "agents.commonSettings" . | fromJson) $from $own .Values.webhook.env.vars) -}}
{{- end -}}

{{/* What is different for the canary of the webhook. It looks at the registration of the first version: its own is only a slice. */}}
{{- define "agents.canarySettings" -}}
{{- $name := include "agents.workloadName" (dict "root" . "component" "webhook-canary") -}}
{{- $own := dict "AGENTS_TLS_SERVER_NAMES" (printf "%s.%s.svc" $name (include "agents.namespace" .)) -}}
{{- if eq .Values.webhook.tls.source "rotator" -}}
{{- $_ := set $own "AGENTS_WEBHOOK_ROTATOR_SECRET" (printf "%s-rotator" $name) -}}
{{- $_ := set $own "AGENTS_WEBHOOK_ROTATOR_CONFIGURATION_NAME" $name -}}
{{- end -}}
{{- include "agents.overlay" (list $own .Values.webhook.canary.env.vars) -}}
{{- end -}}

{{/* The rung as the programs call it. */}}
{{- define "agents.rung" -}}
{{- eq .Values.webhook.rung "deny-ignore" | ternary "deny" .Values.webhook.rung -}}
{{- end -}}

{{/* The env list of a container: settings as JSON map, and whether what operators add for all comes with it. No name is given twice:
     what stands later in the order of docs/values.md takes the place of what stands before. */}}
{{- define "agents.env" -}}
{{- $entries := dict -}}
{{- range $name, $value := .settings -}}{{- $_ := set $entries $name (dict "value" $value) -}}{{- end -}}
{{- range $name, $field := dict "JANGAR_POD_NAMESPACE" "metadata.namespace" "JANGAR_POD_UID" "metadata.uid" -}}
{{- if and $.pod (not (hasKey $entries $name)) -}}{{- $_ := set $entries $name (dict "valueFrom" (dict "fieldRef" (dict "fieldPath" $field))) -}}{{- end -}}
{{- end -}}
{{- if .added -}}
{{- $v := .root.Values -}}
{{- $database := $v.database -}}
{{- if not (hasKey $entries "DATABASE_URL") -}}
{{- if $database.createSecret.enabled -}}
{{- $_ := set $entries "DATABASE_URL" (dict "valueFrom" (dict "secretKeyRef" (dict "name" (include "agents.databaseSecretName" .root) "key" "url"))) -}}
{{- else if $database.url -}}
{{- $_ := set $entries "DATABASE_URL" (dict "value" $database.url) -}}
{{- else if $database.secretRef.name -}}
{{- $_ := set $entries "DATABASE_URL" (dict "valueFrom" (dict "secretKeyRef" (dict "name" $database.secretRef.name "key" $database.secretRef.key))) -}}
{{- end -}}
{{- end -}}
{{- if and $database.caSecret.name (not (hasKey $entries "PGSSLROOTCERT")) -}}{{- $_ := set $entries "PGSSLROOTCERT" (dict "value" (printf "/etc/agents/database/%s" $database.caSecret.key)) -}}{{- end -}}
{{- range $v.env.secrets -}}{{- $_ := set $entries .name (dict "valueFrom" (dict "secretKeyRef" (dict "name" .secretName "key" (.key | default "value")))) -}}{{- end -}}
{{- range $v.env.config -}}{{- $_ := set $entries .name (dict "valueFrom" (dict "configMapKeyRef" (dict "name" .configMapName "key" (.key | default .name)))) -}}{{- end -}}
{{- range $v.env.extra -}}{{- $_ := set $entries .name (hasKey . "valueFrom" | ternary (dict "valueFrom" .valueFrom) (dict "value" (include "agents.text" .value))) -}}{{- end -}}
{{- end -}}
{{- $list := list -}}
{{- range $name := keys $entries | sortAlpha -}}{{- $list = append $list (merge (dict "name" $name) (get $entries $name)) -}}{{- end -}}
{{- $list | toYaml -}}
{{- end -}}

{{/* Whole Secrets and ConfigMaps as variables. */}}
{{- define "agents.envFrom" -}}
{{- $list := list -}}
{{- range .Values.envFromSecretRefs -}}{{- $list = append $list (dict "secretRef" (kindIs "string" . | ternary (dict "name" .) .)) -}}{{- end -}}
{{- range .Values.envFromConfigMapRefs -}}{{- $list = append $list (dict "configMapRef" (kindIs "string" . | ternary (dict "name" .) .)) -}}{{- end -}}
{{- with $list -}}{{ toYaml . }}{{- end -}}
{{- end -}}

{{- define "agents.databaseSecretName" -}}
{{- .Values.database.createSecret.name | default (printf "%s-database" (include "agents.fullname" .)) -}}
{{- end -}}
