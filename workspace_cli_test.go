// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

type refactorResult struct {
	Summary string `json:"summary"`
}

// The usage example of the workspace section: section, prompt, adapter, session, and nothing that names a folder.
func TestWorkspace_SectionOfThePromptIsUsed(t *testing.T) {
	cli := claudetest.CLI(t)
	project := t.TempDir()
	for name, text := range map[string]string{"src/app.py": "print(1)", "src/deep/more.py": "print(2)", "src/app.md": "no", "tests/test_app.py": "print(3)", "tests/data.py": "no"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(project, name)), 0o755), os.WriteFile(filepath.Join(project, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(project)

	s := session.New(nil)
	w, err := workspace.Open(t.Context(), &workspace.Options{
		Session: s,
		Mounts: []workspace.HostMount{
			{HostPath: "src", MountPath: "project/src", Include: []string{"*.py"}, MaxBytes: new(int64(1_000_000))},
			{HostPath: "tests", MountPath: "project/tests", Include: []string{"test_*.py"}},
		},
		AllowedHostRoots: []string{project},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p, err := prompt.NewPrompt[refactorResult]("refactor", "codebase",
		w.Section(),
		prompt.Markdown("task", "Task", "Refactor the code in project/src to improve readability"),
	)
	if err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t,
		script.Reply(use("ls", "Bash", script.Input{"command": "find . -type f | sort", "description": "list"})),
		script.Structured(script.Input{"summary": "Better."}))
	opts := cli.Options(model)
	opts.Dir = ""
	response, err := drover.Evaluate(t.Context(), claudecode.New(opts), p, &drover.Options{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	if response.Output.Summary != "Better." {
		t.Errorf("the answer is %+v", response.Output)
	}
	ran, _ := session.Query[session.ToolInvoked](s).Latest()
	for call := range session.Query[session.ToolInvoked](s).Where(func(c session.ToolInvoked) bool { return c.CallID == "ls" }) {
		ran = call
	}
	if want := "./project/src/app.py\n./project/src/deep/more.py\n./project/tests/test_app.py"; strings.TrimSpace(ran.Output) != want {
		t.Errorf("the agent finds\n%s\nwant\n%s", ran.Output, want)
	}
}

func TestWorkspace_WhichOneIsUsed(t *testing.T) {
	open := func(s *session.Session) *workspace.Workspace {
		w, err := workspace.Open(t.Context(), &workspace.Options{Session: s, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close() })
		return w
	}
	s := session.New(nil)
	first, ofSession := open(s), open(s)
	closed, older := session.New(nil), session.New(nil)
	stillOpen := open(older)
	if err := errors.Join(open(closed).Close(), open(older).Close()); err != nil {
		t.Fatal(err)
	}
	about := func(w *workspace.Workspace) []*prompt.Section {
		return []*prompt.Section{w.Section(), prompt.Markdown("task", "Task", "Work.")}
	}
	twice := append(about(first), ofSession.Section())
	twice[2].Key = "other"
	off := func(w *workspace.Workspace) *prompt.Section {
		return &prompt.Section{Key: "off", Title: "Off", Enabled: func(prompt.View) bool { return false }, Children: []*prompt.Section{w.Section()}}
	}
	gone := open(nil)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	isClosed := "the workspace " + gone.Root() + " is closed\n  next: open it again with workspace.Open, or leave "
	for name, x := range map[string]struct {
		sections []*prompt.Section
		opts     drover.Options
		want     *workspace.Workspace // nil: a new one
		refused  string
	}{
		"that of the section":            {about(first), drover.Options{Session: s}, first, ""},
		"that of the session":            {nil, drover.Options{Session: s}, ofSession, ""},
		"that of the options":            {nil, drover.Options{Session: s, Settings: agent.Settings{Workspace: first}}, first, ""},
		"one that the session had":       {nil, drover.Options{Session: closed}, nil, ""},
		"the one that is still open":     {nil, drover.Options{Session: older}, stillOpen, ""},
		"the section and another option": {about(first), drover.Options{Session: s, Settings: agent.Settings{Workspace: ofSession}}, nil, "leave Options.Workspace out"},
		"two sections":                   {twice, drover.Options{Session: s}, nil, "give the prompt one workspace"},
		"a disabled section":             {append(about(first)[1:], off(stillOpen)), drover.Options{Session: s}, ofSession, ""},
		"a disabled second section":      {append(about(first), off(stillOpen)), drover.Options{Session: s}, first, ""},
		"a disabled section is closed":   {append(about(first), off(gone)), drover.Options{Session: s}, first, ""},
		"a section that is closed":       {about(gone), drover.Options{Session: s}, nil, isClosed + "the section out"},
		"an option that is closed":       {nil, drover.Options{Session: s, Settings: agent.Settings{Workspace: gone}}, nil, isClosed + "Options.Workspace out"},
	} {
		t.Run(name, func(t *testing.T) {
			var got *workspace.Workspace
			a := agenttest.New(func(r *agenttest.Run) { got = r.Request.Workspace }, answers())
			_, err := drover.Evaluate(t.Context(), a, reviewPrompt(t, x.sections...), &x.opts)
			if x.refused != "" {
				failure, _ := errors.AsType[*drover.EvaluationError](err)
				if failure == nil || failure.Phase != drover.PhaseRequest || failure.Kind != agent.FailureRequest || !strings.Contains(advice.Text(err), x.refused) || got != nil {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || x.want != nil && got != x.want || x.want == nil && (got == nil || got == first || got == ofSession) {
				t.Errorf("the agent works in %v, want %v; %v", got, x.want, err)
			}
		})
	}
}

// What an evaluation has made for itself is for no other one.
func TestWorkspace_OfAnotherEvaluationIsNotUsed(t *testing.T) {
	s := session.New(nil)
	var outer, inner *workspace.Workspace
	within := agenttest.New(func(r *agenttest.Run) { inner = r.Request.Workspace }, answers())
	a := agenttest.New(func(r *agenttest.Run) {
		outer = r.Request.Workspace
		if _, err := drover.Evaluate(t.Context(), within, reviewPrompt(t), &drover.Options{Session: s}); err != nil {
			t.Error(err)
		}
	}, answers())
	if _, err := drover.Evaluate(t.Context(), agent.Adapter(a), reviewPrompt(t), &drover.Options{Session: s}); err != nil {
		t.Fatal(err)
	}
	if outer == nil || inner == nil || outer == inner {
		t.Errorf("they work in %v and %v", outer, inner)
	}
}
