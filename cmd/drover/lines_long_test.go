// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/drover-agents/drover/event"
)

// A call that takes long is shown with its subject and why it was denied, however many calls were made meanwhile.
func TestLines_ALongCallIsShown(t *testing.T) {
	l := newLines(displayOptions{})
	begin := func(id string) {
		p := event.ToolCall{ID: event.CallID(id), Name: "Bash", Input: []byte(`{"command":"make all"}`)}
		l.begin(event.New(p), p)
	}
	end := func(id string) []row {
		p := event.ToolResult{ID: event.CallID(id), Name: "Bash", Status: event.ToolSuccess}
		return l.end(event.New(p), p)
	}
	begin("long")
	for i := range shownCalls {
		begin(fmt.Sprint(i))
		end(fmt.Sprint(i))
	}
	rows := end("long")
	if len(rows) == 0 || rows[len(rows)-1].subject == "" {
		t.Errorf("the row of the call is %+v, want its command", rows)
	}
}
