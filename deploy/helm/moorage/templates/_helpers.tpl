{{/* The name of all objects. */}}
{{- define "moorage.name" -}}
{{- if contains "moorage" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-moorage{{ end -}}
{{- end }}

{{/* The labels by which a service finds pods. They never change. */}}
{{- define "moorage.selector" -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "moorage.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{ include "moorage.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "moorage.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "moorage.name" .) }}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end -}}
{{- end }}

{{/* The configuration file: the settings of the values, and those that the chart decides. */}}
{{- define "moorage.settings" -}}
{{- $chart := dict "data" "/data" "listen" "0.0.0.0:8181" -}}
{{- if .Values.tls.existingSecret }}
{{- $_ := set $chart "tls-cert" "/etc/moorage-tls/tls.crt" }}{{ $_ := set $chart "tls-key" "/etc/moorage-tls/tls.key" -}}
{{- end }}
{{- if .Values.secretsKey.existingSecret }}{{ $_ := set $chart "secrets-key" "/etc/moorage-key/key" }}{{ end }}
{{- if .Values.metrics.enabled }}{{ $_ := set $chart "debug-listen" (printf "0.0.0.0:%d" (int .Values.metrics.port)) }}{{ end }}
{{- if and (eq .Values.store.kind "postgres") (not (hasKey .Values.settings "audit")) }}{{ $_ := set $chart "audit" "stderr" }}{{ end }}
{{- mergeOverwrite (deepCopy .Values.settings) $chart | toYaml -}}
{{- end }}

{{/* What both kinds of pods have in common. */}}
{{- define "moorage.pod" -}}
{{- $secure := or .Values.tls.existingSecret (index .Values.settings "trusted-proxy") (index .Values.settings "insecure") }}
{{- if not $secure }}
{{- fail "keys would be sent in the clear: set tls.existingSecret, settings.trusted-proxy, or settings.insecure: [plain-http]" }}
{{- end }}
{{- $image := printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- $isPostgres := eq .Values.store.kind "postgres" }}
{{- $scheme := ternary "HTTPS" "HTTP" (ne .Values.tls.existingSecret "") }}
metadata:
  annotations:
    checksum/settings: {{ include "moorage.settings" . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
  labels:
    {{- include "moorage.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "moorage.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add 60 .Values.preStopSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if $isPostgres }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector: {matchLabels: {{ include "moorage.selector" . | fromYaml | toJson }}}
  initContainers:
    - name: migrate
      image: {{ $image }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [migrate]
      env: {{ include "moorage.store" . | nindent 8 }}
      resources: {{ toYaml .Values.resources | nindent 8 }}
      securityContext: {{ include "moorage.security" . | nindent 8 }}
  {{- end }}
  containers:
    - name: moorage
      image: {{ $image }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/moorage/moorage.yaml]
      env:
        - {name: GOMEMLIMIT, value: {{ .Values.memoryLimit | quote }}}
        {{- if $isPostgres }}{{ include "moorage.store" . | nindent 8 }}{{ end }}
        {{- with .Values.environment }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with .Values.environmentSecrets }}
      envFrom:
        {{- range . }}
        - secretRef: {name: {{ . }}}
        {{- end }}
      {{- end }}
      ports:
        - {name: http, containerPort: 8181}
        {{- if .Values.metrics.enabled }}
        - {name: metrics, containerPort: {{ .Values.metrics.port }}}
        {{- end }}
      # A start may wait for the database, and a new version may rebuild what it keeps in memory.
      startupProbe: {httpGet: {path: /healthz, port: http, scheme: {{ $scheme }}}, periodSeconds: 2, failureThreshold: 60}
      readinessProbe: {httpGet: {path: /readyz, port: http, scheme: {{ $scheme }}}, periodSeconds: 5, timeoutSeconds: 4}
      # Never /readyz: a database that is away would restart all pods.
      livenessProbe: {httpGet: {path: /healthz, port: http, scheme: {{ $scheme }}}, periodSeconds: 10, timeoutSeconds: 4, failureThreshold: 6}
      {{- if .Values.preStopSeconds }}
      lifecycle: {preStop: {sleep: {seconds: {{ .Values.preStopSeconds }}}}}
      {{- end }}
      resources: {{ toYaml .Values.resources | nindent 8 }}
      securityContext: {{ include "moorage.security" . | nindent 8 }}
      volumeMounts:
        - {name: data, mountPath: /data}
        - {name: settings, mountPath: /etc/moorage, readOnly: true}
        {{- if .Values.tls.existingSecret }}
        - {name: tls, mountPath: /etc/moorage-tls, readOnly: true}
        {{- end }}
        {{- if .Values.secretsKey.existingSecret }}
        - {name: secrets-key, mountPath: /etc/moorage-key, readOnly: true}
        {{- end }}
  volumes:
    - name: settings
      configMap: {name: {{ include "moorage.name" . }}}
    {{- if $isPostgres }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    {{- with .Values.secretsKey.existingSecret }}
    # The server refuses a key that every user can read.
    - name: secrets-key
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The variable with the address of the database. */}}
{{- define "moorage.store" -}}
- name: MOORAGE_STORE
  valueFrom: {secretKeyRef: {name: {{ .Values.store.existingSecret }}, key: {{ .Values.store.secretKey }}}}
{{- end }}

{{- define "moorage.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
