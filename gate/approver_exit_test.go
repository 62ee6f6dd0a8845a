// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// No caller waits for an answer that cannot come any more.
func TestApprover_EndOfItsGoroutineDeniesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		e := gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
			runtime.Goexit()
			return gate.Answer{}, nil
		})})
		d := e.Decide(t.Context(), event.ToolCall{ID: "1", Name: "Bash"})
		if d.Verdict != event.Deny || !strings.Contains(d.Reason, "ended its goroutine") || time.Since(begun) != 0 {
			t.Errorf("got %s, %q after %s; want a denial at once", d.Verdict, d.Reason, time.Since(begun))
		}
	})
}
