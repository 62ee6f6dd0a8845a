// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/claude/transcript/storetest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// A memoryJournal keeps lines in memory, in one order.
type memoryJournal struct {
	mu    sync.Mutex
	lines []keptLine
}

type keptLine struct {
	name string
	raw  json.RawMessage
}

func (j *memoryJournal) Append(ctx context.Context, name string, lines []json.RawMessage) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, raw := range lines {
		j.lines = append(j.lines, keptLine{name, slices.Clone(raw)})
	}
	return nil
}

func (j *memoryJournal) Load(ctx context.Context, name string) (lines []json.RawMessage, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if l.name == name {
			lines = append(lines, slices.Clone(l.raw))
		}
	}
	return lines, ctx.Err()
}

func (j *memoryJournal) Names(ctx context.Context) (names []string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		names = append(slices.DeleteFunc(names, func(n string) bool { return n == l.name }), l.name)
	}
	return names, ctx.Err()
}

// cut is the journal as it was when it had so many lines.
func (j *memoryJournal) cut(n int) *memoryJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &memoryJournal{lines: slices.Clone(j.lines[:n])}
}

func TestJournalStore_IsAStore(t *testing.T) {
	storetest.RunStoreSuite(t, func(*testing.T) transcript.Store { return claudecode.JournalStore(&memoryJournal{}) })
}

// The journal of a conversation is cut where its process could have been killed. The conversation goes on from there: the model
// reads what it has done, each call with its result, and then the prompt.
func TestRecover_GoesOnFromTheLastStep(t *testing.T) { bothCLIs(t, goOnFromTheLastStep) }

func goOnFromTheLastStep(t *testing.T, cli *claudetest.RealCLI) {
	pay := func(id string) script.Block {
		return script.ToolCall{ID: "toolu_" + id, Name: "mcp__drover__pay", Input: script.Input{"what": id}}
	}
	model := claudetest.NewScriptedModel(t, script.Script{Strict: true, Turns: []script.Turn{
		script.Text("gone on").When(script.SawText("go on")).Always(),
		script.Text("all done").When(script.SawText("paid c")).Always(),
		script.Reply(script.ThinkingBlock{Thinking: "hm"}, script.TextBlock{Text: "three more"}, pay("a"),
			script.ToolCall{ID: "toolu_b", Name: "Bash", Input: script.Input{"command": "echo paid b"}}, pay("c")).When(script.SawText("paid 1")).Always(),
		script.Reply(script.ThinkingBlock{Thinking: "hm"}, pay("1")).Always(),
	}})
	type what struct {
		What string `json:"what"`
	}
	registry := tool.MustRegistry(nil, tool.Must("pay", "Pays.", func(_ context.Context, in what) (string, error) { return "paid " + in.What, nil }))
	adapter := newAdapter(t, cli.Options(model))
	run := func(j *memoryJournal, prompt, token string) {
		t.Helper()
		for e, err := range adapter.KeptIn(j).Run(t.Context(), agent.Request{Prompt: prompt, Resume: token, Registry: registry}) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := e.Payload.(event.Done); ok && d.Status != event.DoneSuccess {
				t.Fatalf("%s: %+v", prompt, d)
			}
		}
	}
	whole := &memoryJournal{}
	run(whole, "begin", "")
	const first = "begin, thinking, call 1, paid 1, "
	for _, c := range []struct {
		last, want string // the last line has this
		calls      int
	}{
		{`"content":"begin"},"uuid"`, "begin, ", 0},
		{`"id":"toolu_1"`, "begin, thinking, call 1, RECORDED 1, ", 1},
		{`"id":"toolu_c"`, first + "thinking, three more, call a, call b, call c, RECORDED a, RECORDED b, RECORDED c, ", 4},
		{`"text":"paid a"}]}]}`, first + "thinking, three more, call a, call b, call c, paid a, RECORDED b, RECORDED c, ", 4},
	} {
		at := slices.IndexFunc(whole.lines, func(l keptLine) bool { return strings.Contains(string(l.raw), c.last) })
		if at < 0 {
			t.Fatalf("no line has %s", c.last)
		}
		j := whole.cut(at + 1)
		r, err := adapter.Recover(t.Context(), j, func(id event.CallID) event.ToolResult {
			return event.ToolResult{Status: event.ToolSuccess, Output: json.RawMessage(`"RECORDED ` + strings.TrimPrefix(string(id), "toolu_") + `"`)}
		})
		if err != nil || len(r.Calls) != c.calls {
			t.Fatalf("Recover after %s = %+v, %v, want %d calls", c.last, r, err, c.calls)
		}
		before := len(model.Requests())
		run(j, "go on", r.Token)
		requests := model.Requests()[before:]
		if len(requests) != 1 {
			t.Errorf("after %s the model was asked %d times, want once", c.last, len(requests))
		}
		if got := conversationIn(requests[0]); got != c.want+"go on, " {
			t.Errorf("after %s the model reads\n%s, want\n%s", c.last, got, c.want+"go on, ")
		}
	}
}

// A slowJournal needs time for the line with a call.
type slowJournal struct {
	*memoryJournal
	ran chan struct{}
}

func (j *slowJournal) Append(ctx context.Context, name string, lines []json.RawMessage) error {
	for _, l := range lines {
		if !strings.Contains(string(l), `"id":"toolu_1"`) {
			continue
		}
		select {
		case <-j.ran:
		case <-time.After(400 * time.Millisecond): // a tool runs some 10 milliseconds after its call
		}
	}
	return j.memoryJournal.Append(ctx, name, lines)
}

func TestKeptIn_CallBeginsWhenItsLineIsKept(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("done").When(script.HasToolResult("toolu_1")),
		script.Reply(script.ToolCall{ID: "toolu_1", Name: "mcp__drover__pay", Input: script.Input{}}))
	j := &slowJournal{&memoryJournal{}, make(chan struct{})}
	kept := false
	registry := tool.MustRegistry(nil, tool.Must("pay", "Pays.", func(context.Context, tool.None) (string, error) {
		close(j.ran)
		j.mu.Lock()
		defer j.mu.Unlock()
		kept = slices.ContainsFunc(j.lines, func(l keptLine) bool { return strings.Contains(string(l.raw), `"id":"toolu_1"`) })
		return "paid", nil
	}))
	for _, err := range newAdapter(t, cli.Options(model)).KeptIn(j).Run(t.Context(), agent.Request{Prompt: "begin", Registry: registry}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !kept {
		t.Error("the call has begun before its line was kept")
	}
}

// While a subagent may go on in another one, which makes its calls again, they are not settled.
func TestRecover_CallsOfASubagentAreSettledWithIt(t *testing.T) {
	const session = "kept/5ca1ab1e-0000-4000-8000-000000000001"
	line := func(text string) []json.RawMessage { return []json.RawMessage{json.RawMessage(text)} }
	j := &memoryJournal{}
	add := func(name, text string) {
		if err := j.Append(t.Context(), name, line(text)); err != nil {
			t.Fatal(err)
		}
	}
	add(session, `{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"Do it."}}`)
	add(session, `{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Agent","input":{}}]}}`)
	add(session+"/subagents/agent-1", `{"type":"assistant","uuid":"s1","parentUuid":null,"isSidechain":true,"message":{"id":"m2","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{}}]}}`)
	adapter := claudecode.New(nil)
	for _, want := range []string{"[t1]", "[t1 t2]"} { // the first recovery gives t1 its result
		r, err := adapter.Recover(t.Context(), j, func(event.CallID) event.ToolResult {
			return event.ToolResult{Failure: &event.ToolFailure{Message: "UNKNOWN"}}
		})
		if got := fmt.Sprint(r.Calls); got != want || err != nil {
			t.Errorf("the settled calls are %s, %v, want %s", got, err, want)
		}
	}
}

// Options that say where conversations are, or which one goes on, count.
func TestKeptIn_BaseThatSaysOtherwise(t *testing.T) {
	for name, base := range map[string]*claude.Options{
		"Store": {Store: transcript.NewMemoryStore()}, "NoPersistence": {NoPersistence: true}, "Checkpointing": {Checkpointing: true},
		"Resume": {Resume: "x"}, "Continue": {Continue: true}, "Spawner": {Spawner: &claude.HostSpawner{}},
	} {
		if a := claudecode.New(base); a.KeptIn(&memoryJournal{}) != agent.Adapter(a) {
			t.Errorf("with %s of the base the conversations are kept in the journal", name)
		}
	}
}

// A worker that is told to stop interrupts its agent, which writes down that the user has rejected the call under way. The one
// that goes on reads what became of the call instead.
func TestRecover_InterruptionIsNoRejection(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewScriptedModel(t, script.Script{Strict: true, Turns: []script.Turn{
		script.Text("gone on").When(script.SawText("go on")).Always(),
		script.Reply(script.ToolCall{ID: "toolu_1", Name: "mcp__drover__wait", Input: script.Input{}}).Always(),
	}})
	ctx, cancel := context.WithCancel(t.Context())
	registry := tool.MustRegistry(nil, tool.Must("wait", "Waits.", func(ctx context.Context, _ tool.None) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}))
	adapter := newAdapter(t, cli.Options(model))
	j := &memoryJournal{}
	for range adapter.KeptIn(j).Run(ctx, agent.Request{Prompt: "begin", Registry: registry}) { // whatever its end is
	}
	for range 2 { // the second time after the death of the agent that has gone on
		r, err := adapter.Recover(t.Context(), j, func(event.CallID) event.ToolResult {
			return event.ToolResult{Status: event.ToolError, Failure: &event.ToolFailure{Message: "UNKNOWN"}}
		})
		if err != nil || r.Token == "" {
			t.Fatalf("Recover = %+v, %v", r, err)
		}
		for _, err := range adapter.KeptIn(j.cut(len(j.lines))).Run(t.Context(), agent.Request{Prompt: "go on", Resume: r.Token, Registry: registry}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got, want := conversationIn(model.LastRequest()), "begin, call 1, UNKNOWN, go on, "; got != want {
			t.Errorf("the model reads %q, want %q", got, want)
		}
	}
}

// conversationIn is what a request has of the conversation, but for what the CLI adds to it. The results of one message are sorted.
func conversationIn(r *script.Request) string {
	var all []string
	for _, m := range r.Messages {
		var results []string
		for _, p := range m.Content {
			switch {
			case p.Type == "thinking":
				all = append(all, "thinking")
			case p.Type == "tool_use":
				all = append(all, "call "+strings.TrimPrefix(p.ID, "toolu_"))
			case p.Type == "tool_result":
				results = append(results, p.ToolUseID+p.Content.Text())
			case m.Role != "system" && !strings.HasPrefix(p.Text, "<system-reminder>"):
				slices.Sort(results)
				for _, result := range results {
					all = append(all, strings.TrimSpace(result[len("toolu_1"):]))
				}
				results = nil
				all = append(all, strings.TrimSpace(p.Text))
			}
		}
		slices.Sort(results)
		for _, result := range results {
			all = append(all, strings.TrimSpace(result[len("toolu_1"):]))
		}
	}
	return strings.Join(all, ", ") + ", "
}
