module agents.proompteng.ai/tests/tools/monitoring

go 1.26.1

// Nothing is compiled: the definitions of the kinds are files of these modules.
require (
	github.com/grafana/grafana-operator/v5 v5.18.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
