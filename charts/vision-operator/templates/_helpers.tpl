{{- define "vision-operator.labels" -}}
app.kubernetes.io/name: vision-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The labels by which a component's pods are selected: (list . "operator"). */}}
{{- define "vision-operator.selector" -}}
app.kubernetes.io/name: vision-operator
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- /* A reference to an image, by digest where there is one: (list . .Values.image "image"). */}}
{{- define "vision-operator.image" -}}
{{- $root := index . 0 }}{{ $image := index . 1 }}
{{- $repository := required (printf "%s.repository is required" (index . 2)) $image.repository }}
{{- if $image.digest -}}
{{ printf "%s@%s" $repository $image.digest }}
{{- else -}}
{{ printf "%s:%s" $repository (default $root.Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{- /* One subject of a binding, as a list: (list . "vision-operator"). */}}
{{- define "vision-operator.subject" -}}
- kind: ServiceAccount
  name: {{ index . 1 }}
  namespace: {{ (index . 0).Release.Namespace }}
{{- end }}

{{- /* The namespaces to which the operator is limited, its own included, as YAML; an empty list for all. */}}
{{- define "vision-operator.namespaces" -}}
{{- if .Values.watchNamespaces -}}
{{- concat (list .Release.Namespace) .Values.watchNamespaces | uniq | toYaml -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- /* The user that writes what runtimes obey. */}}
{{- define "vision-operator.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:vision-operator
{{- end }}

{{- /* What every pod of the chart has: (list . "operator" .Values.operator). */}}
{{- define "vision-operator.podSettings" -}}
{{- $root := index . 0 }}{{ $component := index . 2 }}
securityContext:
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
terminationGracePeriodSeconds: 30
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "vision-operator.selector" (list $root (index . 1)) | nindent 8 }}
{{- with default $root.Values.priorityClassName $component.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with default $root.Values.nodeSelector $component.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $root.Values.tolerations $component.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default $root.Values.affinity $component.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "vision-operator.podLabels" -}}
{{ include "vision-operator.selector" . }}
{{- if ne (index . 1) "ocr" }}
app.kubernetes.io/part-of: control-plane
{{- end }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What no container of the chart may do. */}}
{{- define "vision-operator.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* A PodDisruptionBudget: (list . "operator" "vision-operator" .Values.operator). */}}
{{- define "vision-operator.disruptionBudget" -}}
{{- $root := index . 0 }}
{{- if (index . 3).podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ index . 2 }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "vision-operator.labels" $root | nindent 4 }}
spec:
  maxUnavailable: {{ (index . 3).podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels: {{- include "vision-operator.selector" (list $root (index . 1)) | nindent 6 }}
{{- end }}
{{- end }}

{{- /* Arguments that both components of the operator take. */}}
{{- define "vision-operator.arguments" -}}
- --operator-namespace=$(POD_NAMESPACE)
- --metrics-listen=:8443
{{- if .Values.metrics.insecure }}
- --metrics-insecure
{{- end }}
- --health-listen=:8081
- --runtime-image={{ include "vision-operator.image" (list . .Values.runtime.image "runtime.image") }}
{{- with .Values.watchNamespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}
{{- if ne .Values.secretAccess.mode "Cluster" }}
- --secret-access={{ lower .Values.secretAccess.mode }}
{{- end }}
- --log-level={{ .Values.logLevel }}
{{- with .Values.runtime.image.pullPolicy }}
- --runtime-image-pull-policy={{ . }}
{{- end }}
{{- range .Values.runtime.pullSecrets }}
- --runtime-image-pull-secret={{ . }}
{{- end }}
{{- with .Values.runtime.httpProxy }}
- --runtime-http-proxy={{ . }}
{{- end }}
{{- with .Values.runtime.httpsProxy }}
- --runtime-https-proxy={{ . }}
{{- end }}
{{- with .Values.runtime.noProxy }}
- --runtime-no-proxy={{ . }}
{{- end }}
{{- with .Values.runtime.caConfigMap }}
- --runtime-ca-configmap={{ . }}
{{- end }}
{{- range $name, $value := .Values.runtime.requests }}
- --runtime-requests={{ $name }}={{ $value }}
{{- end }}
{{- range $name, $value := .Values.runtime.limits }}
- --runtime-limits={{ $name }}={{ $value }}
{{- end }}
{{- end }}

{{- /* The Secret with a certificate of somebody else's making; empty for the operator's own. */}}
{{- define "vision-operator.certificateSecret" -}}
{{- ternary "vision-operator-webhook-certificate" .Values.webhook.secret .Values.certManager.enabled -}}
{{- end }}

{{- /* With cert-manager, its CA injector fills the caBundle in. */}}
{{- define "vision-operator.injectCA" -}}
{{- with ternary (printf "%s/vision-operator-webhook" .Release.Namespace) .Values.webhook.injectCAFrom .Values.certManager.enabled }}
  annotations: {cert-manager.io/inject-ca-from: {{ . | quote }}}
{{- end }}
{{- end }}
