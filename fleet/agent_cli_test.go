// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// The real CLI calls a tool, and its worker is cut off before the model goes on. The next worker starts the CLI
// again, the model repeats the call under another id, and reads its recorded result: the tool runs once.
func TestWorker_RealCLIRunsAFinishedCallOnce(t *testing.T) {
	cli := claudetest.CLI(t)
	// The kit of the CLI looks for goroutines left behind. So the server is one of this test, and the name of this file makes
	// the test the first one, before the shared servers run.
	dir := t.TempDir()
	open := func() *fleet.Fleet {
		f, err := fleet.Open(t.Context(), &fleet.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	var paid atomic.Int64
	pay := tool.Must("pay", "Pays.", func(context.Context, tool.None) (string, error) {
		paid.Add(1)
		return "receipt 7", nil
	})
	finished, cut := make(chan struct{}), make(chan struct{})
	reached := sync.OnceFunc(func() { close(finished) })
	model := claudetest.NewModel(t, script.Func(func(r *script.Request) script.Turn {
		switch {
		case r.SawText("Recorded: this call was executed before"):
			return script.Structured(question{"It was done before."})
		case r.SawText("receipt 7"):
			reached()
			select {
			case <-cut:
			case <-time.After(20 * time.Second):
			}
			return script.Structured(question{"too late"})
		}
		return script.Reply(script.ToolCall{ID: "toolu_" + ident.NewUUID()[:8], Name: "mcp__drover__pay", Input: script.Input{}})
	}).Always())
	a := fleet.Handle("asks", fleet.Handler[question, question]{
		Adapter: claudecode.New(cli.Options(model)),
		Prepare: func(_ context.Context, q question, _ *session.Session) (*prompt.Prompt[question], *drover.Options, error) {
			p, err := prompt.NewPrompt[question]("fleet", "pay", prompt.Markdown("task", "Task", q.Text).With(pay))
			return p, nil, err
		},
	})
	dying := open()
	stop := work(t, fleet.Worker{Fleet: dying, Agents: []fleet.Agent{a}, Lease: time.Second})
	r := submit(t, dying, "Do it.", "")
	<-finished
	for record, err := range r.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(record.Data), `"tool:invoked"`) {
			break
		}
	}
	_ = dying.Close()
	close(cut)
	stop()
	f := open()
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Lease: time.Second})
	r, err := f.Run(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	result := wait(t, r)
	if string(result.Output) != `{"text":"It was done before."}` || result.Attempts != 2 {
		t.Errorf("the run ended with %+v and the answer %s", result, result.Output)
	}
	if paid.Load() != 1 {
		t.Errorf("the tool ran %d times, want once", paid.Load())
	}
}
