{{/* Names. Every suffix that is put behind a fullname has room: see the check in _validate.tpl. */}}

{{- define "agents.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 51 | trimSuffix "-" -}}
{{- end -}}

{{- define "agents.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 43 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 43 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "agents.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* Name of a Deployment, by component: control-plane, controllers or webhook. */}}
{{- define "agents.workloadName" -}}
{{- $full := include "agents.fullname" .root -}}
{{- if eq .component "control-plane" -}}{{ $full }}{{- else -}}{{ $full }}-{{ .component }}{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a component. They can never change on a live release. */}}
{{- define "agents.selector" -}}
{{- $name := include "agents.name" .root -}}
app.kubernetes.io/name: {{ if eq .component "control-plane" }}{{ $name }}{{ else }}{{ $name }}-{{ .component }}{{ end }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{- define "agents.commonLabels" -}}
app.kubernetes.io/part-of: {{ include "agents.name" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of an object that belongs to a component. */}}
{{- define "agents.labels" -}}
{{ include "agents.selector" . }}
app.kubernetes.io/component: {{ .component }}
{{ include "agents.commonLabels" .root }}
{{- end -}}

{{/* Labels of an object of the release as a whole. */}}
{{- define "agents.releaseLabels" -}}
app.kubernetes.io/name: {{ include "agents.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{ include "agents.commonLabels" . }}
{{- end -}}

{{/* Metadata of an object of a component: root, component, name, and more labels and annotations. */}}
{{- define "agents.metadata" -}}
name: {{ .name }}
namespace: {{ .namespace | default (include "agents.namespace" .root) }}
labels:
  {{- include "agents.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Service accounts. */}}
{{- define "agents.serviceAccountName" -}}
{{- if eq .component "controllers" -}}
{{- $account := .root.Values.serviceAccount -}}
{{- if $account.name -}}{{ $account.name }}
{{- else if $account.create -}}{{ include "agents.fullname" .root }}-sa
{{- else -}}default
{{- end -}}
{{- else -}}
{{- $values := hasPrefix "webhook" .component | ternary .root.Values.webhook .root.Values.controlPlane -}}
{{- $account := $values.serviceAccount -}}
{{- if $account.name -}}{{ $account.name }}
{{- else if $account.create -}}{{ include "agents.fullname" .root }}-{{ trimSuffix "-canary" .component }}
{{- else -}}default
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "agents.runnerServiceAccountName" -}}
{{- $account := .Values.runnerServiceAccount -}}
{{- if $account.name -}}{{ $account.name }}
{{- else if $account.create -}}{{ include "agents.fullname" . }}-runner
{{- end -}}
{{- end -}}

{{/* Image of a component: its own word for each field, else the shared one. A digest belongs to the repository and tag that it
     stands beside, so one that chooses its own of either does not get the shared digest. */}}
{{- define "agents.image" -}}
{{- $own := .own -}}{{- $shared := .shared | default dict -}}
{{- $repository := $own.repository | default $shared.repository -}}
{{- $tag := $own.tag | default $shared.tag | default .root.Chart.AppVersion -}}
{{- $digest := $own.digest -}}
{{- if not (or $own.repository $own.tag $own.digest) -}}{{- $digest = $shared.digest -}}{{- end -}}
{{- with ((.root.Values.global).imageRegistry) -}}{{- $repository = printf "%s/%s" (trimSuffix "/" .) $repository -}}{{- end -}}
{{- printf "%s:%s" $repository $tag -}}{{- with $digest -}}@{{ . }}{{- end -}}
{{- end -}}

{{/* Pull secrets as a list of names. */}}
{{- define "agents.pullSecrets" -}}
{{- $names := .own | default .shared -}}
{{- with $names }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A whole number or a text as text: YAML numbers are floating, and 2592000 would be printed as 2.592e+06. */}}
{{- define "agents.text" -}}
{{- if kindIs "float64" . -}}
{{- if eq (float64 (int64 .)) . -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- else -}}{{ . }}{{- end -}}
{{- end -}}

{{/* Namespaces of a group of kinds, as JSON list: its own, else those of the agents, else the release's. */}}
{{- define "agents.namespacesOf" -}}
{{- .own | default .root.Values.controller.namespaces | default (list (include "agents.namespace" .root)) | toJson -}}
{{- end -}}

{{/* All namespaces in which something is reconciled, with the groups that are in each, as JSON map. */}}
{{- define "agents.territory" -}}
{{- $root := . -}}{{- $found := dict -}}
{{- range $group, $values := dict "agents" .Values.controller "orchestrations" .Values.orchestrationController "supporting" .Values.supportingController -}}
{{- if $values.enabled -}}
{{- range include "agents.namespacesOf" (dict "root" $root "own" $values.namespaces) | fromJsonArray -}}
{{- $_ := set $found . (append (get $found . | default list) $group) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Optional kinds. "yes", "no" or "missing" (asked for, and the cluster does not have it).
     mode: auto, require, always, never. api: such as monitoring.coreos.com/v1/ServiceMonitor.
     needed: nothing works without it, so offline, where nobody knows the cluster, auto renders it. */}}
{{- define "agents.render" -}}
{{- $known := .root.Capabilities.APIVersions.Has .api -}}
{{- if eq .mode "never" -}}no
{{- else if or $known (eq .mode "always") -}}yes
{{- else if eq .mode "require" -}}missing
{{- else if .needed -}}{{ include "agents.online" .root | empty | ternary "yes" "missing" }}
{{- else -}}no
{{- end -}}
{{- end -}}

{{/* Not empty where Helm talks to a cluster. The first is there in every namespace and may be read by whoever may install there; the second
     is asked for only where the namespace is not there yet, by someone who may make it. */}}
{{- define "agents.online" -}}
{{- if or (lookup "v1" "ServiceAccount" (include "agents.namespace" .) "default") (lookup "v1" "Service" "default" "kubernetes") -}}online{{- end -}}
{{- end -}}

{{/* The mode of the ServiceMonitor: `enabled` of earlier charts is a word for two of the modes. */}}
{{- define "agents.serviceMonitorMode" -}}
{{- $monitor := .Values.metrics.serviceMonitor -}}
{{- if kindIs "bool" $monitor.enabled -}}{{ $monitor.enabled | ternary "always" "never" }}{{- else -}}{{ $monitor.renderMode }}{{- end -}}
{{- end -}}

{{/* Which optional kind is rendered, as JSON map of kind to yes, no or missing. Values that switch the matter off count as no. */}}
{{- define "agents.optional" -}}
{{- $v := .Values -}}
{{- $found := dict -}}
{{- $kinds := list
  (dict "kind" "ServiceMonitor" "api" "monitoring.coreos.com/v1/ServiceMonitor" "mode" (include "agents.serviceMonitorMode" .) "on" (and $v.metrics.enabled $v.metrics.service.enabled))
  (dict "kind" "PodMonitor" "api" "monitoring.coreos.com/v1/PodMonitor" "mode" $v.metrics.podMonitor.renderMode "on" $v.metrics.enabled)
  (dict "kind" "PrometheusRule" "api" "monitoring.coreos.com/v1/PrometheusRule" "mode" $v.metrics.rules.renderMode "on" $v.metrics.enabled)
  (dict "kind" "GrafanaDashboard" "api" "grafana.integreatly.org/v1beta1/GrafanaDashboard" "mode" $v.metrics.dashboards.grafanaOperator.renderMode "on" $v.metrics.enabled)
  (dict "kind" "Certificate" "api" "cert-manager.io/v1/Certificate" "mode" $v.webhook.certManager.renderMode "needed" true "on" (and $v.webhook.enabled (eq $v.webhook.tls.source "cert-manager")))
  (dict "kind" "Rollout" "api" "argoproj.io/v1alpha1/Rollout" "mode" $v.progressiveDelivery.renderMode "needed" true "on" (include "agents.anyRollout" . | eq "yes"))
  (dict "kind" "AnalysisRun" "api" "argoproj.io/v1alpha1/AnalysisRun" "mode" $v.progressiveDelivery.renderMode "needed" true "on" (and $v.progressiveDelivery.analysis.enabled $v.webhook.enabled $v.webhook.canary.enabled))
-}}
{{- range $kinds -}}
{{- $_ := set $found .kind (.on | ternary (include "agents.render" (merge (dict "root" $) .)) "no") -}}
{{- end -}}
{{- $found | toJson -}}
{{- end -}}

{{/* Which kinds carry a component: deployment, both or rollout. */}}
{{- define "agents.carrier" -}}
{{- $delivery := .root.Values.progressiveDelivery -}}
{{- $own := dict "controllers" $delivery.controllers.enabled "control-plane" $delivery.controlPlane.enabled -}}
{{- $mine := get $own .component -}}
{{- $enabled := kindIs "bool" $mine | ternary $mine $delivery.enabled -}}
{{- if and $enabled (hasKey $own .component) (ne $delivery.renderMode "never") -}}{{ $delivery.mode }}{{- else -}}deployment{{- end -}}
{{- end -}}

{{- define "agents.anyRollout" -}}
{{- $found := "no" -}}
{{- range list "controllers" "control-plane" -}}
{{- if and (ne (include "agents.carrier" (dict "root" $ "component" .)) "deployment") (or (eq . "controllers") $.Values.controlPlane.enabled) -}}{{- $found = "yes" -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}
