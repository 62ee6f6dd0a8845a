// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// decides asks the host about a call and keeps its decision.
func decides(c event.ToolCall, got *event.Decision) agenttest.Step {
	return func(r *agenttest.Run) { *got = r.Request.Host.Decide(r.Context, c) }
}

func TestDenial_ReasonsAreExact(t *testing.T) {
	blocked := func(names ...string) *session.Session {
		s := session.New(nil)
		if _, err := s.Dispatch(context.Background(), session.ToolPermissions{Blocked: names}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	var now time.Time
	clock := guard.Clock(func() time.Time { return now })
	now = time.Now()
	inAnHour, begin := clock.FromNow(time.Hour), now
	late := func(*agenttest.Run) { now = now.Add(2 * time.Hour) }
	spent := func(r *agenttest.Run) { r.Request.Trackers[0].Record(guard.Usage{InputTokens: 10}) }
	nothing := func(*agenttest.Run) {}
	for _, x := range []struct {
		name   string
		opts   drover.Options
		before agenttest.Step
		want   string
	}{
		{"deadline", drover.Options{Deadline: inAnHour}, late, "Deadline exceeded"},
		{"budget", drover.Options{Settings: agent.Settings{Budget: &guard.Budget{MaxTotalTokens: 10}}}, spent, "Token budget exhausted"},
		{"deadline before budget", drover.Options{Deadline: inAnHour, Settings: agent.Settings{Budget: &guard.Budget{MaxTotalTokens: 10}}}, func(r *agenttest.Run) { late(r); spent(r) }, "Deadline exceeded"},
		{"budget before lists", drover.Options{Settings: agent.Settings{Budget: &guard.Budget{MaxTotalTokens: 10}, DisallowedTools: []string{"Bash"}}}, spent, "Token budget exhausted"},
		{"session", drover.Options{Session: blocked("Bash")}, nothing, "Tool Bash blocked by session policy"},
		{"lists before session", drover.Options{Session: blocked("Bash"), Settings: agent.Settings{DisallowedTools: []string{"Bash"}}}, nothing, "Bash is denied. Make an allowed call instead, or continue without it."},
		{"session before own policies", drover.Options{Session: blocked("Bash"), Policies: []gate.Policy{no("mine")}}, nothing, "Tool Bash blocked by session policy"},
		{"own policies", drover.Options{Policies: []gate.Policy{no("mine")}}, nothing, "mine says no"},
	} {
		t.Run(x.name, func(t *testing.T) {
			now = begin
			var got event.Decision
			_, _ = play(t, &x.opts, x.before, decides(call("1", "Bash", `{"command":"ls"}`), &got), answers())
			if got.Verdict != event.Deny || got.Reason != x.want {
				t.Errorf("decided %v because %q, want a denial because %q", got.Verdict, got.Reason, x.want)
			}
		})
	}
}

// no denies every call.
func no(name string) gate.Policy {
	return gate.Custom(name, func(*gate.Call, *gate.Facts) (event.Decision, bool) {
		return event.Decision{Reason: name + " says no"}, true
	})
}

func TestDecide_PermissionsAndLists(t *testing.T) {
	for name, x := range map[string]struct {
		opts drover.Options
		call event.ToolCall
		want event.Verdict
	}{
		"nothing is set":                   {drover.Options{}, call("1", "Bash", `{"command":"x"}`), event.Allow},
		"permissions allow":                {drover.Options{Settings: agent.Settings{Permissions: &gate.Permissions{ShellExecute: gate.LevelAllow}}}, call("1", "Bash", `{"command":"x"}`), event.Allow},
		"permissions deny":                 {drover.Options{Settings: agent.Settings{Permissions: &gate.Permissions{ShellExecute: gate.LevelDeny}}}, call("1", "Bash", `{"command":"x"}`), event.Deny},
		"a list without it":                {drover.Options{Settings: agent.Settings{Tools: []string{"Read"}}}, call("1", "Bash", `{"command":"x"}`), event.Deny},
		"a list with another argument":     {drover.Options{Settings: agent.Settings{Tools: []string{"Bash(git status)"}}}, call("1", "Bash", `{"command":"git push"}`), event.Deny},
		"a list with its argument":         {drover.Options{Settings: agent.Settings{Tools: []string{"Bash(git status)"}}}, call("1", "Bash", `{"command":"git status"}`), event.Allow},
		"a list, and a tool of the prompt": {drover.Options{Settings: agent.Settings{Tools: []string{"Read"}}}, call("1", "mcp__drover__note", `{}`), event.Allow},
		"a list that chooses among those":  {drover.Options{Settings: agent.Settings{Tools: []string{"mcp__drover__other"}}}, call("1", "mcp__drover__note", `{}`), event.Deny},
		"a list with the former name":      {drover.Options{Settings: agent.Settings{Tools: []string{"mcp__wink__other"}}}, call("1", "mcp__drover__note", `{}`), event.Deny},
		"a former name of the tool":        {drover.Options{Settings: agent.Settings{Tools: []string{"mcp__wink__note"}}}, call("1", "mcp__drover__note", `{}`), event.Allow},
		"a former name that is disallowed": {drover.Options{Settings: agent.Settings{DisallowedTools: []string{"mcp__wink__note"}}}, call("1", "mcp__drover__note", `{}`), event.Deny},
		"an empty list":                    {drover.Options{Settings: agent.Settings{Tools: []string{}}}, call("1", "mcp__drover__note", `{}`), event.Deny},
	} {
		var got event.Decision
		if _, err := play(t, &x.opts, decides(x.call, &got), answers()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.Verdict != x.want {
			t.Errorf("%s: decided %v (%s), want %v", name, got.Verdict, got.Reason, x.want)
		}
	}
}

// The agent is not started for a list with a name that no tool has. Tools of hidden sections are known.
func TestTools_MisspelledNamesAreRefused(t *testing.T) {
	for name, x := range map[string]struct {
		opts drover.Options
		want string // empty means that it runs
	}{
		"a list":                      {drover.Options{Settings: agent.Settings{Tools: []string{"Raed"}}}, "Tools: there is no tool Raed\n  next: write Read; if"},
		"what is taken away":          {drover.Options{Settings: agent.Settings{DisallowedTools: []string{"Bsah(rm *)"}}}, "DisallowedTools: there is no tool Bsah\n  next: write Bash"},
		"a rule":                      {drover.Options{Policies: []gate.Policy{gate.AskTools("extar")}}, "policy ask-list: there is no tool extar"},
		"a tool of the prompt":        {drover.Options{Settings: agent.Settings{Tools: []string{"mcp__drover__nte"}}}, "there is no tool mcp__drover__nte\n  next: write mcp__drover__note"},
		"a tool of a hidden section":  {drover.Options{Settings: agent.Settings{Tools: []string{"extra", "note", "Read"}}, Policies: []gate.Policy{gate.AskTools("extra")}}, ""},
		"a tool that is known to few": {drover.Options{Settings: agent.Settings{Tools: []string{"Frob"}, UnknownTools: []string{"Frob"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x.opts.Session = session.New(nil)
			a := &agenttest.Adapter{Tools: catalogue.Tools(), Steps: []agenttest.Step{answers()}}
			_, err := drover.Evaluate(t.Context(), a, reviewPrompt(t, prompt.Markdown("task", "Task", "Review it.").With(notes()), hidden()), &x.opts)
			if text := advice.Text(err); (text == "") != (x.want == "") || !strings.Contains(text, x.want) {
				t.Fatalf("got %q, want %q", text, x.want)
			}
			failure, failed := errors.AsType[*drover.EvaluationError](err)
			if failed && (failure.Kind != agent.FailureRequest || failure.Stage != drover.StageBind || len(a.Requests()) > 0) {
				t.Errorf("kind %s in stage %s, %d requests", failure.Kind, failure.Stage, len(a.Requests()))
			}
		})
	}
}

// The log and the stream have every policy that was asked, not only the one that decided.
func TestDecision_ChainIsInLogAndStream(t *testing.T) {
	store := session.NewMemoryStore()
	s, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := &drover.Options{Session: s, Policies: []gate.Policy{gate.AskTools("Bash"), no("mine")}}
	a := &agenttest.Adapter{Tools: catalogue.Tools(), Steps: []agenttest.Step{agenttest.UseTool(call("1", "Bash", `{"command":"ls"}`), "files"), answers()}}
	var streamed []event.Decision
	for e := range drover.Stream(t.Context(), a, reviewPrompt(t), opts).Events() {
		if d, ok := e.Payload.(event.Decision); ok {
			streamed = append(streamed, d)
		}
	}
	again, err := session.Open(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	logged := slices.Collect(session.Query[event.Decision](again).All())
	want := []event.PolicyVerdict{{Policy: "ask-list", Verdict: new(event.Ask), Reason: "Bash needs approval"}, {Policy: "mine", Verdict: new(event.Deny), Reason: "mine says no"}}
	for name, got := range map[string][]event.Decision{"log": logged, "stream": streamed} {
		if len(got) != 1 {
			t.Fatalf("the %s has %d decisions, want one", name, len(got))
		}
		asked := slices.DeleteFunc(slices.Clone(got[0].Chain), func(v event.PolicyVerdict) bool { return v.Verdict == nil })
		if diff := cmp.Diff(want, asked); diff != "" || len(asked) == len(got[0].Chain) {
			t.Errorf("the chain %+v in the %s, want policies that abstain and (-want +got):\n%s", got[0].Chain, name, diff)
		}
	}
}

func TestApprover_IsAskedOnce(t *testing.T) {
	asked := 0
	opts := &drover.Options{
		Session: session.New(nil), Policies: []gate.Policy{gate.AskTools("note")},
		Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
			asked++
			return gate.Answer{Verdict: event.Allow}, nil
		}),
	}
	if _, err := play(t, opts, calls(call("1", "mcp__drover__note", `{"text":"a"}`)), answers()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 note bridged success"}, recorded(opts.Session)); diff != "" || asked != 1 {
		t.Errorf("asked %d times, and recorded (-want +got):\n%s", asked, diff)
	}
}

func TestHandler_ContextHasTheRun(t *testing.T) {
	s, heart := session.New(nil), guard.NewHeartbeat(nil)
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 10})
	deadline := guard.FromNow(time.Hour)
	var found []bool
	var runID string
	var p *prompt.Prompt[review]
	var a agent.Adapter
	look := tool.Must("look", "Looks.", func(ctx context.Context, _ tool.None) (string, error) {
		own, _ := session.From(ctx)
		_, inPlace := workspace.From(ctx)
		found = []bool{own == s, inPlace, guard.TrackerFrom(ctx) == tracker, guard.DeadlineFrom(ctx).Equal(deadline), guard.HeartbeatFrom(ctx) == heart}
		runID = guard.RunContextFrom(ctx).RunID
		bound, _ := prompt.From(ctx)
		rendered, _ := prompt.RenderedFrom(ctx)
		adapter, _ := agent.AdapterFrom(ctx)
		if bound != prompt.Bound(p) || adapter != a || rendered == nil || !strings.Contains(rendered.Text, "Look.") {
			t.Errorf("a handler finds the prompt %v, the rendering %+v and the adapter %v", bound, rendered, adapter)
		}
		return "", nil
	})
	p = reviewPrompt(t, prompt.Markdown("task", "Task", "Look.").With(look))
	a = agenttest.New(calls(call("1", "mcp__drover__look", `{}`)), answers())
	resp, err := drover.Evaluate(t.Context(), a, p,
		&drover.Options{Session: s, Heartbeat: heart, Tracker: tracker, Deadline: deadline})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, true, true, true, true}, found); diff != "" || runID != resp.RunID {
		t.Errorf("session, workspace, tracker, deadline, heartbeat, run %q: %v", runID, found)
	}
	if remarks := session.Query[remark](s).Len(); remarks != 0 {
		t.Errorf("%d remarks", remarks)
	}
}

func TestTools_ValuesAreInTheirSlices(t *testing.T) {
	s := session.New(nil)
	if _, err := play(t, &drover.Options{Session: s}, calls(call("1", "mcp__drover__note", `{"text":"a"}`)), answers()); err != nil {
		t.Fatal(err)
	}
	if got, _ := session.Query[remark](s).Latest(); got.Text != "a" {
		t.Errorf("the slice has %+v", got)
	}
}

// hidden is a section that is shown as a summary, with a tool and a policy of its own.
func hidden() *prompt.Section {
	more := prompt.Markdown("more", "More", "Use the tool extra.").With(tool.Must("extra", "Does more.", func(context.Context, tool.None) (string, error) { return "extra", nil }))
	more.Summary, more.Visibility = "There is more.", prompt.Summary
	more.Policies = []gate.Policy{gate.DenyTools("WebFetch")}
	return more
}

func opens(id string) agenttest.Step {
	return calls(call(id, "mcp__drover__"+prompt.OpenSections, `{"section_keys":["more"],"reason":"curious"}`))
}

func TestDisclosure_OpenedSectionAppliesInTheSameRun(t *testing.T) {
	s := session.New(nil)
	var before, after event.Decision
	fetch := func(id string) event.ToolCall { return call(id, "WebFetch", `{"url":"http://x"}`) }
	a := agenttest.New(decides(fetch("1"), &before), opens("2"), decides(fetch("3"), &after), calls(call("4", "mcp__drover__extra", `{}`)), answers())
	resp, err := drover.Evaluate(t.Context(), a, reviewPrompt(t, prompt.Markdown("task", "Task", "Review."), hidden()), &drover.Options{Session: s, Settings: agent.Settings{Tools: []string{"WebFetch"}}})
	if err != nil {
		t.Fatal(err)
	}
	if before.Verdict != event.Allow || after.Verdict != event.Deny {
		t.Errorf("the policy of a section says %v before it is opened and %v after", before.Verdict, after.Verdict)
	}
	if got := recorded(s); len(got) != 4 || got[3] != "4 extra bridged success" {
		t.Errorf("recorded %q", got)
	}
	if resp.Expansions != 0 || len(a.Requests()) != 1 {
		t.Errorf("%d expansions in %d runs", resp.Expansions, len(a.Requests()))
	}
}

func TestRestart_ShowsTheSectionsThatTheModelAskedFor(t *testing.T) {
	s := session.New(nil)
	asksOnce := func(r *agenttest.Run) {
		if _, hidden := r.Request.Registry.Lookup(prompt.OpenSections); hidden {
			opens("1")(r)
		}
	}
	a := agenttest.New(asksOnce, calls(call("2", "mcp__drover__extra", `{}`)), answers())
	resp, err := drover.Evaluate(t.Context(), a, reviewPrompt(t, prompt.Markdown("task", "Task", "Review."), hidden()), &drover.Options{Session: s, RestartToOpen: true})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Expansions != 1 || len(a.Requests()) != 2 {
		t.Errorf("%d expansions in %d runs, want 1 in 2", resp.Expansions, len(a.Requests()))
	}
	if got := recorded(s); len(got) != 2 || got[1] != "2 extra bridged success" {
		t.Errorf("recorded %q", got)
	}
}

func TestVisibility_AppliesToOneEvaluation(t *testing.T) {
	s := session.New(nil)
	p := reviewPrompt(t, prompt.Markdown("task", "Task", "Review."), hidden())
	for _, shown := range []bool{true, false} {
		opts := &drover.Options{Session: s}
		if shown {
			opts.Visibility = map[string]prompt.Visibility{"more": prompt.Full}
		}
		a := agenttest.New(answers())
		if _, err := drover.Evaluate(t.Context(), a, p, opts); err != nil {
			t.Fatal(err)
		}
		if _, has := a.Requests()[0].Registry.Lookup("extra"); has != shown {
			t.Errorf("shown %v, and the tool of the section is there: %v", shown, has)
		}
	}
}
