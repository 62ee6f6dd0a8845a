// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// clis are the versions whose ways may differ.
var clis = map[string]func(testing.TB) *claudetest.RealCLI{"newest": claudetest.CLI, "oldest": claudetest.OldestCLI}

var fine = script.Input{"summary": "Fine.", "issues": []string{}}

func use(id, name string, input script.Input) script.ToolCall {
	return script.ToolCall{ID: id, Name: name, Input: input}
}

// A service that numbers the calls of each answer from the beginning: each call is reported and recorded with its
// own outcome, not with the outcome of the call before.
func TestCalls_IDsThatAServiceUsesAgain(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Reply(use("call_0", "Read", script.Input{"file_path": "a.txt"})),
		script.Reply(use("call_0", "Bash", script.Input{"command": "echo once"})),
		script.Reply(use("call_0", "Bash", script.Input{"command": "echo once"})),
		script.Reply(use("call_0", "mcp__drover__note", script.Input{"text": "good"})),
		script.Reply(use("call_0", "mcp__drover__note", script.Input{"text": "good"})),
		script.Reply(use("call_0", script.StructuredOutputTool, fine)),
	).RequireAllUsed()
	s := session.New(nil)
	if _, err := s.Dispatch(t.Context(), session.ToolPermissions{Blocked: []string{"Read"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), &drover.Options{Session: s}); err != nil {
		t.Fatal(err)
	}
	var got, emitted []string
	for c := range session.Query[session.ToolInvoked](s).All() {
		got = append(got, c.Name+" "+string(c.Status))
	}
	for e := range s.Events() {
		if r, ok := e.Payload.(event.ToolResult); ok {
			emitted = append(emitted, strings.TrimPrefix(r.Name, "mcp__drover__")+" "+string(r.Status))
		}
	}
	want := []string{"Read denied", "Bash success", "Bash success", "note success", "note success", "StructuredOutput success"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, emitted); diff != "" {
		t.Errorf("emitted (-want +got):\n%s", diff)
	}
}

// The ids say what becomes of the calls. Each call is reported once, with its data.
func TestRealCLI_EachCallIsRecordedOnce(t *testing.T) {
	for version, cli := range clis {
		t.Run(version, func(t *testing.T) {
			cli := cli(t)
			model := claudetest.NewModel(t,
				script.Reply(use("t01_bash", "Bash", script.Input{"command": "echo hello"})),
				script.Reply(use("t02_exit", "Bash", script.Input{"command": "exit 3"})),
				script.Reply(use("t03_write", "Write", script.Input{"file_path": "a.txt", "content": "x"})),
				script.Reply(use("t04_edit", "Edit", script.Input{"file_path": "a.txt", "old_string": "nowhere", "new_string": "y"})),
				script.Reply(use("t05_unknown", "Nope", script.Input{})),
				script.Reply(use("t06_blocked", "Read", script.Input{"file_path": "a.txt"})),
				script.Reply(use("t07_arguments", "Write", script.Input{"file_path": 7})),
				script.Reply(use("t08_good", "mcp__drover__note", script.Input{"text": "good"}), use("t09_bad", "mcp__drover__note", script.Input{"text": "bad", "then": "fail"})),
				script.Reply(use("t10_panic", "mcp__drover__note", script.Input{"text": "p", "then": "panic"})),
				script.Reply(use("t11_wrong", "mcp__drover__note", script.Input{"text": 1})),
				script.Reply(use("t12_time", "mcp__drover__note", script.Input{"text": "w", "then": "wait"})),
				script.Reply(use("t13_listed", "WebFetch", script.Input{"url": "http://x.example", "prompt": "p"})),
				script.Reply(use("t14_answer", script.StructuredOutputTool, fine)),
			).RequireAllUsed()
			s := session.New(nil)
			if _, err := s.Dispatch(t.Context(), session.ToolPermissions{Blocked: []string{"Read"}}); err != nil {
				t.Fatal(err)
			}
			resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), &drover.Options{
				Session: s, ToolTimeout: 200 * time.Millisecond, Settings: agent.Settings{DisallowedTools: []string{"WebFetch"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range recorded(s) {
				what, _, _ := strings.Cut(line, ":")
				got = append(got, what)
			}
			want := []string{
				"t01_bash Bash native success", "t02_exit Bash native error", "t03_write Write native success", "t04_edit Edit native error",
				"t05_unknown Nope native error", "t06_blocked Read native denied", "t07_arguments Write native error",
				"t08_good note bridged success", "t09_bad note bridged error", "t10_panic note bridged error", "t11_wrong note bridged error",
				"t12_time note bridged error", "t13_listed WebFetch native error", "t14_answer StructuredOutput native success",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"good"}, kept(s)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if text, _, _ := model.ToolResult("t06_blocked"); !strings.HasSuffix(text, "Tool Read blocked by session policy") {
				t.Errorf("the model reads %q", text)
			}
			if resp.Turns != 13 || resp.Stats.ToolCalls != len(want) || resp.Stats.Prompts != 1 || resp.Stats.HookErrors != 0 {
				t.Errorf("%d model calls and %+v", resp.Turns, resp.Stats)
			}
			for c := range session.Query[session.ToolInvoked](s).All() {
				if c.Duration <= 0 || c.Adapter != "claude-code" || c.Prompt != "demo:review" {
					t.Errorf("the record of %s is %+v", c.CallID, c)
				}
			}
		})
	}
}

// The CLI spells a server in the names of its tools with letters, digits, "_" and "-".
func TestToolServer_NameThatTheCLISpellsOtherwise(t *testing.T) {
	for name, o := range map[string]*drover.Options{
		"tools of the prompt are not named": {Settings: agent.Settings{Tools: []string{"Bash"}}},
		"one is named":                      {Settings: agent.Settings{Tools: []string{"mcp__my.tools__note"}}},
		"all are named":                     {Settings: agent.Settings{Tools: []string{"mcp__my.tools"}, DisallowedTools: []string{"mcp__my.tools__other"}}},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t,
				script.Reply(use("t1", "mcp__my_tools__note", script.Input{"text": "good"}), use("t2", "mcp__my_tools__gone", script.Input{})),
				script.Structured(fine)).RequireAllUsed()
			o.Session, o.ToolServer = session.New(nil), "my.tools"
			if _, err := drover.Evaluate(t.Context(), claudecode.New(claudetest.CLI(t).Options(model)), reviewPrompt(t), o); err != nil {
				t.Fatal(err)
			}
			got := recorded(o.Session)
			if len(got) != 3 || got[0] != "t1 note bridged success" || !strings.HasPrefix(got[1], "t2 gone bridged error") {
				t.Errorf("recorded are %q, want the calls of note and gone by their own names", got)
			}
			if diff := cmp.Diff([]string{"good"}, kept(o.Session)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// The shell is in the folder above the workspace, and what the model writes goes into it.
func TestRealCLI_PathsAreRewrittenIntoTheWorkspace(t *testing.T) {
	cli, dir := claudetest.CLI(t), t.TempDir()
	root := filepath.Join(dir, "inner")
	model := claudetest.NewModel(t,
		script.Reply(use("t1", "Write", script.Input{"file_path": "new.txt", "content": "x"})),
		script.Reply(use("t2", "Read", script.Input{"file_path": "new.txt"})),
		// The CLI looks for the file of an Edit before it asks anybody, so that only this finds it.
		script.Reply(use("t3", "Edit", script.Input{"file_path": filepath.Join(root, "new.txt"), "old_string": "x", "new_string": "y"})),
		script.Structured(fine),
	).RequireAllUsed()
	s := session.New(nil)
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dispatch(t.Context(), session.Workspace{Root: root}); err != nil {
		t.Fatal(err)
	}
	var judged []string
	watch := gate.Custom("watch", func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
		judged = append(judged, string(c.Input))
		return event.Decision{}, false
	})
	if _, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), &drover.Options{Session: s, Settings: agent.Settings{Dir: dir}, Policies: []gate.Policy{watch}}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(root, "new.txt")); err != nil || string(got) != "y" {
		t.Errorf("the file of the workspace is %q: %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
		t.Error("it was written beside the workspace")
	}
	for _, input := range judged[:3] {
		if !strings.Contains(input, filepath.Join(root, "new.txt")) {
			t.Errorf("the gate was asked about %s", input)
		}
	}
	files, _ := session.Query[session.ModifiedFiles](s).Latest()
	if _, ok := files.Get(filepath.Join(root, "new.txt")); !ok || files.Len() != 1 {
		t.Errorf("%d files are known to be modified", files.Len())
	}
	if !model.SawText("[Context] Working directory: " + root) {
		t.Error("the model did not receive its working directory")
	}
}

// The answer is refused until the file is there. What the model reads is the feedback, and what it did
// meanwhile is followed by feedback too.
func TestRealCLI_ContinuesUntilTheCheckPasses(t *testing.T) {
	for version, cli := range clis {
		t.Run(version, func(t *testing.T) {
			cli := cli(t)
			model := claudetest.NewModel(t,
				script.Reply(use("t1", script.StructuredOutputTool, fine)),
				script.Text("I would rather stop."),
				script.Text("Really."),
				script.Reply(use("t2", "Write", script.Input{"file_path": "out.txt", "content": "x"})),
				script.Reply(use("t3", script.StructuredOutputTool, fine)),
			)
			s := session.New(nil)
			resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), &drover.Options{
				Session: s, Completion: guard.AllOf(guard.FilesExist("out.txt"), guard.CommandSucceeds("grep", "x", "out.txt")),
				Feedback: []guard.FeedbackRule{{Provider: guard.StaticFeedback{As: "coach", Text: "well done"}, Trigger: guard.FeedbackTrigger{EveryCalls: 1}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if !resp.Completion.Done || resp.Rounds < 2 || resp.Output.Summary != "Fine." {
				t.Errorf("%+v after %d rounds, and the answer %+v", resp.Completion, resp.Rounds, resp.Output)
			}
			text, _, _ := model.ToolResult("t1")
			if !strings.Contains(text, "<blocker>\nYou are not done. Create these missing files: out.txt\n</blocker>") {
				t.Errorf("the model reads %q", text)
			}
			if !model.SawText("<feedback provider='coach'>\nwell done") {
				t.Error("the model was given no feedback")
			}
			want := []string{"t1 StructuredOutput native denied", "t2 Write native success", "t3 StructuredOutput native success"}
			got := recorded(s)
			for i, line := range got {
				got[i], _, _ = strings.Cut(line, ":")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A turn that is interrupted leaves a record of what it was at.
func TestRealCLI_InterruptedCallsAreRecorded(t *testing.T) {
	cli := claudetest.CLI(t)
	for name, x := range map[string]struct {
		call script.ToolCall
		want string
	}{
		"a command":    {use("t1", "Bash", script.Input{"command": "echo; sleep 20"}), "t1 Bash native cancelled"},
		"one of ours":  {use("t1", "mcp__drover__note", script.Input{"text": "a", "then": "wait"}), "t1 note bridged cancelled"},
		"one in doubt": {use("t1", "mcp__drover__ask", script.Input{}), "t1 ask bridged denied"},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Reply(x.call))
			s := session.New(nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := func() { time.AfterFunc(300*time.Millisecond, cancel) }
			opts := &drover.Options{Session: s, Policies: []gate.Policy{gate.AskTools("mcp__drover__ask")}, Approver: gate.ApproverFunc(func(ctx context.Context, _ gate.Question) (gate.Answer, error) {
				stop()
				<-ctx.Done()
				return gate.Answer{}, ctx.Err()
			})}
			asks := notes()
			asks.Name = "ask"
			run := drover.Stream(ctx, claudecode.New(cli.Options(model)), reviewPrompt(t, prompt.Markdown("task", "Task", "Go.").With(notes(), asks)), opts)
			for e := range run.Events() {
				if d, ok := e.Payload.(event.Decision); ok && d.Verdict == event.Allow {
					stop()
				}
			}
			if _, err := run.Response(); err == nil {
				t.Error("it succeeded")
			}
			if got := recorded(s); len(got) != 1 || !strings.HasPrefix(got[0], x.want) {
				t.Errorf("recorded %q, want %q", got, x.want)
			}
		})
	}
}

// Calls of a subagent are its own.
func TestRealCLI_CallsOfSubagentsAreDistinguished(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Reply(use("t2", "Bash", script.Input{"command": "echo inner"}), use("t3", "mcp__drover__note", script.Input{"text": "inner"})).When(script.IsSubagent()),
		script.Text("Found.").When(script.IsSubagent()),
		script.Reply(use("t1", "Agent", script.Input{"description": "look", "prompt": "Look.", "subagent_type": "general-purpose", "run_in_background": false})).When(script.Not(script.IsSubagent())),
		script.Structured(fine).When(script.Not(script.IsSubagent())),
	).RequireAllUsed()
	s := session.New(nil)
	resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), &drover.Options{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	started, _ := session.Query[drover.SubagentStarted](s).Latest()
	stopped, _ := session.Query[drover.SubagentStopped](s).Latest()
	if started.ID == "" || stopped.ID != started.ID || stopped.Text != "Found." || resp.Stats.Subagents != 1 || resp.Turns != 2 {
		t.Errorf("%+v, %+v, %+v, %d model calls of the main agent", started, stopped, resp.Stats, resp.Turns)
	}
	agents := map[string]string{}
	for c := range session.Query[session.ToolInvoked](s).All() {
		agents[string(c.CallID)] = c.AgentID
	}
	if len(agents) != 4 || agents["t1"] != "" || agents["t2"] != started.ID || agents["t3"] != started.ID {
		t.Errorf("the calls are of %q, want t2 and t3 of %s", agents, started.ID)
	}
}

// A mode that the adapter was given is not set aside by a gate that decides nothing. Tools of the prompt
// are not the mode's to forbid.
func TestRealCLI_PermissionModeIsEnforced(t *testing.T) {
	cli := claudetest.CLI(t)
	for _, x := range []struct {
		mode     claude.PermissionMode
		policies []gate.Policy
		want     string
	}{
		{"", nil, "success"},
		{claude.ModeBypassPermissions, nil, "success"},
		{claude.ModeAcceptEdits, nil, "success"},
		{claude.ModeDontAsk, nil, "denied"},
		{claude.ModeDontAsk, []gate.Policy{gate.Rules(gate.RuleOptions{Allow: []string{"Write"}})}, "success"},
	} {
		name := string(x.mode)
		if x.policies != nil {
			name += " and a policy that allows it"
		}
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t,
				script.Reply(use("t1", "Write", script.Input{"file_path": "a.txt", "content": "x"}), use("t2", "mcp__drover__note", script.Input{"text": "a"})),
				script.Structured(fine),
			).RequireAllUsed()
			s := session.New(nil)
			opts := cli.Options(model)
			opts.PermissionMode = x.mode
			if _, err := drover.Evaluate(t.Context(), claudecode.New(opts), reviewPrompt(t), &drover.Options{Session: s, Policies: x.policies}); err != nil {
				t.Fatal(err)
			}
			if got := recorded(s); !strings.HasPrefix(got[0], "t1 Write native "+x.want) || got[1] != "t2 note bridged success" {
				t.Errorf("recorded %q, want that Write is a %s", got, x.want)
			}
		})
	}
}

// Only the gateway counts.
func TestRealCLI_UsageIsCountedOnce(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Structured(fine).Metered(script.Usage{Input: 1000, Output: 10}))
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 100_000})
	if _, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t), &drover.Options{Tracker: tracker}); err != nil {
		t.Fatal(err)
	}
	if got := tracker.Consumed().TotalTokens(); got != 1010 {
		t.Errorf("%d tokens are counted, want 1010", got)
	}
}

func greeting(t testing.TB) *prompt.Section {
	t.Helper()
	more := hidden()
	files := fstest.MapFS{"greeter/SKILL.md": {Data: []byte("---\nname: greeter\ndescription: Says how to greet people.\n---\nGreet people by their first name.\n")}}
	skill, err := prompt.LoadSkillFS(files, "greeter")
	if err != nil {
		t.Fatal(err)
	}
	more.Skills = []*prompt.Skill{skill}
	return more
}

func TestRealCLI_OpenedSectionIsAvailable(t *testing.T) {
	cli := claudetest.CLI(t)
	for _, restart := range []bool{false, true} {
		name := map[bool]string{false: "in the run", true: "by a restart"}[restart]
		t.Run(name, func(t *testing.T) {
			open := script.Reply(use("t1", "mcp__drover__"+prompt.OpenSections, script.Input{"section_keys": []string{"more"}, "reason": "curious"}))
			model := claudetest.NewModel(t, open,
				script.Reply(use("t2", "mcp__drover__extra", script.Input{}), use("t3", "Skill", script.Input{"skill": "greeter"})),
				script.Reply(use("t4", "WebFetch", script.Input{"url": "http://x.example", "prompt": "p"})),
				script.Structured(fine),
			).RequireAllUsed()
			s := session.New(nil)
			resp, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t, prompt.Markdown("task", "Task", "Review."), greeting(t)), &drover.Options{Session: s, RestartToOpen: restart})
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{false: 0, true: 1}[restart]; resp.Expansions != want {
				t.Errorf("%d expansions, want %d", resp.Expansions, want)
			}
			got := recorded(s)
			for i, line := range got {
				got[i], _, _ = strings.Cut(line, ":")
			}
			if !slices.Contains(got, "t2 extra bridged success") || !slices.Contains(got, "t3 Skill native success") || !slices.Contains(got, "t4 WebFetch native denied") || len(got) != 5 {
				t.Errorf("recorded %q", recorded(s))
			}
			if !model.SawText("Greet people by their first name.") {
				t.Error("the model has not read the skill")
			}
		})
	}
}
