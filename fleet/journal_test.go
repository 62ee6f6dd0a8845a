// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/claude/transcript/storetest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// The journal of a run keeps the transcripts of Claude Code as any of its stores does.
func TestJournal_IsAStoreOfTranscripts(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f := open(t)
		storetest.RunStoreSuite(t, func(t *testing.T) transcript.Store {
			l, err := f.OpenLog(t.Context(), "asks."+ident.NewUUID(), "w")
			if err != nil {
				t.Fatal(err)
			}
			return claudecode.JournalStore(fleet.JournalOf(l))
		})
	})
}

// The next holder finds what an earlier one has kept, in its order, and the earlier one can add no more.
func TestJournal_BelongsToTheHolderOfTheLog(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		id := "asks." + ident.NewUUID()
		hold := func(holder string) agent.Journal {
			l, err := open(t).OpenLog(t.Context(), id, holder)
			if err != nil {
				t.Fatal(err)
			}
			return fleet.JournalOf(l)
		}
		lines := func(text string) []json.RawMessage {
			return []json.RawMessage{json.RawMessage(`{"text":"` + text + `"}`), json.RawMessage(`{"large":"` + strings.Repeat("x", 200_000) + `"}`)}
		}
		first := hold("w1")
		for _, name := range []string{"a", "b", "a"} {
			if err := first.Append(t.Context(), name, lines(name)); err != nil {
				t.Fatal(err)
			}
		}
		second := hold("w2")
		if err := first.Append(t.Context(), "a", lines("late")); !errors.Is(err, fleet.ErrLost) {
			t.Errorf("Append of an earlier holder = %v, want ErrLost", err)
		}
		names, err := second.Names(t.Context())
		if got := strings.Join(names, " "); got != "b a" || err != nil {
			t.Errorf("Names = %q, %v, want the one with the last append last", got, err)
		}
		got, err := second.Load(t.Context(), "a")
		if want := append(lines("a"), lines("a")...); err != nil || fmt.Sprintf("%s", got) != fmt.Sprintf("%s", want) {
			t.Errorf("Load = %.60s, %v, want what was appended", got, err)
		}
	})
}

// A keeper is an agent that keeps a line for each call and for each result, as a real one does.
type keeper struct {
	*agenttest.Adapter
	calls int
	alike bool // the calls are the same
	// do makes a call that was allowed, and returns its result. Task is the first prompt.
	do func(task, prompt string, n int) string
	j  agent.Journal
}

type keptStep struct {
	Call   event.CallID `json:"call"`
	N      int          `json:"n"`
	Task   string       `json:"task"`
	Result string       `json:"result,omitzero"`
}

func (k *keeper) KeptIn(j agent.Journal) agent.Adapter {
	own := *k
	own.j = j
	return &own
}

func (k *keeper) Recover(ctx context.Context, j agent.Journal, result func(event.CallID) event.ToolResult) (r agent.Recovered, err error) {
	steps, err := stepsOf(ctx, j)
	if err != nil || len(steps) == 0 {
		return r, err
	}
	last := steps[len(steps)-1]
	if last.Result == "" {
		end := result(last.Call)
		if last.Result = string(end.Output); end.Failure != nil {
			last.Result = end.Failure.Message
		}
		if err := k.keep(ctx, j, last); err != nil {
			return r, err
		}
		steps = append(steps, last)
	}
	for _, s := range steps {
		r.Calls = append(r.Calls, s.Call)
	}
	r.Token = "steps"
	return r, nil
}

func stepsOf(ctx context.Context, j agent.Journal) (steps []keptStep, err error) {
	lines, err := j.Load(ctx, "steps")
	for _, line := range lines {
		var s keptStep
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, err
}

func (k *keeper) keep(ctx context.Context, j agent.Journal, s keptStep) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return j.Append(ctx, "steps", []json.RawMessage{raw})
}

// Run implements [agent.Adapter]. A call that was not made, because it had not begun, is made again.
func (k *keeper) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		n, task := 0, req.Prompt
		fail := func(err error) bool {
			if err != nil {
				yield(event.Event{}, err)
			}
			return err != nil
		}
		if req.Resume != "" {
			steps, err := stepsOf(ctx, k.j)
			if fail(err) {
				return
			}
			last := steps[len(steps)-1]
			task = last.Task
			if n = last.N + 1; strings.Contains(last.Result, "was not made") {
				n = last.N
			}
		}
		for ; n < k.calls; n++ {
			command := fmt.Sprint("step ", n)
			if k.alike {
				command = "step"
			}
			input, _ := json.Marshal(map[string]string{"command": command})
			c := event.ToolCall{ID: event.CallID(ident.NewUUID()), Name: "Bash", Input: input}
			if fail(k.keep(ctx, k.j, keptStep{Call: c.ID, N: n, Task: task})) || !yield(event.Event{Payload: c}, nil) {
				return
			}
			result := event.ToolResult{ID: c.ID, Name: c.Name, Status: event.ToolDenied}
			d := req.Host.Decide(ctx, c)
			text := d.Reason
			if d.Verdict == event.Allow {
				text = k.do(task, req.Prompt, n)
				result.Status, result.Output = event.ToolSuccess, json.RawMessage(`"`+text+`"`)
			} else {
				result.Failure = &event.ToolFailure{Message: d.Reason}
			}
			if !yield(event.Event{Payload: result}, nil) || fail(k.keep(ctx, k.j, keptStep{c.ID, n, task, text})) {
				return
			}
		}
		yield(event.Event{Payload: event.Done{Status: event.DoneSuccess, Result: "ok"}}, nil)
	}
}

// keeps makes an agent of a keeper.
func keeps(name string, k *keeper) fleet.Agent {
	k.Adapter = agenttest.New()
	return handled(name, k)
}

func handled(name string, a agent.Adapter) fleet.Agent {
	return fleet.Handle(name, fleet.Handler[question, string]{
		Adapter: a,
		Prepare: func(_ context.Context, q question, _ *session.Session) (*prompt.Prompt[string], *drover.Options, error) {
			p, err := prompt.FromText[string](q.Text)
			return p, nil, err
		},
	})
}

// The same call in a later step is a new call, and runs, also after a recovery. One whose outcome is unknown is not made by us. The
// first attempt leaves no conversation, so that the second one begins again, and the third goes on.
func TestWorker_RecoveredConversationMakesNewCalls(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		var mu sync.Mutex
		var made []string
		attempt := func(a func(f *fleet.Fleet, die func()) fleet.Agent, dies bool) (f *fleet.Fleet) {
			f = open(t)
			dead := make(chan struct{})
			work(t, fleet.Worker{Fleet: f, Lease: time.Second, Agents: []fleet.Agent{a(f, func() {
				_ = f.Close()
				close(dead)
			})}})
			if dies {
				<-dead
			}
			return f
		}
		r := submit(t, open(t), "Why?", "")
		attempt(func(f *fleet.Fleet, die func()) fleet.Agent {
			c := event.ToolCall{ID: "a", Name: "Bash", Input: json.RawMessage(`{"command":"step"}`)}
			return asks(nil, agenttest.UseTool(c, "recorded"), func(*agenttest.Run) { made = append(made, "first"); die() }, agenttest.Block())
		}, true)
		goesOn := func(dieIn int) func(*fleet.Fleet, func()) fleet.Agent {
			return func(f *fleet.Fleet, die func()) fleet.Agent {
				return keeps("asks", &keeper{calls: 4, alike: true, do: func(_, prompt string, n int) string {
					mu.Lock()
					defer mu.Unlock()
					made = append(made, fmt.Sprint(n))
					if strings.Contains(prompt, "You were interrupted") != (n > 1) {
						t.Errorf("step %d is made for the prompt %q", n, prompt)
					}
					if n == dieIn {
						die()
					}
					return "done"
				}})
			}
		}
		attempt(goesOn(1), true)
		r, err := attempt(goesOn(-1), false).Run(t.Context(), r.ID())
		if err != nil {
			t.Fatal(err)
		}
		if result := wait(t, r); result.State != fleet.Succeeded || result.Attempts != 3 {
			t.Errorf("the run ended with %+v, want success in the third attempt", result)
		}
		if got := strings.Join(made, " "); got != "first 1 2 3" {
			t.Errorf("the calls %s were made, want those of the steps 1 to 3 after the first", got)
		}
	})
}

// An agent whose answer was lost with its worker gives it again.
func TestWorker_LostAnswerIsGivenAgain(t *testing.T) {
	name := "t" + ident.NewUUID()
	dying, f := openOn(t, "embedded", name), openOn(t, "embedded", name)
	dead, verdicts := make(chan struct{}), make(chan event.Decision, 1)
	c := event.ToolCall{ID: "a", Name: "Answer", Input: json.RawMessage(`{}`)}
	answering := func(steps ...agenttest.Step) []fleet.Agent {
		a := agenttest.New(steps...)
		a.Tools = &tool.Catalogue{Agent: "scripted", AnswerTool: "Answer", Natives: []tool.Native{{Name: "Answer"}}}
		return []fleet.Agent{handled("asks", a)}
	}
	work(t, fleet.Worker{Fleet: dying, Lease: time.Second, Agents: answering(agenttest.UseTool(c, "given"), func(*agenttest.Run) {
		_ = dying.Close()
		close(dead)
	}, agenttest.Block())})
	r := submit(t, f, "Why?", "")
	<-dead
	work(t, fleet.Worker{Fleet: f, Lease: time.Second, Agents: answering(func(run *agenttest.Run) {
		verdicts <- run.Request.Host.Decide(run.Context, c)
	}, answers("ok"))})
	if result := wait(t, r); result.State != fleet.Succeeded || result.Attempts != 2 {
		t.Errorf("the run ended with %+v, want success in the second attempt", result)
	}
	if d := <-verdicts; d.Verdict != event.Allow {
		t.Errorf("the answer is denied: %s", d.Reason)
	}
}

// A conversation that cannot go on does not use up all attempts: the next one begins again.
func TestWorker_ConversationThatCannotGoOnIsGivenUp(t *testing.T) {
	f := openOn(t, "embedded", "t"+ident.NewUUID())
	var runs atomic.Int64
	broken := &brokenKeeper{keeper: keeper{calls: 2}, runs: &runs}
	broken.do = func(string, string, int) string { return "done" }
	broken.Adapter = agenttest.New()
	a := handled("asks", broken)
	work(t, fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Backoff: quick})
	result := wait(t, submit(t, f, "Why?", ""))
	if result.State != fleet.Succeeded || result.Attempts != 3 {
		t.Errorf("the run ended with %+v, want success in the third attempt", result)
	}
}

// A brokenKeeper fails after its first step, and cannot resume.
type brokenKeeper struct {
	keeper
	runs *atomic.Int64
}

func (b *brokenKeeper) KeptIn(j agent.Journal) agent.Adapter {
	own := *b
	own.j = j
	return &own
}

func (b *brokenKeeper) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	n := b.runs.Add(1)
	return func(yield func(event.Event, error) bool) {
		if req.Resume != "" {
			yield(event.Event{}, errors.New("no conversation found"))
			return
		}
		for e, err := range b.keeper.Run(ctx, req) {
			if _, ended := e.Payload.(event.ToolResult); ended && n == 1 {
				yield(event.Event{}, errors.New("the agent has died"))
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
