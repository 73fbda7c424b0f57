{{- define "vision-operator.labels" -}}
app.kubernetes.io/name: vision-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "vision-operator.selector" -}}
app.kubernetes.io/name: vision-operator
app.kubernetes.io/component: operator
{{- end }}

{{- define "vision-operator.ocrSelector" -}}
app.kubernetes.io/name: vision-operator
app.kubernetes.io/component: ocr
{{- end }}

{{- define "vision-operator.subject" -}}
- kind: ServiceAccount
  name: vision-operator
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* The namespaces to which the operator is limited, its own included, as YAML; an empty list for all. */}}
{{- define "vision-operator.namespaces" -}}
{{- if .Values.watchNamespaces -}}
{{- concat (list .Release.Namespace) .Values.watchNamespaces | uniq | toYaml -}}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "vision-operator.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:vision-operator
{{- end }}
