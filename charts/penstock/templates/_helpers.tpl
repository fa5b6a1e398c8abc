{{- /* metadata of an object: (dict "root" $ "name" … "component" … "cluster" true "labels" (dict) "annotations" (dict)) */ -}}
{{- define "penstock.metadata" -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ .namespace | default .root.Release.Namespace }}
{{- end }}
labels:
  {{- include "penstock.labels" . | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "penstock.labels" -}}
{{- $own := dict "app.kubernetes.io/name" "penstock-operator" "app.kubernetes.io/component" .component "app.kubernetes.io/part-of" "penstock" "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- toYaml (merge (dict) $own (.labels | default dict) .root.Values.commonLabels) -}}
{{- end -}}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock-operator
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* (dict "root" $ "image" .Values.image) */ -}}
{{- define "penstock.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "penstock.agentNamespaces" -}}
{{- .Values.agentNamespaces | default (list .Release.Namespace) | sortAlpha | uniq | join "," -}}
{{- end -}}

{{- /* Reports all values at once that do not work with Roles only. */ -}}
{{- define "penstock.checkScope" -}}
{{- if eq .Values.rbac.scope "Namespaced" -}}
{{- $problems := list -}}
{{- if not .Values.watch.namespaces -}}
{{- $problems = append $problems "watch.namespaces must list the namespaces to watch" -}}
{{- end -}}
{{- if gt (len .Values.watch.namespaces) 40 -}}
{{- $problems = append $problems (printf "watch.namespaces may have at most 40 names; found %d" (len .Values.watch.namespaces)) -}}
{{- end -}}
{{- if .Values.webhook.enabled -}}
{{- $problems = append $problems "webhook.enabled must be false: webhooks are cluster-scoped. Problems of resources are reported in their status instead, and there are no sidecars" -}}
{{- end -}}
{{- if .Values.openshift.enabled -}}
{{- $problems = append $problems "openshift.enabled must be false: a SecurityContextConstraints is cluster-scoped" -}}
{{- end -}}
{{- if .Values.podSecurity.labelNamespace -}}
{{- $problems = append $problems "podSecurity.labelNamespace must be false: a Namespace is cluster-scoped" -}}
{{- end -}}
{{- if .Values.authorizeClusterPipelines -}}
{{- $problems = append $problems "authorizeClusterPipelines must be false: ClusterPipelines are disabled" -}}
{{- end -}}
{{- range $name := list "clusterSinks" "clusterPipelines" "tenantPolicies" -}}
{{- if index $.Values $name -}}
{{- $problems = append $problems (printf "%s must be empty: Cluster kinds are disabled" $name) -}}
{{- end -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "rbac.scope is Namespaced, which uses no ClusterRoles:\n  - %s" (join "\n  - " $problems)) -}}
{{- end -}}
{{- else if and .Values.authorizeClusterPipelines (not .Values.webhook.enabled) -}}
{{- fail "authorizeClusterPipelines needs webhook.enabled: only webhooks know the author of a ClusterPipeline" -}}
{{- end -}}
{{- end -}}

{{- define "penstock.subjects" -}}
- kind: ServiceAccount
  name: penstock-operator
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{- /* pod fields that the operator and the webhooks have in common: (dict "root" $ "component" …) */ -}}
{{- define "penstock.pod" -}}
serviceAccountName: {{ .account | default "penstock-operator" }}
terminationGracePeriodSeconds: 30
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
nodeSelector:
  {{- toYaml (merge (dict "kubernetes.io/os" "linux") .root.Values.nodeSelector) | nindent 2 }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
{{- with .root.Values.topologySpreadConstraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "penstock.selector" . | nindent 8 }}
{{- end }}
{{- if and .root.Values.webhook.enabled (has .component (list "operator" "webhook")) }}
{{- with .root.Values.webhook.clientCertificate.secret }}
volumes:
  - name: webhook-clients
    secret: { secretName: {{ . }}, items: [{ key: ca.crt, path: ca.crt }] }
{{- end }}
{{- end }}
{{- end -}}

{{- define "penstock.container" -}}
image: {{ include "penstock.image" (dict "root" .root "image" .root.Values.image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
env:
  - { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
  - { name: POD_NAMESPACE, valueFrom: { fieldRef: { fieldPath: metadata.namespace } } }
  - { name: POD_IP, valueFrom: { fieldRef: { fieldPath: status.podIP } } }
{{- if and .root.Values.webhook.enabled .root.Values.webhook.certManager.enabled }}
  - { name: PENSTOCK_CERTIFICATES, value: external }
{{- end }}
livenessProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
readinessProbe: { httpGet: { path: /readyz, port: http }, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 2 }
startupProbe: { httpGet: { path: /healthz, port: http }, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 60 }
resources:
  {{- toYaml .root.Values.resources | nindent 2 }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
{{- if and .root.Values.webhook.enabled .root.Values.webhook.clientCertificate.secret }}
volumeMounts:
  - { name: webhook-clients, mountPath: /etc/penstock/webhook-clients, readOnly: true }
{{- end }}
{{- end -}}

{{- define "penstock.webhookArguments" -}}
- --webhook-address=0.0.0.0:9444
{{- if .Values.webhook.clientCertificate.secret }}
- --webhook-client-ca=/etc/penstock/webhook-clients/ca.crt
{{- with .Values.webhook.clientCertificate.names }}
- --webhook-client-names={{ join "," . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "penstock.watchArguments" -}}
- --agent-namespaces={{ include "penstock.agentNamespaces" . }}
{{- with .Values.watch.namespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- if eq .Values.rbac.scope "Namespaced" }}
- --rbac-scope=Namespaced
{{- end }}
{{- with .Values.watch.selector }}
- --watch-namespace-selector={{ . }}
{{- end }}
{{- if ne .Values.secrets.mode "All" }}
- --secrets-mode={{ .Values.secrets.mode }}
{{- end }}
{{- with .Values.clusterName }}
- --cluster-name={{ . }}
{{- end }}
{{- if .Values.authorizeClusterPipelines }}
- --authorize-cluster-pipelines
{{- end }}
{{- if ne .Values.logLevel "info" }}
- --log-level={{ .Values.logLevel }}
{{- end }}
{{- end -}}
