// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"fmt"
	"strings"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
)

func ExampleReadTranscript() {
	file := strings.NewReader(`{"entry_type":"user_message","sequence_number":1,"source":"main","timestamp":"2026-01-01T00:00:00Z","detail":"Review it."}
{"entry_type":"tool_use","sequence_number":1,"source":"subagent:a1","timestamp":"2026-01-01T00:00:01Z","detail":{"name":"Bash"}}
`)
	for entry, err := range drover.ReadTranscript(file) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		if entry.Type == agent.TranscriptToolUse {
			fmt.Println(entry.Source, entry.Sequence, string(entry.Detail))
		}
	}
	// Output:
	// subagent:a1 1 {"name":"Bash"}
}
