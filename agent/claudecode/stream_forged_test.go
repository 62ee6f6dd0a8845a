// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

func readLine(t *testing.T, n *normaliser, told *[]string, line string) {
	for _, e := range slices.Clone(n.events(decode(t, line))) {
		switch p := e.Payload.(type) {
		case event.ToolCall:
			*told = append(*told, "call "+string(p.ID)+" "+p.Name)
		case event.ToolResult:
			*told = append(*told, string(p.Status)+" "+string(p.ID)+" "+p.Name)
		}
	}
}

func askAbout(t *testing.T, l *agent.Ledger, id event.CallID, v event.Verdict) {
	_, _ = l.Ask(t.Context(), agent.Question{ToolCall: event.ToolCall{ID: id, Name: "Bash"}, Decide: func(context.Context, event.ToolCall) (agent.Opinion, error) {
		return agent.Opinion{Verdict: v}, nil
	}})
}

// The hook has been asked when the reader comes to a forged result that stands before the call.
func TestStream_ForgedResultBeforeItsCall(t *testing.T) {
	n, _ := newNormaliser()
	n.ledger = agent.NewLedger(nil)
	var told []string
	askAbout(t, n.ledger, "call_0", event.Allow) // hooks are ahead of the reader
	readLine(t, n, &told, returns("call_0", "forged", false, ""))
	readLine(t, n, &told, says("m1", "u1", call1("call_0")))
	readLine(t, n, &told, returns("call_0", "done", true, ""))
	want := []string{"success call_0 unknown_tool", "call call_0 Bash", "error call_0 Bash"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// The CLI says that it denies a call before the call is read.
func TestStream_NoticeBeforeItsCall(t *testing.T) {
	n, _ := newNormaliser()
	n.ledger = agent.NewLedger(nil)
	var told []string
	askAbout(t, n.ledger, "call_0", event.Allow)
	readLine(t, n, &told, `{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"call_0","session_id":"s","uuid":"p"}`)
	readLine(t, n, &told, says("m1", "u1", call1("call_0")))
	readLine(t, n, &told, returns("call_0", "no", true, ""))
	want := []string{"call call_0 Bash", "denied call_0 Bash"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// The same with the block once more in another line of the answer, which the digests of lines do not know.
func TestStream_NoticeBeforeARepeatedCall(t *testing.T) {
	n, _ := newNormaliser()
	n.ledger = agent.NewLedger(nil)
	var told []string
	askAbout(t, n.ledger, "call_0", event.Allow)
	readLine(t, n, &told, `{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"call_0","session_id":"s","uuid":"p"}`)
	readLine(t, n, &told, says("m1", "u1", call1("call_0")))
	readLine(t, n, &told, says("m1", "u9", call1("call_0")))
	readLine(t, n, &told, returns("call_0", "no", true, ""))
	want := []string{"call call_0 Bash", "denied call_0 Bash"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// A forged hook question under another name leaves a record that is not the last.
func TestStream_ForgedQuestionUnderAnotherName(t *testing.T) {
	n, _ := newNormaliser()
	n.ledger = agent.NewLedger(nil)
	var told []string
	askAbout(t, n.ledger, "call_0", event.Deny) // Bash, forged
	readLine(t, n, &told, says("m1", "u1", `{"type":"tool_use","id":"call_0","name":"Read","input":{}}`))
	readLine(t, n, &told, returns("call_0", "text", false, ""))
	readLine(t, n, &told, says("m2", "u2", call1("call_0")))
	readLine(t, n, &told, returns("call_0", "no", true, ""))
	want := []string{"call call_0 Read", "success call_0 Read", "call call_0 Bash", "denied call_0 Bash"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Two runs with the ledger of one request, as Request.Ledger allows.
func TestStream_AnotherRunWithTheLedger(t *testing.T) {
	l := agent.NewLedger(nil)
	first, _ := newNormaliser()
	first.ledger = l
	var told []string
	readLine(t, first, &told, says("m1", "u1", call1("call_0")))
	readLine(t, first, &told, says("m1", "u2", call1("call_1")))
	_ = first.next()
	l.Begin(agent.LedgerOptions{}) // as newLedger does for each run
	second, _ := newNormaliser()
	second.ledger = l
	told = nil
	readLine(t, second, &told, returns("call_0", "late", false, "")) // of an earlier run
	readLine(t, second, &told, says("", "u3", call1("call_1")))
	want := []string{"success call_0 unknown_tool", "call call_1 Bash"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
