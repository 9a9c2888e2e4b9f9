const pages = [
{{- range site.RegularPages }}
{url: {{ strings.TrimPrefix "/" .RelPermalink | jsonify }}, text: {{ .RawContent | jsonify }}},
{{- end }}
];
