// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/launch"
)

// refusingSpawner fails the test if anything is started.
type refusingSpawner struct{ t testing.TB }

func (s refusingSpawner) Spawn(_ context.Context, cmd claude.Command) (claude.Process, error) {
	s.t.Errorf("%s was started with %q", cmd.Path, cmd.Args)
	return nil, errors.New("nothing may be started")
}

// commandOf is the command that options lead to.
func commandOf(t *testing.T, change func(*claude.Options)) claude.Command {
	t.Helper()
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.UntilEOF()
	})
	opts := cli.Options()
	change(opts)
	claudetest.Connect(t, opts)
	return cli.Commands()[0]
}

// variable is the value of a variable of a command, and whether it is set.
func variable(cmd claude.Command, name string) (string, bool) {
	for _, entry := range cmd.Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// A value that starts with a dash becomes a flag where flag and value are two arguments: a title of
// a session could then switch off all permissions.
func TestPitfall48_ValuesCannotBecomeFlags(t *testing.T) {
	const evil = "--dangerously-skip-permissions"
	cmd := commandOf(t, func(o *claude.Options) {
		o.Model, o.FallbackModels, o.Betas = evil, []string{evil + "x"}, []string{evil}
		o.Agent, o.Resume, o.ResumeAt = evil, evil, evil
		o.Tools, o.AllowedTools, o.DisallowedTools = []string{evil}, []string{evil}, []string{evil}
		o.PermissionPromptTool, o.MCPConfig, o.SettingsFile, o.DebugFile = evil, evil, evil, evil
		o.AddDirs, o.Plugins = []string{evil}, []claude.Plugin{{Path: evil}}
		o.SystemPrompt = claude.PromptFile{Path: evil}
	})
	for _, arg := range cmd.Args {
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, evil) || !strings.HasPrefix(arg, "--") {
			t.Errorf("argument %q does not belong to its flag", arg)
		}
	}
	if n := strings.Count(strings.Join(cmd.Args, "\n"), evil); n < 14 {
		t.Errorf("only %d of the values are in %q", n, cmd.Args)
	}

	cli := claudetest.CLI(t)
	opts := cli.Options(claudetest.NewModel(t))
	opts.Resume = "--version"
	_, err := claude.Connect(t.Context(), opts)
	if failed, ok := errors.AsType[*claude.ResultError](err); !ok {
		t.Errorf("resuming %q: %v, want the CLI to look for a session of that name", opts.Resume, err)
	} else if !strings.Contains(failed.Text(), "--version") {
		t.Errorf("resuming %q: %q does not name it", opts.Resume, failed.Text())
	}
}

// Skills become rules in a list of allowed tools, so that a name with a bracket and a comma could
// allow anything.
func TestPitfall49_SkillNamesCannotCarryRules(t *testing.T) {
	for _, name := range []string{"x),Bash(*", "", "*", "a:*", "/a", "a\nb", " a"} {
		opts := &claude.Options{Skills: &claude.Skills{Names: []string{"fine", name}}, Spawner: refusingSpawner{t}}
		_, err := claude.Connect(t.Context(), opts)
		if o, ok := errors.AsType[*claude.OptionError](err); !ok || o.Option != "Skills.Names[1]" {
			t.Errorf("skill %q: %v, want an OptionError for Skills.Names[1]", name, err)
		}
	}
	cmd := commandOf(t, func(o *claude.Options) { o.Skills = &claude.Skills{Names: []string{"review", "plug:ps"}} })
	if !slices.Contains(cmd.Args, "--allowedTools=Skill(review),Skill(plug:ps)") {
		t.Errorf("arguments %q lack the rules of good names", cmd.Args)
	}
}

// No settings files and the usual settings files are different wishes. Where an empty list is taken
// for "not set", a client that wanted none gets the user's; the other way round it loses them.
func TestPitfall51_NoSettingSourcesIsNotTheDefault(t *testing.T) {
	for _, tt := range []struct {
		sources []string
		want    string // empty: no flag
		reads   bool
	}{{nil, "", true}, {[]string{}, "--setting-sources=", false}, {[]string{"user"}, "--setting-sources=user", true}} {
		t.Run(fmt.Sprintf("%#v", tt.sources), func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, script.Text("ok"))
			const memory = "The user's own instructions mention a walrus."
			if err := os.WriteFile(filepath.Join(cli.Config, "CLAUDE.md"), []byte(memory), 0o600); err != nil {
				t.Fatal(err)
			}
			opts := cli.Options(model)
			opts.SettingSources = tt.sources
			turn(t, claudetest.Connect(t, opts), "hi")
			if got := model.SawText("walrus"); got != tt.reads {
				t.Errorf("the model saw the user's instructions: %t, want %t", got, tt.reads)
			}
			cmd := commandOf(t, func(o *claude.Options) { o.SettingSources = tt.sources })
			flags := slices.DeleteFunc(slices.Clone(cmd.Args), func(a string) bool { return !strings.HasPrefix(a, "--setting-sources") })
			if got := strings.Join(flags, " "); got != tt.want {
				t.Errorf("flag %q, want %q", got, tt.want)
			}
		})
	}
}

// Adaptive thinking is not a number of tokens, and no thinking is not a budget of none.
func TestPitfall52_ThinkingFlags(t *testing.T) {
	for _, tt := range []struct {
		name     string
		thinking *claude.Thinking
		want     string
	}{
		{"not set", nil, ""},
		{"adaptive", &claude.Thinking{}, "--thinking=adaptive"},
		{"adaptive, shown", &claude.Thinking{Display: "summarized"}, "--thinking=adaptive --thinking-display=summarized"},
		{"budget", &claude.Thinking{BudgetTokens: 2048}, "--max-thinking-tokens=2048"},
		{"disabled", &claude.Thinking{Disabled: true}, "--thinking=disabled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := commandOf(t, func(o *claude.Options) { o.Thinking = tt.thinking })
			flags := slices.DeleteFunc(slices.Clone(cmd.Args), func(a string) bool { return !strings.Contains(a, "thinking") })
			if got := strings.Join(flags, " "); got != tt.want {
				t.Errorf("flags %q, want %q", got, tt.want)
			}
		})
	}
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("ok"))
	opts := cli.Options(model)
	opts.Model, opts.Thinking = "claude-sonnet-4-5", &claude.Thinking{BudgetTokens: 2048}
	turn(t, claudetest.Connect(t, opts), "hi")
	if got := model.LastRequest().Thinking; got.Type != "enabled" || got.BudgetTokens != 2048 {
		t.Errorf("the model was asked to think %+v, want a budget of 2048", got)
	}
}

// Definitions of agents are larger than a command line may be on some systems. They must go another
// way, whatever their size.
func TestPitfall53_LargeAgentsDoNotFillTheCommandLine(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("ok"))
	opts := cli.Options(model)
	opts.Agents = map[string]claude.AgentDefinition{}
	for i := range 64 {
		opts.Agents[fmt.Sprintf("agent-%02d", i)] = claude.AgentDefinition{Description: "one of many", Prompt: strings.Repeat("long prompt ", 4000)}
	}
	c := claudetest.Connect(t, opts) // 3 MB: more than Linux takes in all arguments together
	known := 0
	for _, a := range c.Initialized().Agents {
		if strings.HasPrefix(a.Name, "agent-") {
			known++
		}
	}
	if known != 64 {
		t.Errorf("the CLI knows %d of 64 agents", known)
	}
	if end, _ := turn(t, c, "hi"); end.Answer.Result != "ok" {
		t.Errorf("answer %q", end.Answer.Result)
	}
}

// A CLI that finds CLAUDECODE in its environment believes that it runs inside another one.
func TestPitfall54_NestedMarkIsRemoved(t *testing.T) {
	t.Setenv("CLAUDECODE", "1")
	t.Setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
	for name, env := range map[string]claude.Env{
		"inherited": claude.InheritEnv(nil),
		"given":     claude.ExactEnv(map[string]string{"CLAUDECODE": "1"}),
	} {
		cmd := commandOf(t, func(o *claude.Options) { o.Env = env })
		if value, ok := variable(cmd, "CLAUDECODE"); ok {
			t.Errorf("%s: CLAUDECODE=%s reached the CLI", name, value)
		}
		if value, _ := variable(cmd, "CLAUDE_CODE_ENTRYPOINT"); value != "sdk-go" {
			t.Errorf("%s: entrypoint %q, want our own", name, value)
		}
	}
}

// A trace state belongs to its trace parent. A new parent beside the inherited state ties two
// traces together that have nothing to do with one another.
func TestPitfall55_TraceContextIsReplacedAsAPair(t *testing.T) {
	t.Setenv("TRACEPARENT", "old-parent")
	t.Setenv("TRACESTATE", "old-state")
	for _, tt := range []struct{ name, parent, state, wantParent, wantState string }{
		{"inherited", "", "", "old-parent", "old-state"},
		{"new parent alone", "new-parent", "", "new-parent", ""},
		{"new pair", "new-parent", "new-state", "new-parent", "new-state"},
	} {
		cmd := commandOf(t, func(o *claude.Options) {
			o.Env, o.TraceParent, o.TraceState = claude.InheritEnv(nil), tt.parent, tt.state
		})
		parent, _ := variable(cmd, "TRACEPARENT")
		state, _ := variable(cmd, "TRACESTATE")
		if parent != tt.wantParent || state != tt.wantState {
			t.Errorf("%s: %q and %q, want %q and %q", tt.name, parent, state, tt.wantParent, tt.wantState)
		}
	}
	if _, err := claude.Connect(t.Context(), &claude.Options{TraceState: "alone", Spawner: refusingSpawner{t}}); err == nil {
		t.Errorf("a trace state without its parent was accepted")
	}
}

// The operating system says "no such file" for a working directory that is missing and for a program
// that is: the error must name which.
func TestPitfall56_MissingDirectoryIsNotAMissingCLI(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t)
	opts := cli.Options(model)
	opts.Dir = filepath.Join(cli.Work, "gone")
	_, err := claude.Connect(t.Context(), opts)
	if !errors.Is(err, launch.ErrWorkingDir) || errors.Is(err, claude.ErrCLINotFound) || !strings.Contains(advice.Text(err), opts.Dir) {
		t.Errorf("missing directory: %v, want ErrWorkingDir with its path", err)
	}
	opts = cli.Options(model)
	opts.CLIPath = filepath.Join(cli.Work, "claude")
	_, err = claude.Connect(t.Context(), opts)
	if !errors.Is(err, claude.ErrCLINotFound) || errors.Is(err, launch.ErrWorkingDir) || !strings.Contains(advice.Text(err), "npm install") {
		t.Errorf("missing CLI: %v, want ErrCLINotFound and how to install it", err)
	}
}

// Looking for the CLI and asking for its version before each start costs more than the start, and
// repeats its warnings. Connect starts the CLI once and asks nothing beforehand.
func TestPitfall57_TheCLIIsStartedOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program that counts its starts is a shell script: run on Linux or macOS")
	}
	dir := t.TempDir()
	counter, path := filepath.Join(dir, "starts"), filepath.Join(dir, "claude")
	text := "#!/bin/sh\necho \"$#\" >> '" + counter + "'\necho not today >&2\nexit 3\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(claude.EnvCLI, path) // found, not given
	_, err := claude.Connect(t.Context(), nil)
	if ended, ok := errors.AsType[*claude.ProcessError](err); !ok || ended.Status.Code != 3 || !strings.Contains(advice.Text(err), "not today") {
		t.Errorf("Connect: %v, want a ProcessError with the output of the program", err)
	}
	starts, err := os.ReadFile(counter)
	if err != nil || strings.Count(string(starts), "\n") != 1 {
		t.Errorf("the program was started %d times (%v), want once", strings.Count(string(starts), "\n"), err)
	}
}
