module agents.proompteng.ai/tests/tools/pause

go 1.25.0
