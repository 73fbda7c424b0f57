{{- /* How crd-ref-docs lays out docs/reference/api.md. */ -}}

{{- define "gvList" -}}
# API Reference
{{ range . }}
{{ template "group" . }}
{{- end }}
{{- end -}}

{{- define "group" -}}
## {{ .GroupVersionString }}

{{ trim .Doc }}

Kinds:
{{ range .SortedKinds }}
- {{ $.TypeForKind . | markdownRenderTypeLink }}
{{- end }}
{{ range .SortedTypes }}
{{- if markdownShouldRenderType . }}
{{ template "type" . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "type" -}}
### {{ .Name }}
{{ if .IsAlias }}
_Underlying type:_ {{ markdownRenderTypeLink .UnderlyingType }}
{{ end }}
{{ trim .Doc }}
{{ with .Validation }}
_Validation:_ {{ template "rules" . }}
{{ end }}
{{- with .SortedReferences }}
_Appears in:_
{{ range . }}
- {{ markdownRenderTypeLink . }}
{{- end }}
{{ end }}
{{- if .Members }}
| Field | Description | Validation |
| --- | --- | --- |
{{- with .GVK }}
| `apiVersion` _string_ | `{{ .Group }}/{{ .Version }}` | |
| `kind` _string_ | `{{ .Kind }}` | |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` _{{ markdownRenderType .Type }}_ | {{ template "description" . }} | {{ template "rules" .Validation }} |
{{- end }}
{{ end }}
{{- with .EnumValues }}
| Value | Description |
| --- | --- |
{{- range . }}
| `{{ .Name }}` | {{ template "cell" .Doc }} |
{{- end }}
{{ end }}
{{- end -}}

{{- define "description" -}}
{{- if eq .Name "metadata" -}}
The standard object metadata of Kubernetes.
{{- else -}}
{{ template "cell" .Doc }}
{{- end -}}
{{- end -}}

{{- /* CEL rules are told by the descriptions: the tool prints their markers as Go structs. */ -}}
{{- define "rules" -}}
{{- $comma := "" -}}
{{- range . -}}
{{- if not (contains "XValidation" .) -}}
{{ $comma }}{{ template "cell" trimSuffix ": {}" . }}
{{- $comma = "<br />" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Braces stay as they are: in code, an escape would show. */ -}}
{{- define "cell" -}}
{{ trim . | markdownRenderFieldDoc | replace "\\{" "{" | replace "\\}" "}" }}
{{- end -}}
