// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

// configured makes a runner of a configuration.
func configured(t testing.TB, c claudecode.Config) *agent.Runner {
	t.Helper()
	adapter, err := claudecode.FromConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := agent.NewRunner(adapter, nil)
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

// Fields whose zero value stands for something else, as the seeds have it, seen in one run of the real CLI
// with nothing configured. Its hooks try to go on after the structured answer.
func TestConfig_ZeroValueDefaults(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Structured(script.Input{"colour": "red"}), script.Text("More.").Always())
	base := cli.Options(model)
	base.SettingSources = nil
	var stops int
	base.Hooks = []claude.Hook{
		claude.On("StructuredOutput", func(context.Context, *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
			return &claude.PostToolUseOutput{HookControl: claude.HookControl{Decision: claude.DecisionBlock, Reason: "go on"}, AdditionalContext: "go on"}, nil
		}),
		claude.On("", func(context.Context, *claude.StopInput) (*claude.StopOutput, error) {
			stops++
			return claude.BlockStop("go on"), nil
		}),
	}
	got := record(t, configured(t, claudecode.Config{Base: base}).Run(inTime(t), agent.Request{
		Prompt: "go", OutputSchema: []byte(`{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}`),
	}))
	got.check(t)
	asked := model.Requests()
	protections := of[isolation.Protection](got)
	if len(asked) == 0 || len(protections) != 1 {
		t.Fatalf("the model was asked %d times, with %d reports of protection", len(asked), len(protections))
	}
	for _, row := range []struct {
		ids       string
		what      string
		got, want any
	}{
		{"S000-070 S001-079 S003-012", "permission_mode", got.mode(t), "bypassPermissions"},
		{"S000-074 S003-017", "stop_on_structured_output: calls of the model, although hooks answer to go on", len(asked), 1},
		{"S000-074 S003-017", "stop_on_structured_output: the output", string(got.done(t).Output), `{"colour":"red"}`},
		{"S003-018 S003-066 S000-129", "isolation and its sandbox", protections[0].Level, isolation.LevelCell},
		{"S003-024 S003-176", "model", asked[0].Model, "claude-opus-4-6"},
		{"S003-025 S003-029", "reasoning", asked[0].Effort(), "high"},
		{"S001-086", "include_partial_messages: pieces of text", len(of[event.TextDelta](got)), 0},
		{"S001-201", "allowed_tools: Bash, Read and Write are there", hasAll(got.init(t).Tools, "Bash", "Read", "Write"), true},
	} {
		if diff := cmp.Diff(row.want, row.got); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", row.ids, row.what, diff)
		}
	}
	if stops == 0 {
		t.Error("the hook at the end was not asked, so that nothing is shown about it")
	}
}

func hasAll(list []string, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}

// An effect is how it shows that a field of a configuration counts.
type effect struct {
	refused *claudecode.Config // a configuration in which it is refused
	wants   []string           // what the error says
	seenIn  string             // or the test in which it is seen at work
}

var effects = map[string]effect{
	"Base":           {seenIn: "TestConfig_EveryFieldTakesEffect"},
	"PermissionMode": {seenIn: "TestConfig_EveryFieldTakesEffect"},
	"AddDirs":        {seenIn: "TestConfig_EveryFieldTakesEffect"},
	"Env":            {seenIn: "TestConfig_EveryFieldTakesEffect"},
	"SettingSources": {refused: &claudecode.Config{SettingSources: []string{"user", "project"}}, wants: []string{"Config.SettingSources", "project", "can write"}},
	"Sandbox":        {seenIn: "TestConfig_EveryFieldTakesEffect"},
	"ShowStderr":     {seenIn: "TestConfig_StandardErrorIsShownOnRequest"},
	"Isolation":      {seenIn: "TestConfig_EveryFieldTakesEffect"},
	"Betas":          {seenIn: "TestConfig_EveryFieldTakesEffect"},
	"NoTranscript":   {seenIn: "TestConfig_DefaultsOfRequests"},
	"MaxTokens":      {seenIn: "TestConfig_EveryFieldTakesEffect"},

	"ContinueAfterOutput": {refused: &claudecode.Config{ContinueAfterOutput: true}, wants: []string{"Config.ContinueAfterOutput", "ends the turn"}},
	"Temperature":         refusedModel(claudecode.Config{Temperature: new(0.5)}, "Temperature"),
	"TopP":                refusedModel(claudecode.Config{TopP: new(0.5)}, "TopP"),
	"Seed":                refusedModel(claudecode.Config{Seed: new(int64(0))}, "Seed"),
	"Stop":                refusedModel(claudecode.Config{Stop: []string{}}, "Stop"),
	"PresencePenalty":     refusedModel(claudecode.Config{PresencePenalty: new(0.0)}, "PresencePenalty"),
	"FrequencyPenalty":    refusedModel(claudecode.Config{FrequencyPenalty: new(0.1)}, "FrequencyPenalty"),
}

func refusedModel(c claudecode.Config, name string) effect {
	return effect{refused: &c, wants: []string{"Config: ", ": " + name + "\n"}}
}

// A new field has to be thought of.
func TestConfig_EveryFieldIsUsedOrRefused(t *testing.T) {
	for field := range reflect.TypeFor[claudecode.Config]().Fields() {
		effect, known := effects[field.Name]
		switch {
		case !known:
			t.Errorf("no test shows that Config.%s has an effect", field.Name)
		case effect.refused != nil:
			wantRefused(t, *effect.refused, effect.wants...)
		}
	}
}

func wantRefused(t *testing.T, c claudecode.Config, wants ...string) {
	t.Helper()
	_, err := claudecode.FromConfig(c)
	for _, want := range wants {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("the error is %v, want it to say %q", err, want)
		}
	}
}

// One run with nearly everything that can be configured, seen from the CLI, from a command in the cell and from
// the model.
func TestConfig_EveryFieldTakesEffect(t *testing.T) {
	cli := claudetest.CLI(t)
	dir, added, readable := filepath.Join(cli.Work, "below"), t.TempDir(), filepath.Join(t.TempDir(), "read.txt")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(readable, []byte("what is readable"), 0o600); err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t,
		script.Reply(
			script.TextBlock{Text: "Looking."},
			bash("echo env $FROM_CLIENT $FROM_BOTH $FROM_ISOLATION; cat "+readable+"; touch "+added+"/touched"),
			script.ToolCall{Name: "mcp__drover__look"},
		),
		script.Reply(bash("true")), script.Text("Done.").Always())
	base := cli.Options(model)
	cli.SetEnv(base, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	base.Dir = ""
	var ran []string
	got := record(t, configured(t, claudecode.Config{
		PermissionMode: claude.ModeAcceptEdits, AddDirs: []string{added},
		Env:     map[string]string{"FROM_CLIENT": "client", "FROM_BOTH": "client"},
		Sandbox: &claude.Sandbox{Filesystem: &claude.SandboxFilesystem{AllowRead: []string{readable}}},
		Isolation: &isolation.Isolation{
			Gateway: impatient, Env: map[string]string{"FROM_BOTH": "isolation", "FROM_ISOLATION": "isolation"},
		},
		Betas: []string{"some-beta-2026"}, MaxTokens: 12345, Base: base,
	}).Run(inTime(t), agent.Request{Prompt: "go", Registry: desk(t, &ran), Settings: agent.Settings{
		Dir: dir, Model: "us.anthropic.claude-sonnet-5", Effort: "max", MaxTurns: 2, PartialText: true,
		Tools: []string{"Bash", "Read", "Glob", "mcp__drover"}, DisallowedTools: []string{"Glob"},
	}}))
	got.check(t)
	asked := model.Requests()
	if len(asked) == 0 {
		t.Fatalf("the model was not asked: %+v", got.done(t))
	}
	first := asked[0]
	_, touched := os.Stat(filepath.Join(added, "touched"))
	for _, row := range []struct {
		what      string
		got, want any
	}{
		{"the mode", got.mode(t), "acceptEdits"},
		{"the working directory", got.init(t).Dir, dir},
		{"the tools", slices.Sorted(slices.Values(got.init(t).Tools)), []string{"Bash", "Read", "mcp__drover__look", "mcp__drover__save"}},
		{"our tool ran", ran, []string{"look"}},
		{"variables reach the command", model.SawText("env client isolation isolation"), true},
		{"the readable file", model.SawText("what is readable"), true},
		{"the added folder can be written", touched, error(nil)},
		{"the limit of turns", got.done(t).Status, event.DoneMaxTurns},
		{"text comes in pieces", len(of[event.TextDelta](got)) > 0, true},
		{"the beta", slices.Contains(first.Betas(), "some-beta-2026"), true},
		{"the model", first.Model, "claude-sonnet-5"},
		{"the effort", first.Effort(), "max"},
		{"the length of an answer", first.MaxTokens, 12345},
	} {
		if diff := cmp.Diff(row.want, row.got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", row.what, diff)
		}
	}
}

// The gateway keeps the budget of Base; a request may have one of its own in its place.
func TestConfig_BudgetOfBaseIsKept(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(bash("true")).Metered(script.Usage{Input: 1_000_000, Output: 1000}), script.Text("Done.").Always())
	base := cli.Options(model)
	base.MaxBudgetUSD = new(0.01)
	got := record(t, configured(t, claudecode.Config{Base: base}).Run(inTime(t), agent.Request{Prompt: "go"}))
	if got.done(t).Status != event.DoneMaxBudget {
		t.Errorf("the run ends with %+v, want the budget to be spent", got.done(t))
	}
}

func TestConfig_StandardErrorIsShownOnRequest(t *testing.T) {
	for name, show := range map[string]bool{"S000-073 S003-016: not by default": false, "shown": true} {
		t.Run(name, func(t *testing.T) {
			var own []string
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Stderr("bun: a complaint")
				s.Initialize(`{"claude_code_version":"` + claude.PinnedVersion + `"}`)
				s.Turn("Done.")
				s.UntilEOF()
			})
			base := cli.Options()
			base.Stderr = func(line string) { own = append(own, line) }
			text := stderrOf(t, func() {
				got := record(t, configured(t, claudecode.Config{Base: base, ShowStderr: show}).Run(inTime(t), agent.Request{Prompt: "go"}))
				got.done(t)
			})
			if strings.Contains(text, "bun: a complaint") != show || !slices.Equal(own, []string{"bun: a complaint"}) {
				t.Errorf("standard error has %q, and Base received %q", text, own)
			}
		})
	}
}

// stderrOf is what this program writes to standard error during f.
func stderrOf(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = before }()
	f()
	w.Close()
	text, _ := io.ReadAll(r)
	return string(text)
}

// All problems are reported at once, and those of the model in one sentence, sorted.
func TestConfig_RefusesAllProblemsAtOnce(t *testing.T) {
	wantRefused(t, claudecode.Config{
		ContinueAfterOutput: true, MaxTokens: -1,
		Seed: new(int64(1)), Stop: []string{"x"}, PresencePenalty: new(1.0), FrequencyPenalty: new(1.0), TopP: new(0.9), Temperature: new(0.1),
	}, "Config.ContinueAfterOutput", "Config.MaxTokens", "these on: FrequencyPenalty, PresencePenalty, Seed, Stop, Temperature, TopP\n")
}

func TestConfig_InvalidFieldsAreRefusedByName(t *testing.T) {
	type config = claudecode.Config
	spawned := &claude.Options{Spawner: claude.HostSpawner{}}
	for name, test := range map[string]struct {
		config claudecode.Config
		wants  []string
	}{
		"an invalid mode":              {config{PermissionMode: "yolo"}, []string{"Config.PermissionMode", `"yolo"`, "default, acceptEdits, plan, bypassPermissions"}},
		"local settings":               {config{SettingSources: []string{"local"}}, []string{"Config.SettingSources", "local"}},
		"an unknown source":            {config{SettingSources: []string{"mine"}}, []string{"Config.SettingSources", `"mine"`}},
		"a credential as a variable":   {config{Env: map[string]string{"ANTHROPIC_API_KEY": "x"}}, []string{"Config.Env", "ANTHROPIC_API_KEY", "Isolation.APIKey"}},
		"a sandbox twice":              {config{Sandbox: &claude.Sandbox{}, Isolation: &isolation.Isolation{Sandbox: &isolation.Sandbox{}}}, []string{"Config.Sandbox", "Isolation"}},
		"an invalid sandbox":           {config{Sandbox: &claude.Sandbox{Filesystem: &claude.SandboxFilesystem{DenyRead: []string{"/"}}}}, []string{"Config.Sandbox", "DenyRead"}},
		"a sandbox with a spawner":     {config{Base: spawned, Sandbox: &claude.Sandbox{}}, []string{"Config.Isolation", "Spawner"}},
		"a negative length":            {config{MaxTokens: -1}, []string{"Config.MaxTokens"}},
		"two modes":                    {config{Base: &claude.Options{PermissionMode: claude.ModePlan}, PermissionMode: claude.ModeDefault}, []string{"Config.PermissionMode", "plan"}},
		"an effort of Base":            {config{Base: &claude.Options{Model: "claude-opus-4-5", Effort: claude.EffortMax}}, []string{"Config.Base", "claude-opus-4-5", `"max"`}},
		"a Base that is wrong itself":  {claudecode.Config{Base: &claude.Options{TaskBudget: -1}}, []string{"Config", "TaskBudget"}},
		"a folder that there is not":   {config{AddDirs: []string{"/nowhere/at/all"}}, []string{"AddDirs[0]", "/nowhere/at/all"}},
		"a beta that would become two": {config{Betas: []string{"a,b"}}, []string{"Betas[0]"}},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, test.config, test.wants...) })
	}
}

// Settings that are equal in Base and in the Config are no conflict.
func TestConfig_EqualSettingsInBaseAreNotAConflict(t *testing.T) {
	_, err := claudecode.FromConfig(claudecode.Config{
		Base:           &claude.Options{PermissionMode: claude.ModePlan},
		PermissionMode: claude.ModePlan, SettingSources: []string{},
	})
	if err != nil {
		t.Error(err)
	}
}
