{{/* What the controllers and their sidecar may do, by the groups of kinds that they work on: agents, orchestrations, supporting.
     src/controller/start/needs.rs and sidecar/src/jobs/needs.rs say the same; a test compares. */}}
{{- define "agents.controllersRules" -}}
{{- $agents := has "agents" .groups -}}{{- $orchestrations := has "orchestrations" .groups -}}{{- $supporting := has "supporting" .groups -}}
{{- $jobs := or $agents $supporting -}}
# Runs are followed by whoever makes or carries out work.
- apiGroups: [agents.proompteng.ai]
  resources: [agentruns]
  verbs: [get, list, watch]
{{- if $agents }}
# Agents and what they refer to are followed.
- apiGroups: [agents.proompteng.ai]
  resources: [agents, agentproviders, implementationspecs, implementationsources, memories]
  verbs: [get, list, watch]
# How they stand is written into their status.
- apiGroups: [agents.proompteng.ai]
  resources: [agents/status, agentruns/status, agentproviders/status, implementationspecs/status, implementationsources/status, memories/status]
  verbs: [patch]
{{- if .vcs }}
# Hosts of repositories are followed.
- apiGroups: [agents.proompteng.ai]
  resources: [versioncontrolproviders]
  verbs: [get, list, watch]
# How they stand is written into their status.
- apiGroups: [agents.proompteng.ai]
  resources: [versioncontrolproviders/status]
  verbs: [patch]
{{- end }}
# Runs are held while they work, and removed when their time is over.
- apiGroups: [agents.proompteng.ai]
  resources: [agentruns]
  verbs: [patch, delete]
# Issues of trackers become ImplementationSpecs.
- apiGroups: [agents.proompteng.ai]
  resources: [implementationspecs]
  verbs: [create, patch]
{{- end }}
{{- if or $orchestrations $supporting }}
# Steps and schedules make runs.
- apiGroups: [agents.proompteng.ai]
  resources: [agentruns]
  verbs: [create, patch]
# Steps and schedules make runs of orchestrations, and follow them.
- apiGroups: [orchestration.proompteng.ai]
  resources: [orchestrationruns]
  verbs: [get, list, watch, create, patch]
# Calls of tools are followed and held.
- apiGroups: [tools.proompteng.ai]
  resources: [toolruns]
  verbs: [get, list, watch, patch]
# Steps wait for approvals.
- apiGroups: [approvals.proompteng.ai]
  resources: [approvalpolicies]
  verbs: [get, list, watch]
# Steps wait for signals.
- apiGroups: [signals.proompteng.ai]
  resources: [signaldeliveries]
  verbs: [get, list, watch]
{{- end }}
{{- if $orchestrations }}
# Orchestrations are followed.
- apiGroups: [orchestration.proompteng.ai]
  resources: [orchestrations]
  verbs: [get, list, watch]
# How they and their runs stand is written into their status.
- apiGroups: [orchestration.proompteng.ai]
  resources: [orchestrations/status, orchestrationruns/status]
  verbs: [patch]
# Steps make calls of tools.
- apiGroups: [tools.proompteng.ai]
  resources: [toolruns]
  verbs: [create]
{{- end }}
{{- if or $agents $supporting }}
# Runs are held to budgets.
- apiGroups: [budgets.proompteng.ai]
  resources: [budgets]
  verbs: [get, list, watch]
# Runs are held to the secrets that are bound to their agent.
- apiGroups: [security.proompteng.ai]
  resources: [secretbindings]
  verbs: [get, list, watch]
{{- end }}
{{- if $supporting }}
# Tools are followed.
- apiGroups: [tools.proompteng.ai]
  resources: [tools]
  verbs: [get, list, watch]
# Signals are followed.
- apiGroups: [signals.proompteng.ai]
  resources: [signals]
  verbs: [get, list, watch]
# Schedules are followed.
- apiGroups: [schedules.proompteng.ai]
  resources: [schedules]
  verbs: [get, list, watch]
# Artifacts are followed.
- apiGroups: [artifacts.proompteng.ai]
  resources: [artifacts]
  verbs: [get, list, watch]
# Workspaces are followed.
- apiGroups: [workspaces.proompteng.ai]
  resources: [workspaces]
  verbs: [get, list, watch]
# How each of the supporting kinds stands is written into its status.
- apiGroups: [tools.proompteng.ai, approvals.proompteng.ai, budgets.proompteng.ai, security.proompteng.ai, signals.proompteng.ai, schedules.proompteng.ai, artifacts.proompteng.ai, workspaces.proompteng.ai]
  resources: [tools/status, toolruns/status, approvalpolicies/status, budgets/status, secretbindings/status, signals/status, signaldeliveries/status, schedules/status, artifacts/status, workspaces/status]
  verbs: [patch]
# Each workspace has a claim.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch, delete]
{{- else if $agents }}
# Whether the claim of a run is there is looked up.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
{{- end }}
{{- if $jobs }}
# Jobs do the work of runs; they are held until their outcome is stored.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
# Pods of Jobs are held until their exit is read.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch, delete]
# Jobs read their work from ConfigMaps, which nobody changes.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create]
{{- if $agents }}
# What trackers delivered waits in ConfigMaps until it is taken over.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch, delete]
{{- end }}
# Whether Secrets of runs are there is looked up; those of sources and hosts are used.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
# Whether a namespace is being deleted is looked up, since nothing may be held in it then.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- if and .sidecar (not (or $orchestrations $supporting)) }}
# The sidecar reads the run of a Job when something seems wrong with it.
- apiGroups: [tools.proompteng.ai]
  resources: [toolruns]
  verbs: [get]
{{- end }}
{{- end }}
# What happens is told as Events; the core group is for clusters without the other.
- apiGroups: [events.k8s.io, ""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* What the webhook may do in the namespaces that it looks things up in. */}}
{{- define "agents.webhookRules" -}}
# Decisions look up what an object refers to, from copies that follow these kinds of the core.
- apiGroups: [agents.proompteng.ai]
  resources: [agents, agentproviders, implementationspecs, versioncontrolproviders, memories]
  verbs: [list, watch]
# Schedules and steps refer to orchestrations.
- apiGroups: [orchestration.proompteng.ai]
  resources: [orchestrations]
  verbs: [list, watch]
# Calls and steps refer to tools.
- apiGroups: [tools.proompteng.ai]
  resources: [tools]
  verbs: [list, watch]
# Steps refer to approval policies.
- apiGroups: [approvals.proompteng.ai]
  resources: [approvalpolicies]
  verbs: [list, watch]
# Which secrets an agent may use is looked up.
- apiGroups: [security.proompteng.ai]
  resources: [secretbindings]
  verbs: [list, watch]
# Deliveries and steps refer to signals.
- apiGroups: [signals.proompteng.ai]
  resources: [signals]
  verbs: [list, watch]
# Who deleted a Job too early is noted on its AgentRun.
- apiGroups: [agents.proompteng.ai]
  resources: [agentruns]
  verbs: [patch]
# Who deleted a Job too early is noted on its ToolRun.
- apiGroups: [tools.proompteng.ai]
  resources: [toolruns]
  verbs: [patch]
# Refusals are told as Events; the core group is for clusters without the other.
- apiGroups: [events.k8s.io, ""]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* What the control plane may do in the namespaces that it serves; what callers may do is asked for each of them.
     src/serve/needs.rs says the same; a test compares. */}}
{{- define "agents.controlPlaneRules" -}}
# Agents, their runs and what they refer to are shown, and changes of them are told.
- apiGroups: [agents.proompteng.ai]
  resources: [agents, agentruns, agentproviders, implementationspecs, implementationsources, versioncontrolproviders, memories]
  verbs: [get, list, watch]
# All other kinds are shown as well.
- apiGroups: [orchestration.proompteng.ai, tools.proompteng.ai, approvals.proompteng.ai, budgets.proompteng.ai, security.proompteng.ai, signals.proompteng.ai, schedules.proompteng.ai, artifacts.proompteng.ai, workspaces.proompteng.ai]
  resources: [orchestrations, orchestrationruns, tools, toolruns, approvalpolicies, budgets, secretbindings, signals, signaldeliveries, schedules, artifacts, workspaces]
  verbs: [get, list, watch]
# Runs are submitted and cancelled.
- apiGroups: [agents.proompteng.ai]
  resources: [agentruns]
  verbs: [create, patch]
# Approvals are given.
- apiGroups: [approvals.proompteng.ai]
  resources: [approvalpolicies/status]
  verbs: [patch]
# Signals are made and delivered.
- apiGroups: [signals.proompteng.ai]
  resources: [signals, signaldeliveries]
  verbs: [create]
{{- if .Values.controller.webhook.enabled }}
# Calls of trackers are checked with the Secrets of their sources.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
# What trackers deliver waits in ConfigMaps for the controllers.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, create]
{{- end }}
# Events of an object are shown.
- apiGroups: [""]
  resources: [events]
  verbs: [list]
# The pods of a run are found, to read their logs.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
# Logs of runs are shown.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end -}}

{{/* What it may do where the controllers are. */}}
{{- define "agents.followedLeaseRules" -}}
# Who leads the controllers is followed.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch]
{{- end -}}

{{/* What the control plane may do in the namespace of the controllers' pods. */}}
{{- define "agents.followedPodsRules" -}}
# How the queue stands is read from whoever leads, by way of the API server.
- apiGroups: [""]
  resources: [pods/proxy]
  verbs: [get]
{{- end -}}

{{/* A role and its binding: root, component, name, namespace (none for the whole cluster), rules, account. */}}
{{- define "agents.role" -}}
{{- $kind := empty .namespace | ternary "ClusterRole" "Role" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "agents.labels" . | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "agents.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "agents.serviceAccountName" . }}
    namespace: {{ include "agents.namespace" .root }}
{{- end -}}

{{- define "agents.leaseRules" -}}
# Only the holder of the lease works; the others watch it.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update]
{{- end -}}

{{- define "agents.apiServerRules" -}}
# No object may have the machines of the API server called; every cluster lists them there.
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  resourceNames: [kubernetes]
  verbs: [get]
{{- end -}}

{{- define "agents.rotatorRules" -}}
# The webhook keeps the certificates that it makes itself in this Secret and no other; a version on trial has one of its own.
- apiGroups: [""]
  resources: [secrets]
  resourceNames:
    {{- range include "agents.webhookNames" . | fromJsonArray }}
    - {{ . }}-rotator
    {{- end }}
  verbs: [get, update]
{{- end -}}

{{- define "agents.trustRules" -}}
# The webhook writes who signs its certificate into the caBundle of its own two configurations; a version on trial into its two.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames:
    {{- range include "agents.webhookNames" . | fromJsonArray }}
    - {{ . }}
    {{- end }}
  verbs: [get, patch]
{{- end -}}

{{- define "agents.configurationRules" -}}
# The webhook judges whether it is registered as its rung says, and whether that could lock the cluster.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames: [{{ include "agents.workloadName" (dict "root" . "component" "webhook") }}]
  verbs: [get]
{{- end -}}
