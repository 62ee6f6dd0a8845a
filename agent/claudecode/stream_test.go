// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
)

// A recording is the events of a run.
type recording []event.Event

// record reads a stream to its end. A run that is refused fails the test.
func record(t testing.TB, stream iter.Seq2[event.Event, error]) recording {
	t.Helper()
	var all recording
	for e, err := range stream {
		if err != nil {
			t.Fatalf("the run was refused: %v", err)
		}
		all = append(all, e)
	}
	return all
}

// inTime ends runs that hang, so that the test fails before its package does. A busy machine needs ten times the time of
// a quiet one.
func inTime(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newRunner makes a runner of base.
func newRunner(t testing.TB, base *claude.Options, opts *agent.RunnerOptions) *agent.Runner {
	t.Helper()
	r, err := agent.NewRunner(newAdapter(t, base), opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs one request with a runner of its own.
func run(t testing.TB, base *claude.Options, req agent.Request) recording {
	t.Helper()
	return record(t, newRunner(t, base, nil).Run(inTime(t), req))
}

// kinds are the kinds of the events in order.
func (r recording) kinds() []event.Kind {
	var kinds []event.Kind
	for _, e := range r {
		if part, _, _ := strings.Cut(string(e.Kind), ":"); part == "isolation" || part == "gateway" {
			continue // see cell_test.go
		}
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// of returns the payloads of one type.
func of[P event.Payload](r recording) []P {
	var all []P
	for _, e := range r {
		if p, ok := e.Payload.(P); ok {
			all = append(all, p)
		}
	}
	return all
}

func (r recording) done(t testing.TB) event.Done {
	t.Helper()
	all := of[event.Done](r)
	if len(all) != 1 {
		t.Fatalf("%d done events in %v", len(all), r.kinds())
	}
	return all[0]
}

func (r recording) init(t testing.TB) event.Init {
	t.Helper()
	all := of[event.Init](r)
	if len(all) != 1 {
		t.Fatalf("%d init events in %v", len(all), r.kinds())
	}
	return all[0]
}

// mode is the permission mode that the CLI reports.
func (r recording) mode(t testing.TB) string {
	t.Helper()
	var mode string
	_ = json.Unmarshal(r.init(t).Capabilities["permissionMode"], &mode)
	return mode
}

// result is how the call of a tool ended.
func (r recording) result(name string) event.ToolStatus {
	for _, result := range of[event.ToolResult](r) {
		if result.Name == name {
			return result.Status
		}
	}
	return ""
}

// asked reports whether the run has a question about a tool.
func (r recording) asked(name string) bool {
	return slices.ContainsFunc(of[event.PermissionRequest](r), func(p event.PermissionRequest) bool { return p.Name == name })
}

// check checks what holds for every stream of a Runner: the numbers, the names, the ends, and that
// every event about a call is between its tool_use and its tool_result.
func (r recording) check(t testing.TB) {
	t.Helper()
	r.done(t)
	if len(of[event.Init](r)) > 1 || len(of[event.Init](r)) == 1 && r[0].Kind != event.KindInit || r[len(r)-1].Kind != event.KindDone {
		t.Errorf("the stream is not init, ..., done: %v", r.kinds())
	}
	open, over := map[string]event.ToolCall{}, map[string]bool{}
	for i, e := range r {
		if e.Seq != int64(i+1) || e.RunID != r[0].RunID || e.RunID == "" || e.Agent != claudecode.Agent || e.Time.IsZero() {
			t.Errorf("event %d has the number %d, run %q (the first: %q), agent %q and time %v", i+1, e.Seq, e.RunID, r[0].RunID, e.Agent, e.Time)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Errorf("event %d has no JSON: %v", i+1, err)
		}
		id := e.CallID()
		call, known := open[string(id)]
		switch p := e.Payload.(type) {
		case event.ToolCall:
			if known {
				t.Errorf("the call %s begins twice", id)
			}
			open[string(id)] = p
		case event.ToolResult:
			if !known || over[string(id)] || call.Name != p.Name {
				t.Errorf("the result of %s %q does not join a call (known: %t, over: %t, name: %q)", p.Name, id, known, over[string(id)], call.Name)
			}
			over[string(id)] = true
		default:
			if id != "" && (!known || over[string(id)]) {
				t.Errorf("%s of %s is outside of its call", e.Kind, id)
			}
		}
	}
	if err := r.done(t).Usage.Validate(); err != nil {
		t.Error(err)
	}
}

func write(cli *claudetest.RealCLI, name string) script.ToolCall {
	return script.ToolCall{Name: "Write", Input: script.Input{"file_path": filepath.Join(cli.Work, name), "content": "one\n"}}
}

func bash(command string) script.ToolCall {
	return script.ToolCall{Name: "Bash", Input: script.Input{"command": command, "description": "Run it"}}
}

func fetch() script.ToolCall {
	return script.ToolCall{Name: "WebFetch", Input: script.Input{"url": "https://127.0.0.1:1/", "prompt": "What is there?"}}
}
