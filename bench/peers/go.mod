module github.com/drover-agents/drover/bench/peers

go 1.26.0

require (
	github.com/drover-agents/drover v0.0.0
	github.com/roasbeef/claude-agent-sdk-go v1.1.0
	github.com/severity1/claude-agent-sdk-go v0.6.22
)

require gopkg.in/yaml.v3 v3.0.1 // indirect

replace github.com/drover-agents/drover => ../..
