// SPDX-License-Identifier: Apache-2.0

package drovertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

var errFailed = errors.New("failed on request")

func notes(t *testing.T) *prompt.Prompt[prompt.Text] {
	t.Helper()
	return promptOf[prompt.Text](t, prompt.Markdown("task", "Task", "Note it.").With(noteTool()))
}

// A tool of the prompt runs, the model reads its result, and each call is recorded once, however it ended.
func testTools(t *testing.T, s *suite) {
	own := session.New(nil)
	_, m := evaluated(t, s, notes(t), &drover.Options{Session: own},
		call(s.Tool("note"), note{Text: "one"}),
		call(s.Tool("note"), note{Text: "two", Fail: true}),
		call(s.Tool("note"), map[string]any{"text": "three", "more": 1}),
		reply("Noted."))
	if !m.Read("noted one") || !m.Read(errFailed.Error()) {
		t.Error("the model has not read the results")
	}
	var got []string
	ids := map[event.CallID]bool{}
	for _, c := range invoked(own) {
		got = append(got, c.Name+" "+string(c.Status))
		if c.CallID == "" || ids[c.CallID] || c.Source != session.BridgedTool || c.Adapter == "" {
			t.Errorf("a call is recorded as %+v", c)
		}
		ids[c.CallID] = true
	}
	if len(got) != 3 || got[0] != "note success" || slices.ContainsFunc(got[1:], func(c string) bool { return c == "note success" }) {
		t.Errorf("the calls are %q", got)
	}
	if view := session.Query[Noted](own); view.Len() != 1 {
		t.Errorf("%d notes are left, want that of the call that succeeded", view.Len())
	}
}

// A failed call is rolled back, in the session and in the files.
func testTransactions(t *testing.T, s *suite) {
	own := session.New(nil)
	w := newWorkspace(t, own, map[string]string{"kept.txt": "before"})
	a, _ := s.New(t,
		call(s.Tool("spoil"), note{Text: "x", Fail: true}),
		call(s.Tool("spoil"), note{Text: "y"}),
		reply("Done."))
	p := promptOf[prompt.Text](t, prompt.Markdown("task", "Task", "Spoil it.").With(spoilTool(w)))
	if _, err := drover.Evaluate(t.Context(), a, p, &drover.Options{Session: own, Settings: agent.Settings{Workspace: w}}); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(w.Root(), "kept.txt"), "before")
	wantFile(t, filepath.Join(w.Root(), "y.txt"), "y")
	if _, err := os.Stat(filepath.Join(w.Root(), "x.txt")); err == nil {
		t.Error("the file of the call that failed is left")
	}
	if view := session.Query[Noted](own); view.Len() != 1 || view.At(0).Text != "y" {
		t.Errorf("%d notes are left", view.Len())
	}
}

func testNativeTransactions(t *testing.T, s *suite) {
	own := session.New(nil)
	w := newWorkspace(t, own, map[string]string{"kept.txt": "before"})
	a, m := s.New(t, calls(s.Native.Shell("echo after > kept.txt; exit 3")), reply("Done."))
	if _, err := drover.Evaluate(t.Context(), a, promptOf[prompt.Text](t), &drover.Options{Session: own, Settings: agent.Settings{Workspace: w}}); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(w.Root(), "kept.txt"), "before")
	if !m.Read("kept.txt") {
		t.Error("the model has not read what was restored")
	}
}

// The agent's own tools are recorded too, and what they change is known.
func testNativeTools(t *testing.T, s *suite) {
	own := session.New(nil)
	w := newWorkspace(t, own, nil)
	a, _ := s.New(t, calls(s.Native.Write(filepath.Join(w.Root(), "new.txt"), "made")), calls(s.Native.Shell("cat new.txt")), reply("Done."))
	if _, err := drover.Evaluate(t.Context(), a, promptOf[prompt.Text](t), &drover.Options{Session: own, Settings: agent.Settings{Workspace: w}}); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(w.Root(), "new.txt"), "made")
	all := invoked(own)
	if len(all) != 2 || slices.ContainsFunc(all, func(c session.ToolInvoked) bool {
		return c.Source != session.NativeTool || c.Status != event.ToolSuccess || c.CallID == ""
	}) {
		t.Errorf("the calls are %+v", all)
	}
	if files, _ := session.Query[session.ModifiedFiles](own).Latest(); files.Len() != 1 {
		t.Errorf("%d files are known to be modified, want 1", files.Len())
	}
}

// A call that the session forbids is not made, and the model reads why.
func testPolicies(t *testing.T, s *suite) {
	own := session.New(nil)
	if _, err := own.Dispatch(t.Context(), session.ToolPermissions{Blocked: []string{"note"}}); err != nil {
		t.Fatal(err)
	}
	_, m := evaluated(t, s, notes(t), &drover.Options{Session: own}, call(s.Tool("note"), note{Text: "one"}), reply("I may not."))
	if session.Query[Noted](own).Len() != 0 {
		t.Error("a blocked tool was run")
	}
	if !m.Read("blocked by session policy") {
		t.Error("the model has not read why")
	}
	if all := invoked(own); len(all) != 1 || all[0].Status != event.ToolDenied {
		t.Errorf("the calls are %+v", all)
	}
}

func testFeedback(t *testing.T, s *suite) {
	o := &drover.Options{Feedback: []guard.FeedbackRule{{
		Provider: guard.StaticFeedback{As: "suite", Text: "remember-the-feedback"},
		Trigger:  guard.FeedbackTrigger{EveryCalls: 1},
	}}}
	resp, m := evaluated(t, s, notes(t), o, call(s.Tool("note"), note{Text: "one"}), reply("Done."))
	if !m.Read("remember-the-feedback") {
		t.Error("the model has not read the feedback")
	}
	if session.Query[session.Feedback](resp.Session).Len() != 1 {
		t.Error("the feedback is not in the session")
	}
}

// An agent that is not done is sent back, and its last answer counts.
func testCompletion(t *testing.T, s *suite) {
	asked := 0
	checker := guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) {
		if asked++; asked < 3 {
			return guard.Incomplete("the-tests-are-missing"), nil
		}
		return guard.Complete(), nil
	})
	resp, m := evaluated(t, s, promptOf[verdict](t), &drover.Options{Completion: checker},
		answer(verdict{false, "first"}), answer(verdict{false, "second"}), answer(verdict{true, "third"}))
	if resp.Output.Why != "third" || !resp.Completion.Done || resp.Rounds != 2 {
		t.Errorf("the answer is %+v after %d rounds, %+v", resp.Output, resp.Rounds, resp.Completion)
	}
	if !m.Read("the-tests-are-missing") {
		t.Error("the model has not read what is missing")
	}
}

// A section that is hidden is opened in the run, with its tools.
func testDisclosure(t *testing.T, s *suite) {
	hidden := prompt.Markdown("notes", "Notes", "The hidden-text of the notes.").With(noteTool())
	hidden.Visibility, hidden.Summary = prompt.Summary, "There are notes."
	p := promptOf[prompt.Text](t, prompt.Markdown("task", "Task", "Note it."), hidden)
	own := session.New(nil)
	_, m := evaluated(t, s, p, &drover.Options{Session: own},
		call(s.Tool(prompt.OpenSections), map[string]any{"section_keys": []string{"notes"}, "reason": "to note"}),
		call(s.Tool("note"), note{Text: "one"}),
		reply("Noted."))
	if !m.Read("hidden-text") || session.Query[Noted](own).Len() != 1 {
		t.Errorf("the section was not opened: %d notes", session.Query[Noted](own).Len())
	}
}

func testSkills(t *testing.T, s *suite) {
	dir := filepath.Join(t.TempDir(), "suite-skill")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: suite-skill\ndescription: the-skill-of-the-suite tells how.\n---\nDo it well.\n"
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	skill, err := prompt.LoadSkill(dir)
	if err != nil {
		t.Fatal(err)
	}
	section := prompt.Markdown("task", "Task", "Do it.")
	section.Skills = []*prompt.Skill{skill}
	if _, m := evaluated(t, s, promptOf[prompt.Text](t, section), nil, reply("Done.")); !m.Read("the-skill-of-the-suite") {
		t.Error("the model has not read of the skill")
	}
}

// A command sees neither the files of the host nor its environment.
func testIsolation(t *testing.T, s *suite) {
	secret := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(secret, []byte("the-secret-of-a-file"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUITE_PASSWORD", "the-secret-of-the-environment")
	_, m := evaluated(t, s, promptOf[prompt.Text](t), nil, calls(s.Native.Shell("cat "+secret+"; env; echo looked")), reply("Done."))
	if !m.Read("looked") {
		t.Error("the command did not run")
	}
	for _, secret := range []string{"the-secret-of-a-file", "the-secret-of-the-environment"} {
		if m.Read(secret) {
			t.Errorf("the model has read %s", secret)
		}
	}
}

func newWorkspace(t *testing.T, s *session.Session, files map[string]string) *workspace.Workspace {
	t.Helper()
	w, err := workspace.Open(t.Context(), &workspace.Options{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(w.Root(), name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func wantFile(t *testing.T, path, content string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(got)) != content {
		t.Errorf("%s is %q (%v), want %q", filepath.Base(path), got, err, content)
	}
}
