// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// firstMessage is the first message of the user, as the model reads it.
func firstMessage(r *script.Request) string {
	for _, m := range r.Messages {
		if m.Role == "user" {
			return m.Content.Text()
		}
	}
	return ""
}

func TestPlacement_OfThePrompt(t *testing.T) {
	const text, theirs = "Review the moon.", "# Harness"
	cli := claudetest.CLI(t)
	for name, x := range map[string]struct {
		opts         drover.Options
		system, user []string
		notInSystem  string
		notInUser    string
	}{
		"as the user's message": {
			opts: drover.Options{Settings: agent.Settings{AppendSystemPrompt: "Be brief."}, Input: "unheard"},
			user: []string{text}, system: []string{theirs, "Be brief."}, notInSystem: text, notInUser: "unheard",
		},
		"as the system prompt": {
			opts:   drover.Options{Placement: drover.AsSystem, Settings: agent.Settings{AppendSystemPrompt: "Be brief.", SystemPrompt: "unheard"}},
			system: []string{text, "Be brief."}, user: []string{"Begin."}, notInSystem: theirs, notInUser: text,
		},
		"added to the system prompt": {
			opts:   drover.Options{Placement: drover.AppendedToSystem, Settings: agent.Settings{AppendSystemPrompt: "Be brief."}, Input: "Look up."},
			system: []string{theirs, "Be brief.\n\n## 1. Task (task)\n\n" + text}, user: []string{"Look up."}, notInSystem: "unheard", notInUser: text,
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := claudetest.NewModel(t, script.Structured(fine))
			p := reviewPrompt(t, prompt.Markdown("task", "Task", text))
			if _, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), p, &x.opts); err != nil {
				t.Fatal(err)
			}
			asked := model.Requests()[0]
			system, user := asked.SystemText(), firstMessage(asked)
			for _, want := range x.system {
				if !strings.Contains(system, want) {
					t.Errorf("the system prompt lacks %q", want)
				}
			}
			for _, want := range x.user {
				if !strings.Contains(user, want) {
					t.Errorf("the user's message lacks %q:\n%s", want, user)
				}
			}
			if strings.Contains(system, x.notInSystem) || strings.Contains(system, "unheard") {
				t.Errorf("the system prompt has %q", x.notInSystem)
			}
			if strings.Contains(user, x.notInUser) {
				t.Errorf("the user's message has %q:\n%s", x.notInUser, user)
			}
		})
	}
}

// The model opens one section after the other, each of them by a new beginning.
func TestDisclosure_NumberOfRestartsIsLimited(t *testing.T) {
	cli := claudetest.CLI(t)
	sections := []*prompt.Section{prompt.Markdown("task", "Task", "Review.")}
	for n := range 4 {
		more := prompt.Markdown(fmt.Sprint("more", n), fmt.Sprint("More ", n), fmt.Sprint("Text ", n))
		more = more.With(tool.Must(fmt.Sprint("extra", n), "Does more.", func(context.Context, tool.None) (string, error) { return "", nil }))
		more.Summary, more.Visibility = "There is more.", prompt.Summary
		sections = append(sections, more)
	}
	model := claudetest.NewModel(t, script.Func(func(r *script.Request) script.Turn {
		if r.BringsToolResult("open") {
			return script.Hang() // the CLI may ask before it is ended
		}
		for n := range 4 {
			if !r.SawText(fmt.Sprint("Text ", n)) {
				return script.Reply(use("open", "mcp__drover__"+prompt.OpenSections, script.Input{"section_keys": []string{fmt.Sprint("more", n)}, "reason": "curious"}))
			}
		}
		return script.Structured(fine)
	}).Always())
	_, err := drover.Evaluate(t.Context(), claudecode.New(cli.Options(model)), reviewPrompt(t, sections...), &drover.Options{RestartToOpen: true, MaxExpansions: 2})
	failed, _ := errors.AsType[*drover.EvaluationError](err)
	if failed == nil || failed.Phase != drover.PhaseTool || !strings.Contains(advice.Text(err), "restarted 2 times") || !strings.Contains(advice.Text(err), "more2") || !strings.Contains(advice.Text(err), "MaxExpansions") {
		t.Errorf("it ended with %v", err)
	}
	if failed.Summary.Expansions != 2 {
		t.Errorf("%d expansions are counted, want the 2 that were made", failed.Summary.Expansions)
	}
	beginnings := slices.DeleteFunc(model.Requests(), func(r *script.Request) bool { return r.BringsToolResult("open") })
	if len(beginnings) != 3 || !beginnings[2].SawText("Text 0") || !beginnings[2].SawText("Text 1") || beginnings[2].SawText("Text 2") {
		t.Errorf("it began %d times, want 3, the last time with two sections open", len(beginnings))
	}
}

// A counted adapter knows how many agents it has started.
type counted struct {
	*claudecode.Adapter
	opened int
}

func (c *counted) Open(ctx context.Context, r agent.Request) (agent.Conversation, error) {
	c.opened++
	return c.Adapter.Open(ctx, r)
}

// unnamed is a request without what differs from one conversation to the next.
func unnamed(t *testing.T, r *script.Request) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	delete(body, "metadata") // names the conversation
	return body
}

func TestPrepare_SendsTheSameAsAColdStart(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Structured(fine).Always())
	a := &counted{Adapter: claudecode.New(cli.Options(model))}
	begin := func(prepare bool) *script.Request {
		t.Helper()
		before := len(model.Requests())
		c := drover.Converse(a, reviewPrompt(t), &drover.Options{Settings: agent.Settings{Dir: cli.Work}})
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		if prepare {
			opened := a.opened
			if err := c.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a.opened != opened+1 || len(model.Requests()) != before {
				t.Errorf("%d agents were started and %d questions asked, want one and none", a.opened-opened, len(model.Requests())-before)
			}
		}
		opened := a.opened
		resp, err := c.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if prepare && a.opened != opened {
			t.Error("another agent was started")
		}
		if resp.Output.Summary != "Fine." || len(model.Requests()) != before+1 {
			t.Errorf("the answer is %+v after %d questions", resp.Output, len(model.Requests())-before)
		}
		return model.Requests()[before]
	}
	if diff := cmp.Diff(unnamed(t, begin(false)), unnamed(t, begin(true))); diff != "" {
		t.Errorf("the first questions differ (-cold +prepared):\n%s", diff)
	}
}

// The processes and goroutines are looked for when the test ends.
func TestPrepare_UnusedConversationLeavesNoProcesses(t *testing.T) {
	cli := claudetest.CLI(t)
	temp := filepath.Join(cli.Root, "prepared")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	model, s := claudetest.NewModel(t), session.New(nil)
	opts := cli.Options(model)
	opts.Dir = ""
	c := drover.Converse(claudecode.New(opts), reviewPrompt(t), &drover.Options{Session: s})
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if made, _ := filepath.Glob(filepath.Join(temp, "*")); len(made) == 0 {
		t.Error("nothing was made for it")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
	if _, err := c.Begin(t.Context()); !errors.Is(err, drover.ErrClosed) {
		t.Errorf("it begins after the end: %v", err)
	}
	if len(model.Requests()) > 0 || len(recorded(s)) > 0 {
		t.Error("a message was sent or recorded")
	}
}
