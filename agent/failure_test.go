// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

func TestEndOf_ReadsTheMetadata(t *testing.T) {
	for name, x := range map[string]struct {
		metadata string
		want     agent.End
	}{
		"all":       {`{"apiDurationMs":1.5,"stopReason":"end_turn","stderr":"hm"}`, agent.End{APIDurationMS: 1.5, StopReason: "end_turn", Stderr: "hm"}},
		"nothing":   {"", agent.End{}},
		"malformed": {`[`, agent.End{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := event.New(event.Done{})
			if x.metadata != "" {
				e.Metadata = map[string]json.RawMessage{agent.EndDetails: json.RawMessage(x.metadata)}
			}
			if diff := cmp.Diff(x.want, agent.EndOf(e)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
