{{/* What all pods of the chart share: root, component, and the pull secrets of the component. */}}
{{- define "agents.podBasics" -}}
{{- $v := .root.Values -}}
serviceAccountName: {{ include "agents.serviceAccountName" . }}
{{- include "agents.pullSecrets" (dict "own" .pullSecrets "shared" $v.image.pullSecrets) }}
{{- with $v.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: {{ $v.terminationGracePeriodSeconds }}
{{- with $v.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $v.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $v.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- with $v.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "agents.selector" . | nindent 8 }}
{{- end }}
{{- end -}}

{{/* Metadata of a pod template. */}}
{{- define "agents.podMetadata" -}}
labels:
  {{- include "agents.selector" . | nindent 2 }}
  app.kubernetes.io/component: {{ .component }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Security context of a container. */}}
{{- define "agents.containerSecurity" -}}
{{- with .Values.containerSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Probes of a program at its admin port. Names of probes of earlier charts lead to the paths that the programs have. */}}
{{- define "agents.probes" -}}
{{- $paths := dict "/health" "/livez" "/livez" "/livez" "/ready" "/readyz" "/readyz" "/readyz" -}}
{{- $port := .port -}}
{{- range $probe := list "livenessProbe" "readinessProbe" }}
{{- with get $.root.Values $probe }}
{{- if .enabled }}
{{ $probe }}:
  httpGet:
    path: {{ get $paths .path }}
    port: {{ $port }}
  initialDelaySeconds: {{ .initialDelaySeconds }}
  periodSeconds: {{ .periodSeconds }}
  timeoutSeconds: {{ .timeoutSeconds }}
  failureThreshold: {{ .failureThreshold }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Mounts and volumes of the control plane and the reconcilers: root, and whether the container reads the labels of its pod. */}}
{{- define "agents.mounts" -}}
{{- $list := list -}}
{{- if .root.Values.database.caSecret.name -}}{{- $list = append $list (dict "name" "database-ca" "mountPath" "/etc/agents/database" "readOnly" true) -}}{{- end -}}
{{- $list = concat $list .root.Values.extraVolumeMounts -}}
{{- if .labels -}}{{- $list = append $list (dict "name" "pod" "mountPath" "/etc/agents/pod" "readOnly" true) -}}{{- end -}}
{{- with $list }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "agents.volumes" -}}
{{- $list := list -}}
{{- with .root.Values.database.caSecret -}}
{{- if .name -}}{{- $list = append $list (dict "name" "database-ca" "secret" (dict "secretName" .name "items" (list (dict "key" .key "path" .key)))) -}}{{- end -}}
{{- end -}}
{{- range .root.Values.extraVolumes -}}{{- $list = append $list (merge (dict "name" .name) .volume) -}}{{- end -}}
{{- if .labels -}}{{- $list = append $list (dict "name" "pod" "downwardAPI" (dict "items" (list (dict "path" "labels" "fieldRef" (dict "fieldPath" "metadata.labels"))))) -}}{{- end -}}
{{- with $list }}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A component as a Deployment, as a Rollout, or as both while it is switched from one to the other.
     root, component, pod (the rendered pod template), replicas, autoscaled. */}}
{{- define "agents.workload" -}}
{{- $carrier := include "agents.carrier" . -}}
{{- $metadata := include "agents.metadata" (merge (dict "name" (include "agents.workloadName" .)) .) -}}
{{- if ne $carrier "rollout" }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- $metadata | nindent 2 }}
spec:
  {{- include "agents.workloadCommon" . | trim | nindent 2 }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    {{- .pod | nindent 4 }}
{{- end }}
{{- if ne $carrier "deployment" }}
{{- $delivery := .root.Values.progressiveDelivery }}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  {{- $metadata | nindent 2 }}
spec:
  {{- include "agents.workloadCommon" . | trim | nindent 2 }}
  progressDeadlineAbort: true
  strategy:
    canary:
      maxSurge: {{ $delivery.maxSurge }}
      maxUnavailable: {{ $delivery.maxUnavailable }}
      # Put on the pods in place, so that each knows which it is: of the controllers, a canary asks for the lease.
      canaryMetadata:
        labels:
          agents.proompteng.ai/rollout: canary
      stableMetadata:
        labels:
          agents.proompteng.ai/rollout: stable
      steps:
        {{- include "agents.canarySteps" . | nindent 8 }}
  template:
    {{- .pod | nindent 4 }}
{{- end }}
{{- end -}}

{{/* The steps of a canary. The analysis of the controllers stands behind the first one, at which the new version takes the lease. */}}
{{- define "agents.canarySteps" -}}
{{- $steps := .root.Values.progressiveDelivery.canarySteps -}}
{{- if and .root.Values.progressiveDelivery.analysis.enabled (eq .component "controllers") -}}
{{- $revision := dict "name" "revision" "valueFrom" (dict "podTemplateHashValue" "Latest") -}}
{{- $analysis := dict "templates" (list (dict "templateName" (include "agents.workloadName" .))) "args" (list $revision) -}}
{{- $steps = concat (list (first $steps) (dict "analysis" $analysis)) (rest $steps) -}}
{{- end -}}
{{- toYaml $steps -}}
{{- end -}}

{{- define "agents.workloadCommon" -}}
{{- if not .autoscaled }}
replicas: {{ .replicas }}
{{- end }}
revisionHistoryLimit: 3
progressDeadlineSeconds: 600
selector:
  matchLabels:
    {{- include "agents.selector" . | nindent 4 }}
{{- end -}}
