// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"testing"

	"github.com/drover-agents/drover/event"
)

// A result that comes before its call does not take the end of the call.
func TestLedger_AnEndAloneLeavesTheResultToItsCall(t *testing.T) {
	l := NewLedger(&LedgerOptions{Host: &countingHost{}})
	l.Result(context.Background(), "a", false) // forged
	l.AddReportedEnd("a")
	call := toolCall("a", `{"n":1}`)
	ask(t, l, 0, call, allows)
	asked := l.Last("a")
	l.Result(context.Background(), "a", true) // the CLI refused it
	if !asked.over {
		t.Error("the call has its result, and is not over")
	}
}

// The same for the end that a hook reports, with another input than it was asked about.
func TestLedger_AnEndAloneLeavesTheHookToItsCall(t *testing.T) {
	l := NewLedger(&LedgerOptions{Host: &countingHost{}})
	l.AddReportedEnd("a")
	call := toolCall("a", `{"n":1}`)
	ask(t, l, 0, call, allows)
	asked := l.Last("a")
	l.End(context.Background(), event.ToolCall{ID: "a", Name: call.Name, Input: []byte(`{"n":2}`)}, true)
	if !asked.over {
		t.Error("the call has ended, and is not over")
	}
}

// What the host reports of a call that is still under way is in the stream at once, however many calls followed.
func TestMerged_ALongCallIsStillKnown(t *testing.T) {
	m := newMerged(t.Context())
	put := func(id string) {
		m.put(event.New(event.ToolCall{ID: event.CallID(id), Name: "Task"}))
		m.take(nil)
	}
	put("long")
	for i := range rememberedCalls {
		put(fmt.Sprint(i))
	}
	m.emit(event.New(event.ToolProgress{ID: "long"}))
	if got := m.take(nil).events; len(got) != 1 {
		t.Errorf("%d events, want the progress of the call", len(got))
	}
}
