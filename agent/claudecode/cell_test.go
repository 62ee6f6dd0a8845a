// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

// in runs one request in an isolation.
func in(t testing.TB, i *isolation.Isolation, base *claude.Options, req agent.Request) recording {
	t.Helper()
	runner, err := agent.NewRunner(claudecode.New(base).In(i), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Prompt = "go"
	return record(t, runner.Run(inTime(t), req))
}

// The isolation that an adapter was given is the one of its runs: this one cannot be set up.
func TestIn_IsolationIsThatOfTheRun(t *testing.T) {
	i := &isolation.Isolation{Env: map[string]string{"LD_PRELOAD": "x.so"}}
	for name, x := range map[string]struct {
		adapter *claudecode.Adapter
		wants   bool
	}{
		"given": {claudecode.New(&claude.Options{Dir: t.TempDir()}).In(i), true},
		"other": {claudecode.New(&claude.Options{Dir: t.TempDir(), CLIPath: "/no/such/cli"}).In(&isolation.Isolation{APIKey: "key"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			var failed error
			for _, err := range x.adapter.Run(inTime(t), agent.Request{Prompt: "go"}) {
				failed = errors.Join(failed, err)
			}
			if failed == nil || strings.Contains(advice.Text(failed), "LD_PRELOAD") != x.wants {
				t.Errorf("the run ended with %v", failed)
			}
		})
	}
}

// The done event comes before the cleanup, so that the failure of a Run is in the error of Close.
func TestClose_ReturnsTheFailedCleanupOfARun(t *testing.T) {
	cli := claudetest.CLI(t)
	homes := filepath.Join(t.TempDir(), "homes")
	if err := os.Mkdir(homes, 0o700); err != nil {
		t.Fatal(err)
	}
	adapter := claudecode.New(cli.Options(claudetest.NewModel(t, script.Text("Fine.")))).In(&isolation.Isolation{TempDir: homes})
	var done event.Done
	for e, err := range adapter.Run(inTime(t), agent.Request{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := e.Payload.(event.Done); ok {
			done = end
			if err := os.Rename(homes, homes+".moved"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := adapter.Close(); done.Result != "Fine." || err == nil || !strings.Contains(advice.Text(err), "isolation: removing the private home") {
		t.Errorf("the run ended with %q, and Close returns %v", done.Result, err)
	}
	if err := adapter.Close(); err != nil {
		t.Errorf("the second Close returns %v", err)
	}
}

// A CLI that its cell ends while it starts gives no reason; the cell does.
func TestStart_LimitOfTheCellIsTheError(t *testing.T) {
	cli := claudetest.CLI(t)
	program := cli.WriteFile(t, "program", "x")
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	var failed error
	for _, err := range claudecode.New(cli.Options(claudetest.NewModel(t))).Run(inTime(t), agent.Request{Prompt: "go"}) {
		failed = errors.Join(failed, err)
	}
	if _, ok := errors.AsType[*isolation.BreachError](failed); !ok || !strings.Contains(advice.Text(failed), program) || !strings.Contains(advice.Text(failed), "chmod ug-s") {
		t.Errorf("the run failed with %v, want the breach that names %s", failed, program)
	}
}

// The events of the cell are part of the run: its protection right after the beginning, each model call with its
// price, and the gateway's own count at the end, which is the CLI's.
func TestCell_EventsArePartOfTheRun(t *testing.T) {
	cli := claudetest.CLI(t)
	cost := script.Usage{Input: 1000, Output: 200, CacheRead: 5000}
	model := claudetest.NewModel(t, script.Reply(bash("id -u; pwd")).Metered(cost), script.Text("Done.").Metered(cost))
	base := cli.Options(model)
	base.PermissionMode = claude.ModeBypassPermissions
	got := in(t, nil, base, agent.Request{Settings: agent.Settings{Model: "claude-sonnet-4-5-20250929"}})
	if len(got) < 2 || got[0].Kind != event.KindInit || got[1].Kind != isolation.KindProtection {
		t.Fatalf("the run begins with %v, want init and the protection", got)
	}
	if protection := got[1].Payload.(isolation.Protection); protection.Level != isolation.LevelCell || !strings.Contains(protection.Upstream, strings.TrimPrefix(model.URL(), "http://")) {
		t.Errorf("the protection is %+v, want a cell in front of %s", protection, model.URL())
	}
	if results := of[event.ToolResult](got); len(results) != 1 || !strings.Contains(string(results[0].Output), `1000\n`+cli.Work) {
		t.Errorf("the command printed %+v, want uid 1000 and the same folder as outside", results)
	}
	if calls := of[gateway.ModelCall](got); len(calls) != 2 || calls[0].Status != 200 || calls[0].Model == "" {
		t.Errorf("the model calls are %+v, want two", calls)
	}
	last := got[len(got)-1]
	var counted gateway.Usage
	if err := json.Unmarshal(last.Metadata[claudecode.GatewayUsage], &counted); err != nil {
		t.Fatal(err)
	}
	reported := last.Payload.(event.Done).Usage
	if counted.Total.Tokens.AllInput() != reported.InputTokens() || counted.Total.Tokens.Output != reported.OutputTokens() {
		t.Errorf("the gateway counted %+v, the CLI reports %d in and %d out", counted.Total, reported.InputTokens(), reported.OutputTokens())
	}
	if key := model.LastRequest().Header.Get("X-Api-Key"); key != claudetest.FakeKey {
		t.Errorf("the model was paid with %q, want the key of the host", key)
	}
}

// A budget ends the run in the middle of its turn, whichever limit it is.
func TestBudget_EndsARunInTheMiddleOfItsTurn(t *testing.T) {
	for name, x := range map[string]struct {
		budget guard.Budget
		time   time.Duration
		want   event.DoneStatus
	}{
		"tokens":   {budget: guard.Budget{MaxTotalTokens: 2500}, want: event.DoneMaxBudget},
		"requests": {budget: guard.Budget{MaxRequests: 2}, want: event.DoneMaxBudget},
		"time":     {time: 5 * time.Second, want: event.DoneInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			turn := script.Reply(bash("true")).Metered(script.Usage{Input: 1000, Output: 100}).Always()
			base := cli.Options(claudetest.NewModel(t, turn))
			base.PermissionMode = claude.ModeBypassPermissions
			if x.time > 0 {
				x.budget.Deadline = guard.FromNow(x.time)
			}
			tracker := guard.NewTracker(x.budget)
			got := in(t, &isolation.Isolation{Trackers: []*guard.Tracker{tracker}}, base, agent.Request{})
			done := got.done(t)
			if done.Status != x.want || done.ResumeToken == "" {
				t.Errorf("the run ended with %+v, want %s and a token", done, x.want)
			}
			if tracker.Check() == nil {
				t.Errorf("the tracker reports that %+v is not spent by %+v", x.budget, tracker.Consumed())
			}
		})
	}
}

// putGreeting puts a skill into a home.
func putGreeting(h *isolation.Home) error {
	skill := filepath.Join(claudecell.SkillsDir(h), "greet")
	if err := os.Mkdir(skill, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte("---\nname: greet\ndescription: Greets.\n---\nSay HELLO-FROM-THE-SKILL.\n"), 0o600)
}

// Skills are put into the home before the CLI starts.
func TestCell_HomeIsPopulatedBeforeTheStart(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Skill", script.Input{"skill": "greet"}), script.Text("Done."))
	base := cli.Options(model)
	base.SettingSources, base.PermissionMode = nil, claude.ModeBypassPermissions
	var home string
	runIsolation := &isolation.Isolation{Populate: func(h *isolation.Home) error {
		home = h.Path()
		return putGreeting(h)
	}}
	if done := in(t, runIsolation, base, agent.Request{}).done(t); done.Status != event.DoneSuccess {
		t.Errorf("the run ended with %+v", done)
	}
	if !model.SawText("HELLO-FROM-THE-SKILL") {
		t.Error("the model did not read the skill")
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the home %s is still there: %v", home, err)
	}
}

// A conversation goes on in another cell, with a home of its own, which has the same skills. What is laid
// out of the conversation is in that home, and goes with it.
func TestResume_InAnotherCell(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Noted."), script.Call("Skill", script.Input{"skill": "greet"}), script.Text("It is 42."))
	base := cli.Options(model)
	base.PermissionMode = claude.ModeBypassPermissions
	var laidOut []string
	var home *isolation.Home
	runIsolation := &isolation.Isolation{
		Populate: func(h *isolation.Home) error {
			home = h
			return putGreeting(h)
		},
		Started: func(claude.Process) { laidOut, _ = filepath.Glob(filepath.Join(home.TempDir(), "drover-resume-*")) },
	}
	runner, err := agent.NewRunner(claudecode.New(base).In(runIsolation), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, prompt := range []string{"The number is 42.", "Which number?"} {
		if done := record(t, runner.Run(inTime(t), agent.Request{Prompt: prompt})).done(t); done.Status != event.DoneSuccess {
			t.Fatalf("%q ended with %+v", prompt, done)
		}
	}
	if !model.LastRequest().SawText("The number is 42.") {
		t.Error("the second run does not know the messages of the first")
	}
	if !model.SawText("HELLO-FROM-THE-SKILL") {
		t.Error("the second run does not have the skill")
	}
	if len(laidOut) != 1 {
		t.Errorf("the home has %v, want the conversation", laidOut)
	}
}

// Without a gateway only the CLI keeps a limit in dollars, and the run reports it.
func TestSpawner_UnenforcedBudgetIsReported(t *testing.T) {
	for name, budget := range map[string]*guard.Budget{"budget": {MaxTotalTokens: 10}, "no budget": nil} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize(`{"claude_code_version":"` + claude.PinnedVersion + `"}`)
				s.Turn("Done.")
				s.UntilEOF()
			})
			got := record(t, newRunner(t, cli.Options(), nil).Run(inTime(t), agent.Request{Prompt: "go", Settings: agent.Settings{Budget: budget}}))
			missing := strings.Join(of[isolation.Protection](got)[0].Missing, "\n")
			if strings.Contains(missing, "no gateway enforces budgets") != (budget != nil) {
				t.Errorf("what is missing is %q", missing)
			}
		})
	}
}
