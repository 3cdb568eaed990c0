{{/* Everything that is wrong with the values, as a list of sentences: path, what is wrong, what would be right. */}}
{{- define "agents.errors" -}}
{{- $schema := .Files.Get "files/values.schema.json" | fromJson -}}
{{- $defaults := .Files.Get "files/defaults.json" | fromJson -}}
{{- $values := deepCopy .Values -}}
{{- $misfits := include "agents.misfits" (dict "schema" $schema "values" $values "defaults" $defaults "path" "") | fromJsonArray -}}
{{- $fitting := dict "Values" $values "Files" .Files "Release" .Release "Chart" .Chart "Capabilities" .Capabilities "Template" .Template -}}
{{- concat $misfits (include "agents.conflicts" $fitting | fromJsonArray) | toJson -}}
{{- end -}}

{{/* What several values mean together. Each of them is one that files/values.schema.json allows. */}}
{{- define "agents.conflicts" -}}
{{- $v := .Values -}}{{- $errors := list -}}

{{- range .Files.Get "files/refused.yaml" | fromYamlArray -}}
{{- $at := $v -}}{{- $there := true -}}
{{- range splitList "." .path -}}
{{- if and $there (kindIs "map" $at) (hasKey $at .) -}}{{- $at = get $at . -}}{{- else -}}{{- $there = false -}}{{- end -}}
{{- end -}}
{{- if and $there (not (kindIs "invalid" $at)) (not (has $at .fine)) -}}
{{- $errors = append $errors (printf "%s: `%v` has no meaning here; %s" .path $at .instead) -}}
{{- end -}}
{{- end -}}

{{- $errors = concat $errors (include "agents.scopeErrors" . | fromJsonArray) -}}
{{- $errors = concat $errors (include "agents.deliveryErrors" . | fromJsonArray) -}}
{{- $errors = concat $errors (include "agents.webhookGateErrors" . | fromJsonArray) -}}

{{- with $v.fullnameOverride -}}
{{- if gt (len .) 43 -}}{{- $errors = append $errors "fullnameOverride: it has more than 43 characters, so that names such as <fullname>-control-plane-metrics do not fit into 63; shorten it" -}}{{- end -}}
{{- end -}}

{{- $c := $v.controller -}}
{{- if not (or (kindIs "invalid" $c.jobTtlSeconds) (kindIs "invalid" $c.jobTtlSecondsAfterFinished)) -}}
{{- if ne (include "agents.text" $c.jobTtlSeconds) (include "agents.text" $c.jobTtlSecondsAfterFinished) -}}
{{- $errors = append $errors (printf "controller.jobTtlSeconds: it is %s while controller.jobTtlSecondsAfterFinished is %s, and both mean the same; set only one of them" (include "agents.text" $c.jobTtlSeconds) (include "agents.text" $c.jobTtlSecondsAfterFinished)) -}}
{{- end -}}
{{- end -}}
{{- with $c.leaderElection -}}
{{- if and (not .enabled) (or (gt (int $v.controllers.replicaCount) 1) $v.controllers.autoscaling.enabled) -}}
{{- $errors = append $errors "controller.leaderElection.enabled: without it two pods would do the same work; set it to true, or controllers.replicaCount to 1 and controllers.autoscaling.enabled to false" -}}
{{- end -}}
{{- if not (and (gt (int .leaseDurationSeconds) (int .renewDeadlineSeconds)) (gt (int .renewDeadlineSeconds) (int .retryPeriodSeconds))) -}}
{{- $errors = append $errors "controller.leaderElection: leaseDurationSeconds must be more than renewDeadlineSeconds, and that more than retryPeriodSeconds; the defaults are 30, 20 and 5" -}}
{{- end -}}
{{- end -}}
{{- if not (or $c.enabled $v.orchestrationController.enabled $v.supportingController.enabled) -}}
{{- $errors = append $errors "controller.enabled: nothing is left to do; set one of controller.enabled, orchestrationController.enabled and supportingController.enabled to true" -}}
{{- end -}}
{{- if and $v.runner.image.repository $v.runtime.agentRunnerImage -}}
{{- $errors = append $errors "runtime.agentRunnerImage: runner.image.repository is set as well, and both mean the image of runs that name none; set only one of them" -}}
{{- end -}}
{{- range $path, $budget := dict "podDisruptionBudget" $v.podDisruptionBudget "controllers.podDisruptionBudget" $v.controllers.podDisruptionBudget "webhook.podDisruptionBudget" $v.webhook.podDisruptionBudget -}}
{{- if and $budget.enabled (include "agents.isSet" $budget.minAvailable) (include "agents.isSet" $budget.maxUnavailable) -}}
{{- $errors = append $errors (printf "%s: the API takes minAvailable or maxUnavailable, not both; set one of them to null" $path) -}}
{{- end -}}
{{- end -}}
{{- range $path, $auto := dict "autoscaling" $v.autoscaling "controllers.autoscaling" $v.controllers.autoscaling -}}
{{- if and $auto.enabled (gt (int $auto.minReplicas) (int $auto.maxReplicas)) -}}
{{- $errors = append $errors (printf "%s.minReplicas: it is more than maxReplicas; raise maxReplicas or lower minReplicas" $path) -}}
{{- end -}}
{{- end -}}
{{- with $v.database -}}
{{- if and .createSecret.enabled (not .url) -}}{{- $errors = append $errors "database.createSecret.enabled: the Secret is made of database.url, which is empty; set it, or name a Secret in database.secretRef.name" -}}{{- end -}}
{{- if and .url .secretRef.name -}}{{- $errors = append $errors "database.secretRef.name: database.url is set as well; set only one of them" -}}{{- end -}}
{{- end -}}
{{- if and $v.runnerServiceAccount.rbac.create (not (include "agents.runnerServiceAccountName" .)) -}}
{{- $errors = append $errors "runnerServiceAccount.rbac.create: there is no account to give rights to; set runnerServiceAccount.create to true or name one in runnerServiceAccount.name" -}}
{{- end -}}
{{- with $v.webhook -}}
{{- if .enabled -}}
{{- if and (eq .tls.source "secret") (not (contains "-----BEGIN CERTIFICATE-----" .tls.caBundle)) -}}
{{- $errors = append $errors "webhook.tls.caBundle: the API server trusts nobody without it; set it to the certificate in PEM of who issued the one in the Secret, e.g. with --set-file webhook.tls.caBundle=ca.crt" -}}
{{- end -}}
{{- if and (eq .tls.source "secret") (not .tls.secretName) -}}
{{- $errors = append $errors "webhook.tls.secretName: name the Secret that has tls.crt and tls.key" -}}
{{- end -}}
{{- if and (eq .tls.source "rotator") .tls.secretName -}}
{{- $errors = append $errors "webhook.tls.secretName: the webhook keeps its own certificates in a Secret of its own; leave it empty, or set webhook.tls.source to secret" -}}
{{- end -}}
{{- if and (eq .tls.source "cert-manager") (eq .certManager.renderMode "never") (not .tls.secretName) -}}
{{- $errors = append $errors "webhook.certManager.renderMode: with `never` nobody makes the certificate; name the Secret of your own Certificate in webhook.tls.secretName, or choose another mode" -}}
{{- end -}}
{{- if and .canary.enabled (has .rung (list "fail-labelled" "fail")) (lt (int .canary.replicaCount) 2) -}}
{{- $errors = append $errors (printf "webhook.canary.replicaCount: on the rung %s nothing of its slice is stored while the only pod restarts; set it to 2 or more" .rung) -}}
{{- end -}}
{{- if and (has .rung (list "fail-labelled" "fail")) (lt (int .replicaCount) 2) -}}
{{- $errors = append $errors (printf "webhook.replicaCount: on the rung %s nothing is stored while the only pod restarts; set it to 2 or more" .rung) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $monitor := $v.metrics.serviceMonitor -}}
{{- $optional := include "agents.optional" . | fromJson -}}
{{- if and (eq $optional.ServiceMonitor "yes") (eq $optional.PodMonitor "yes") -}}
{{- $errors = append $errors "metrics.podMonitor.renderMode: with the ServiceMonitor every page would be scraped twice; set one of the two to never" -}}
{{- end -}}
{{- if and (kindIs "bool" $monitor.enabled) $monitor.enabled (not (and $v.metrics.enabled $v.metrics.service.enabled)) -}}
{{- $errors = append $errors "metrics.serviceMonitor.enabled: it needs the Services that metrics.enabled and metrics.service.enabled switch off; set both to true, or use metrics.podMonitor" -}}
{{- end -}}
{{- $ways := dict
  "ServiceMonitor" "metrics.serviceMonitor.renderMode: the cluster has no ServiceMonitor of monitoring.coreos.com/v1; install Prometheus Operator first, or set it to auto"
  "PodMonitor" "metrics.podMonitor.renderMode: the cluster has no PodMonitor of monitoring.coreos.com/v1; install Prometheus Operator first, or set it to auto"
  "PrometheusRule" "metrics.rules.renderMode: the cluster has no PrometheusRule of monitoring.coreos.com/v1; install Prometheus Operator first, or set it to auto"
  "GrafanaDashboard" "metrics.dashboards.grafanaOperator.renderMode: the cluster has no GrafanaDashboard of grafana.integreatly.org/v1beta1; install Grafana Operator first, or set it to auto"
  "Certificate" "webhook.certManager.renderMode: the cluster has no Certificate of cert-manager.io/v1; install cert-manager first, or let the webhook make its certificate with webhook.tls.source=rotator (see certs/README.md)"
  "AnalysisRun" "progressiveDelivery.renderMode: the cluster has no AnalysisRun of argoproj.io/v1alpha1; install Argo Rollouts first, or set progressiveDelivery.analysis.enabled to false"
  "Rollout" "progressiveDelivery.renderMode: the cluster has no Rollout of argoproj.io/v1alpha1; install Argo Rollouts first, or set progressiveDelivery.enabled to false"
-}}
{{- range $kind, $sentence := $ways -}}
{{- if eq (get $optional $kind) "missing" -}}{{- $errors = append $errors $sentence -}}{{- end -}}
{{- end -}}
{{- $errors | toJson -}}
{{- end -}}

{{/* Not empty for a value that says something; 0 says something. */}}
{{- define "agents.isSet" -}}
{{- if not (or (kindIs "invalid" .) (eq (toString .) "")) -}}set{{- end -}}
{{- end -}}

{{/* Which namespaces, and with which rights. */}}
{{- define "agents.scopeErrors" -}}
{{- $errors := list -}}{{- $scoped := .Values.rbac.clusterScoped -}}
{{- range $path, $list := dict "controller.namespaces" .Values.controller.namespaces "orchestrationController.namespaces" .Values.orchestrationController.namespaces "supportingController.namespaces" .Values.supportingController.namespaces -}}
{{- if has "*" $list -}}
{{- if gt (len $list) 1 -}}{{- $errors = append $errors (printf "%s: `*` is all namespaces; leave the others out" $path) -}}{{- end -}}
{{- if not $scoped -}}{{- $errors = append $errors (printf "%s: `*` needs rights in the whole cluster; set rbac.clusterScoped to true, or name the namespaces" $path) -}}{{- end -}}
{{- end -}}
{{- if ne (len (uniq $list)) (len $list) -}}{{- $errors = append $errors (printf "%s: a namespace is in it twice; leave one out" $path) -}}{{- end -}}
{{- range $list -}}
{{- if not (or (eq . "*") (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" .)) -}}{{- $errors = append $errors (printf "%s: `%s` is no name of a namespace; use small letters, digits and dashes, 63 at most" $path .) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $errors | toJson -}}
{{- end -}}

{{/* Progressive delivery: what Argo Rollouts would refuse, and what would leave a gap. */}}
{{- define "agents.deliveryErrors" -}}
{{- $errors := list -}}{{- $v := .Values -}}{{- $delivery := $v.progressiveDelivery -}}
{{- $rollout := eq (include "agents.anyRollout" .) "yes" -}}
{{- if and $delivery.analysis.enabled (not $v.metrics.enabled) (or $rollout (and $v.webhook.enabled $v.webhook.canary.enabled)) -}}
{{- $errors = append $errors "progressiveDelivery.analysis.enabled: with metrics.enabled false nobody measures the canary; set that to true, or the analysis to false" -}}
{{- end -}}
{{- if $rollout -}}
{{- if not $delivery.canarySteps -}}
{{- $errors = append $errors "progressiveDelivery.canarySteps: without a step a new version takes everything at once; add one such as {setWeight: 20} and {pause: {}}" -}}
{{- end -}}
{{- range $index, $step := $delivery.canarySteps -}}
{{- $path := printf "progressiveDelivery.canarySteps[%d]" $index -}}
{{- if ne (len $step) 1 -}}{{- $errors = append $errors (printf "%s: a step is one thing, and this is %d; write one entry for each" $path (len $step)) -}}{{- end -}}
{{- range $key, $_ := $step -}}
{{- if has $key (list "setCanaryScale" "setHeaderRoute" "setMirrorRoute") -}}{{- $errors = append $errors (printf "%s: %s needs a traffic router, which the chart does not set up; use setWeight and pause" $path $key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq (toString $delivery.maxSurge) "0") (eq (toString $delivery.maxUnavailable) "0") -}}
{{- $errors = append $errors "progressiveDelivery.maxSurge: with maxUnavailable 0 as well no pod could ever be replaced; set one of them to 1" -}}
{{- end -}}
{{- end -}}
{{- range $component, $auto := dict "controllers" $v.controllers.autoscaling "control-plane" $v.autoscaling -}}
{{- $path := eq $component "controllers" | ternary "controllers.autoscaling" "autoscaling" -}}
{{- $carrier := include "agents.carrier" (dict "root" $ "component" $component) -}}
{{- if and $auto.enabled (eq $carrier "both") -}}
{{- $errors = append $errors (printf "%s.enabled: one autoscaler cannot hold two kinds at the wanted number; set it to false while progressiveDelivery.mode is both" $path) -}}
{{- end -}}
{{- if and $auto.enabled $auto.targetMemoryUtilizationPercentage (ne $carrier "deployment") -}}
{{- $errors = append $errors (printf "%s.targetMemoryUtilizationPercentage: during a canary it drives the stable pods to the maximum; set it to null with progressiveDelivery" $path) -}}
{{- end -}}
{{- if or (eq $component "controllers") $v.controlPlane.enabled -}}
{{- $errors = concat $errors (include "agents.switchErrors" (dict "root" $ "component" $component "carrier" $carrier) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- $errors | toJson -}}
{{- end -}}

{{/* An image that was on trial becomes that of all requests only if its analysis found it good. Where Helm talks to no cluster it finds none. */}}
{{- define "agents.webhookGateErrors" -}}
{{- $errors := list -}}
{{- if and .Values.webhook.enabled (.Capabilities.APIVersions.Has "argoproj.io/v1alpha1/AnalysisRun") -}}
{{- $namespace := include "agents.namespace" . -}}
{{- $image := include "agents.image" (dict "root" . "own" .Values.webhook.image) -}}
{{- $name := include "agents.webhookAnalysisName" (dict "root" . "image" $image) -}}
{{- $run := lookup "argoproj.io/v1alpha1" "AnalysisRun" $namespace $name -}}
{{- $live := lookup "apps/v1" "Deployment" $namespace (include "agents.workloadName" (dict "root" . "component" "webhook")) -}}
{{- if and $run $live (ne $image (index $live.spec.template.spec.containers 0).image) -}}
{{- $phase := dig "status" "phase" "Pending" $run -}}
{{- if ne $phase "Successful" -}}
{{- $errors = append $errors (printf "webhook.image: its canary was not found good: the AnalysisRun %s is %s; see why with `kubectl --namespace %s describe analysisrun %s`, or delete it to go on all the same" $name $phase $namespace $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $errors | toJson -}}
{{- end -}}

{{/* One kind may go only when the other is there and has its pods. Where Helm talks to no cluster it finds neither. */}}
{{- define "agents.switchErrors" -}}
{{- $errors := list -}}
{{- if ne .carrier "both" -}}
{{- $name := include "agents.workloadName" . -}}{{- $namespace := include "agents.namespace" .root -}}
{{- $hasRollouts := .root.Capabilities.APIVersions.Has "argoproj.io/v1alpha1/Rollout" -}}
{{- $deployment := lookup "apps/v1" "Deployment" $namespace $name -}}
{{- $rollout := dict -}}{{- if $hasRollouts -}}{{- $rollout = lookup "argoproj.io/v1alpha1" "Rollout" $namespace $name -}}{{- end -}}
{{- $old := eq .carrier "rollout" | ternary $deployment $rollout -}}
{{- $new := eq .carrier "rollout" | ternary $rollout $deployment -}}
{{- $kinds := eq .carrier "rollout" | ternary (list "Deployment" "Rollout") (list "Rollout" "Deployment") -}}
{{- if $old -}}
{{- $wanted := int (dig "spec" "replicas" 1 $old) -}}
{{- $available := int (dig "status" "availableReplicas" 0 $new) -}}
{{- if or (not $new) (lt $available $wanted) -}}
{{- $errors = append $errors (printf "progressiveDelivery.mode: the %s %s would go while the %s has %d of %d pods; set progressiveDelivery.enabled to true and mode to both, wait until it has them, then go on" (index $kinds 0) $name (index $kinds 1) $available $wanted) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $errors | toJson -}}
{{- end -}}
