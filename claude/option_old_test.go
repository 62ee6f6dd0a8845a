// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// What an old CLI lacks ends in an error that names the option, whether the CLI refuses it or would
// ignore it.
func TestOldCLI_UnsupportedOptionIsAnError(t *testing.T) {
	cli := claudetest.OldestCLI(t)
	model := claudetest.NewModel(t)
	for _, row := range optionRows() {
		if !row.tooOld || strings.HasPrefix(row.field, "Prompt.") {
			continue
		}
		t.Run(row.field, func(t *testing.T) {
			o := cli.Options(model)
			row.forms[0].set(o)
			plant(t, cli, o)
			err := connectError(t, o)
			if !errors.Is(err, claude.ErrTooOld) {
				t.Fatalf("got %v, want ErrTooOld", err)
			}
			name := row.field[strings.LastIndex(row.field, ".")+1:]
			if e, ok := errors.AsType[*claude.OptionError](err); !ok || !namesOption(e, row.field, name) || !strings.Contains(advice.Text(err), claude.PinnedVersion) && !strings.Contains(advice.Text(err), "supported") {
				t.Errorf("got %v, want an OptionError for %s and the version to use", err, name)
			}
		})
	}
}

// namesOption reports whether an error is about a field, by its own name or that of its parent.
func namesOption(e *claude.OptionError, field, name string) bool {
	parents := map[string]string{"SandboxSecret.Mode": "EnvVars", "AgentDefinition.ObserverMessage": "Observer", "Hook.OnFailure": "Hooks"}
	return strings.Contains(e.Option, name) || parents[field] != "" && strings.Contains(e.Option, parents[field])
}

// plant makes the files that the options name.
func plant(t *testing.T, cli *claudetest.RealCLI, o *claude.Options) {
	t.Helper()
	for i := range o.Plugins {
		o.Plugins[i].Path = filepath.Join(cli.Root, "plugin")
		if err := os.MkdirAll(o.Plugins[i].Path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if o.ProjectConfigRoot != "" {
		o.ProjectConfigRoot = cli.Root
	}
}

// connectError is why options cannot be used to connect.
func connectError(t *testing.T, o *claude.Options) error {
	t.Helper()
	c, err := claude.Connect(t.Context(), o)
	if err == nil {
		_ = c.Close()
		t.Fatal("Connect succeeded")
	}
	return err
}

func TestOldCLI_VerbatimPromptIsAnError(t *testing.T) {
	cli := claudetest.OldestCLI(t)
	c := claudetest.Connect(t, cli.Options(claudetest.NewModel(t)))
	err := c.Send(t.Context(), claude.Prompt{Text: "/compact", Verbatim: true})
	if e, ok := errors.AsType[*claude.OptionError](err); !errors.Is(err, claude.ErrTooOld) || !ok || e.Option != "Prompt.Verbatim" {
		t.Errorf("got %v, want ErrTooOld for Prompt.Verbatim", err)
	}
}

// A value that a newer CLI knows is an error too, and so is a flag of the caller's own.
func TestOldCLI_UnknownValueOrFlagIsAnError(t *testing.T) {
	cli := claudetest.OldestCLI(t)
	model := claudetest.NewModel(t)
	for name, c := range map[string]struct {
		set    func(o *claude.Options)
		option string
		old    bool
	}{
		"display": {func(o *claude.Options) { o.Thinking = &claude.Thinking{Display: "highlights"} }, "Thinking.Display", true},
		"mode":    {func(o *claude.Options) { o.PermissionMode = "manual" }, "PermissionMode", true},
		"extra":   {func(o *claude.Options) { o.ExtraArgs = []string{"--autocompact=auto"} }, "ExtraArgs[0]", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := cli.Options(model)
			c.set(o)
			err := connectError(t, o)
			e, ok := errors.AsType[*claude.OptionError](err)
			if !ok || e.Option != c.option || errors.Is(err, claude.ErrTooOld) != c.old {
				t.Errorf("got %v, want an OptionError for %s, too old: %v", err, c.option, c.old)
			}
			if ended, ok := errors.AsType[*claude.ProcessError](err); !ok || ended.Status.Code != 1 || !strings.Contains(advice.Text(err), "standard error") {
				t.Errorf("got %v, want the CLI's own words too", err)
			}
		})
	}
}

// If the CLI does not know a flag, the error names the option that wrote it.
func TestUnknownFlag_ErrorNamesTheOption(t *testing.T) {
	for _, row := range optionRows() {
		args := slices.DeleteFunc(slices.Clone(row.forms[0].wire.args), func(arg string) bool { return arg == "--await-initialize" }) // of all that resume
		if len(args) == 0 || row.field == "Options.ExtraArgs" {
			continue
		}
		t.Run(row.field, func(t *testing.T) {
			flag, _, _ := strings.Cut(args[len(args)-1], "=")
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Stderr("error: unknown option '" + args[len(args)-1] + "'")
				s.Exit(1)
			})
			o := cli.Options()
			row.forms[0].set(o)
			err := connectError(t, o)
			e, ok := errors.AsType[*claude.OptionError](err)
			if !ok || !errors.Is(err, claude.ErrTooOld) {
				t.Fatalf("got %v, want ErrTooOld and an OptionError", err)
			}
			if !optionMatches(e.Option, row.field) {
				t.Errorf("%s is reported to be of %s, want %s", flag, e.Option, row.field)
			}
		})
	}
}

// optionMatches reports whether an option's name, or list of names, covers a field of the table.
func optionMatches(option, field string) bool {
	typ, name, _ := strings.Cut(field, ".")
	owners := map[string]string{"Thinking": "Thinking", "Skills": "Skills", "Plugin": "Plugins", "PromptFile": "SystemPrompt", "MCPStdio": "MCPServers", "MCPHTTP": "MCPServers", "MCPSSE": "MCPServers"}
	if strings.HasPrefix(typ, "Sandbox") {
		return strings.Contains(option, "Sandbox")
	}
	if owner, ok := owners[typ]; ok {
		return strings.Contains(option, owner)
	}
	if strings.HasPrefix(name, "Store") {
		name = "Store"
	}
	return strings.Contains(option, name)
}

// The CLI continues with its own agent if no agent has the name; the client returns an error.
func TestOptionAgent_UnknownAgentIsRefused(t *testing.T) {
	cli := claudetest.CLI(t)
	o := cli.Options(claudetest.NewModel(t))
	o.Agent = "nobody"
	err := connectError(t, o)
	if e, ok := errors.AsType[*claude.OptionError](err); !ok || e.Option != "Agent" || !strings.Contains(advice.Text(err), "general-purpose") {
		t.Errorf("got %v, want an OptionError for Agent that names those there are", err)
	}
}
