{{/* What is wrong with single values by files/values.schema.json, as a list of sentences: path, what is wrong, what would be right.
     Helm applies values.schema.json before any template and stops there, so that one only knows the names; everything else is said
     here, together with what does not fit together.

     In `values` each value that is wrong is replaced by its default, so that the rest can be looked at. */}}
{{- define "agents.misfits" -}}
{{- $errors := list -}}{{- $all := . -}}
{{- range $key, $value := .values -}}
{{- $path := trimPrefix "." (printf "%s.%s" $all.path $key) -}}
{{- $schema := get $all.schema.properties $key -}}
{{- $default := get $all.defaults $key -}}
{{- if not (hasKey $all.schema.properties $key) -}}
{{- if hasKey $all.schema "additionalProperties" -}}
{{- $errors = append $errors (printf "%s: there is no such value; take it out, or write one of %s" $path (keys $all.schema.properties | sortAlpha | join ", ")) -}}
{{- end -}}
{{- else if and (hasKey $schema "properties") (kindIs "map" $value) -}}
{{- $errors = concat $errors (include "agents.misfits" (dict "schema" $schema "values" $value "defaults" ($default | default dict) "path" $path) | fromJsonArray) -}}
{{- else -}}
{{- $wrong := include "agents.misfit" (dict "schema" $schema "value" $value "path" $path) | fromJsonArray -}}
{{- if $wrong -}}{{- $_ := set $all.values $key $default -}}{{- end -}}
{{- $errors = concat $errors $wrong -}}
{{- end -}}
{{- end -}}
{{- range .schema.required -}}
{{- if not (hasKey $all.values .) -}}{{- $errors = append $errors (printf "%s: `%s` is missing; add it" $all.path .) -}}{{- end -}}
{{- end -}}
{{- $errors | toJson -}}
{{- end -}}

{{/* What is wrong with one value and with what is in it. */}}
{{- define "agents.misfit" -}}
{{- $errors := list -}}{{- $schema := .schema -}}{{- $value := .value -}}{{- $path := .path -}}
{{- $sort := include "agents.sort" (dict "value" $value) -}}
{{- $shown := has $sort (list "array" "object") | ternary "this" (printf "`%s`" (include "agents.text" $value)) -}}
{{- $sorts := $schema.type | default list -}}
{{- if not (kindIs "slice" $sorts) -}}{{- $sorts = list $sorts -}}{{- end -}}
{{- if and $sorts (not (or (has $sort $sorts) (and (eq $sort "integer") (has "number" $sorts)))) -}}
{{- $words := list -}}{{- range $sorts -}}{{- $words = append $words (include "agents.sortWord" .) -}}{{- end -}}
{{- $errors = append $errors (printf "%s: %s is %s; make it %s" $path $shown (include "agents.sortWord" $sort) (join " or " $words)) -}}
{{- else if $schema.enum -}}
{{- if not (has $value $schema.enum) -}}
{{- $errors = append $errors (printf "%s: %s is not known; make it one of %s" $path $shown ($schema.enum | toJson | trimAll "[]" | replace "," ", ")) -}}
{{- end -}}
{{- else if $schema.anyOf -}}
{{- $fits := false -}}
{{- range $schema.anyOf -}}
{{- if not (include "agents.misfit" (dict "schema" . "value" $value "path" $path) | fromJsonArray) -}}{{- $fits = true -}}{{- end -}}
{{- end -}}
{{- if not $fits -}}{{- $errors = append $errors (printf "%s: it is neither text nor a map with `name`; write one of the two" $path) -}}{{- end -}}
{{- else if eq $sort "string" -}}
{{- if and $schema.pattern (not (regexMatch (toString $schema.pattern) $value)) -}}
{{- $errors = append $errors (printf "%s: %s does not have the right form; write what fits %s" $path $shown $schema.pattern) -}}
{{- end -}}
{{- else if has $sort (list "integer" "number") -}}
{{- if and (hasKey $schema "minimum") (lt (float64 $value) (float64 $schema.minimum)) -}}
{{- $errors = append $errors (printf "%s: %s is too little; make it %s or more" $path $shown (include "agents.text" $schema.minimum)) -}}
{{- end -}}
{{- if and (hasKey $schema "maximum") (gt (float64 $value) (float64 $schema.maximum)) -}}
{{- $errors = append $errors (printf "%s: %s is too much; make it %s or less" $path $shown (include "agents.text" $schema.maximum)) -}}
{{- end -}}
{{- else if eq $sort "array" -}}
{{- range $index, $item := $value -}}
{{- if $schema.items -}}
{{- $errors = concat $errors (include "agents.misfit" (dict "schema" $schema.items "value" $item "path" (printf "%s[%d]" $path $index)) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- if lt (len $value) (int $schema.minItems) -}}{{- $errors = append $errors (printf "%s: it is empty; add an entry" $path) -}}{{- end -}}
{{- else if eq $sort "object" -}}
{{- if $schema.properties -}}
{{- $errors = concat $errors (include "agents.misfits" (dict "schema" $schema "values" (deepCopy $value) "defaults" dict "path" $path) | fromJsonArray) -}}
{{- else -}}
{{- range $key, $item := $value -}}
{{- $names := $schema.propertyNames | default dict -}}
{{- if and $names.pattern (not (regexMatch (toString $names.pattern) $key)) -}}
{{- $errors = append $errors (printf "%s: `%s` cannot be a name here; write what fits %s" $path $key $names.pattern) -}}
{{- end -}}
{{- if kindIs "map" $schema.additionalProperties -}}
{{- $errors = concat $errors (include "agents.misfit" (dict "schema" $schema.additionalProperties "value" $item "path" (printf "%s.%s" $path $key)) | fromJsonArray) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if lt (len $value) (int $schema.minProperties) -}}{{- $errors = append $errors (printf "%s: it is empty; add an entry" $path) -}}{{- end -}}
{{- end -}}
{{- $errors | toJson -}}
{{- end -}}

{{/* What a schema calls the sort of a value. Numbers of a file keep their text, those of --set do not. */}}
{{- define "agents.sort" -}}
{{- if kindIs "invalid" .value -}}null
{{- else if kindIs "bool" .value -}}boolean
{{- else if kindIs "map" .value -}}object
{{- else if kindIs "slice" .value -}}array
{{- else if eq (typeOf .value) "string" -}}string
{{- else -}}{{- eq (float64 .value) (floor .value) | ternary "integer" "number" -}}
{{- end -}}
{{- end -}}

{{/* The same in words. */}}
{{- define "agents.sortWord" -}}
{{- get (dict "string" "text" "integer" "a whole number" "number" "a number" "boolean" "true or false" "array" "a list" "object" "a map" "null" "null") . -}}
{{- end -}}
