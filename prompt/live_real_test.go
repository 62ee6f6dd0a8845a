// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

const (
	openSections = "mcp__drover__" + prompt.OpenSections
	readSection  = "mcp__drover__" + prompt.ReadSection
	deploy       = "mcp__drover__deploy"
	whole        = "PUSH THE GREEN BUTTON"
)

// release is a prompt whose hidden section has a tool, and whose hidden notes have none.
func release(t testing.TB, ran *int, policies ...gate.Policy) *prompt.Prompt[prompt.Text] {
	t.Helper()
	button := tool.Must("deploy", "Deploys.", func(context.Context, tool.None) (string, error) {
		*ran++
		return "deployed", nil
	})
	p, err := prompt.NewPrompt[prompt.Text]("demo", "release",
		prompt.Markdown("task", "Task", "Bring the release out."),
		&prompt.Section{
			Key: "deploying", Title: "Deploying", Text: whole, Summary: "How to deploy.", Visibility: prompt.Summary,
			Tools: []*tool.Tool{button}, Policies: policies,
		},
		&prompt.Section{Key: "notes", Title: "Notes", Text: "ALL NOTES", Summary: "Some notes.", Visibility: prompt.Summary},
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func live(t testing.TB, p *prompt.Prompt[prompt.Text], opts *prompt.LiveOptions) *prompt.Live {
	t.Helper()
	l, err := p.Live(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func opens(keys ...string) script.Turn {
	return script.Call(openSections, script.Input{"section_keys": keys, "reason": "to deploy"})
}

// A liveRun is a run of a live prompt on the real CLI.
type liveRun struct {
	inits   int
	done    event.Done
	results map[string]event.ToolStatus
}

// run runs the prompt with an agent.Runner, as a program does. env is laid over the CLI's.
func run(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, l *prompt.Live, env map[string]string, policies ...gate.Policy) liveRun {
	t.Helper()
	base := cli.Options(model)
	cli.SetEnv(base, model, env)
	runner, err := agent.NewRunner(claudecode.New(base), &agent.RunnerOptions{Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ctx, stop := l.Context(limited)
	defer stop()
	got := liveRun{results: map[string]event.ToolStatus{}}
	for e, err := range runner.Run(ctx, agent.Request{
		Settings: agent.Settings{UnknownTools: l.ToolNames()}, Prompt: l.Rendered().Text, Registry: l.Registry(),
	}) {
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case event.Init:
			got.inits++
		case event.ToolResult:
			got.results[p.Name] = p.Status
		case event.Done:
			got.done = p
		}
	}
	return got
}

// The model opens a section; its very next request has the text and the tool, which it calls. All of that
// is one run of one process. Without tool search the tool is offered as it is; with it, which is the
// default, the CLI sends its name and leaves its schema to be searched for, and a call works all the same.
func TestLive_RealModelUsesAnOpenedSectionInTheSameRun(t *testing.T) {
	for name, c := range map[string]struct {
		env      map[string]string
		deferred bool
	}{
		"tool search off": {map[string]string{"ENABLE_TOOL_SEARCH": "false"}, false},
		"as it comes":     {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, opens("deploying"), script.Call(deploy, nil), script.Text("Done.")).RequireAllUsed()
			ran, ses := 0, session.New(nil)
			p := release(t, &ran)
			l := live(t, p, &prompt.LiveOptions{RenderOptions: prompt.RenderOptions{Session: ses}, Adapter: claudecode.Agent})
			got := run(t, cli, model, l, c.env)
			first, second := model.Requests()[0], model.Requests()[1]
			if _, offered := first.Tool(deploy); offered || first.SawText(whole) {
				t.Errorf("before it is opened the model has the tool: %t, the text: %t", offered, first.SawText(whole))
			}
			for _, name := range []string{openSections, readSection} {
				if offered, ok := first.Tool(name); !ok || offered.DeferLoading {
					t.Errorf("%s is offered: %t, deferred: %t; want it at once", name, ok, offered.DeferLoading)
				}
			}
			text, failed, _ := second.ToolResult(openSections)
			if want := "You can call these tools now: deploy."; failed || !strings.Contains(text, whole) || !strings.HasSuffix(text, want) {
				t.Errorf("the result (failed: %t) is %q, want the text and %q", failed, text, want)
			}
			if offered, ok := second.Tool(deploy); !ok || offered.DeferLoading != c.deferred {
				t.Errorf("the next request has the tool: %t, deferred: %t; want it, deferred: %t", ok, offered.DeferLoading, c.deferred)
			}
			if ran != 1 || got.results[deploy] != event.ToolSuccess {
				t.Errorf("the tool ran %d times and ended with %q", ran, got.results[deploy])
			}
			if got.inits != 1 || got.done.Status != event.DoneSuccess || len(model.Requests()) != 3 {
				t.Errorf("%d inits, %d requests, done: %s; want one run of three requests", got.inits, len(model.Requests()), got.done.Status)
			}
			if again := live(t, p, &prompt.LiveOptions{RenderOptions: prompt.RenderOptions{Session: ses}}); !strings.Contains(again.Rendered().Text, whole) {
				t.Errorf("a later rendering with the session does not show the section:\n%s", again.Rendered().Text)
			}
		})
	}
}

// Not every opened tool reaches the model: a list of the run may leave it out, and the oldest CLI takes no
// notice of added tools. The result says so, and so does the record.
func TestLive_ResultNamesOpenedToolsThatAreMissing(t *testing.T) {
	for name, c := range map[string]struct {
		cli     func(testing.TB) *claudetest.RealCLI
		allowed []string
	}{
		"a list leaves it out": {claudetest.CLI, []string{openSections, readSection}},
		"the oldest CLI":       {claudetest.OldestCLI, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cli := c.cli(t)
			model := claudetest.NewModel(t, opens("deploying"), script.Text("Done.")).RequireAllUsed()
			ran, ses := 0, session.New(nil)
			l := live(t, release(t, &ran), &prompt.LiveOptions{RenderOptions: prompt.RenderOptions{Session: ses}})
			runner, err := agent.NewRunner(claudecode.New(cli.Options(model)), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range runner.Run(t.Context(), agent.Request{Prompt: l.Rendered().Text, Registry: l.Registry(), Settings: agent.Settings{Tools: c.allowed}}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			last := model.LastRequest()
			if _, offered := last.Tool(deploy); offered {
				t.Fatal("the model has the tool, so that this shows nothing")
			}
			text, failed, _ := last.ToolResult(openSections)
			if want := "These tools are not available in this run: deploy. Continue without them."; failed || !strings.Contains(text, whole) || !strings.HasSuffix(text, want) || strings.Contains(text, "You can call") {
				t.Errorf("the result (failed: %t) is %q, want the text and %q", failed, text, want)
			}
			for r := range session.Query[session.RenderedTools](ses).All() {
				for _, tool := range r.Tools {
					if tool.Name == "deploy" {
						t.Error("the record says that the model was given the tool")
					}
				}
			}
		})
	}
}

// A policy that came with a section decides about its tool from the first call on, at both gates.
func TestLive_PolicyOfAnOpenedSectionDeniesItsTool(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, opens("deploying"), script.Call(deploy, nil), script.Text("Done.")).RequireAllUsed()
	ran := 0
	l := live(t, release(t, &ran, gate.DenyTools("deploy")), nil)
	got := run(t, cli, model, l, map[string]string{"ENABLE_TOOL_SEARCH": "false"}, append(l.Policies(), gate.Default(event.Allow))...)
	if got.results[openSections] != event.ToolSuccess || got.results[deploy] != event.ToolDenied || ran != 0 {
		t.Errorf("the results are %v, and the tool ran %d times; want it denied", got.results, ran)
	}
	if _, ok := model.Requests()[1].Tool(deploy); !ok {
		t.Error("the tool was not offered, so that the denial shows nothing")
	}
}

// In the restart form the run ends with the call: the model is not asked again. The next run begins with
// the whole text and the tool. The oldest CLI needs this form, since it takes no notice of added tools.
func TestRestart_RealRunEndsAtTheCall(t *testing.T) {
	for name, cli := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) { restart(t, cli(t)) })
	}
}

func restart(t *testing.T, cli *claudetest.RealCLI) {
	model := claudetest.NewModel(t, opens("deploying"), script.Text("Done.").When(script.SawText(whole))).RequireAllUsed()
	ran, ses := 0, session.New(nil)
	p, env := release(t, &ran), map[string]string{"ENABLE_TOOL_SEARCH": "false"}
	opts := &prompt.LiveOptions{RenderOptions: prompt.RenderOptions{Session: ses}, Restart: true}
	first := live(t, p, opts)
	begun := time.Now()
	got := run(t, cli, model, first, env)
	if got.done.Status != event.DoneInterrupted || len(model.Requests()) != 1 {
		t.Errorf("after %s the run ended with %q and %d requests, want it interrupted after one", time.Since(begun), got.done.Status, len(model.Requests()))
	}
	expansion := first.Expansion()
	if expansion == nil || !slices.Equal(expansion.SectionKeys, []string{"deploying"}) || expansion.Reason != "to deploy" {
		t.Fatalf("the model asked for %+v", expansion)
	}
	if err := expansion.Apply(t.Context(), ses); err != nil {
		t.Fatal(err)
	}
	got = run(t, cli, model, live(t, p, opts), env)
	last := model.LastRequest()
	if _, ok := last.Tool(deploy); !ok || got.done.Status != event.DoneSuccess {
		t.Errorf("the second run has the tool: %t, and ended with %q", ok, got.done.Status)
	}
	if _, ok := last.Tool(openSections); ok {
		t.Error("the second run offers to open what is open")
	}
}

// Reading gives the text and nothing else.
func TestLive_RealModelReadsTextWithoutTools(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(
		script.ToolCall{ID: "notes", Name: readSection, Input: script.Input{"section_key": "notes"}},
		script.ToolCall{ID: "deploying", Name: readSection, Input: script.Input{"section_key": "deploying"}},
		script.ToolCall{ID: "task", Name: readSection, Input: script.Input{"section_key": "task"}},
	), script.Text("Done.")).RequireAllUsed()
	ran := 0
	run(t, cli, model, live(t, release(t, &ran), nil), map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	last := model.LastRequest()
	for id, want := range map[string]struct {
		text   string
		failed bool
	}{"notes": {"ALL NOTES", false}, "deploying": {whole, false}, "task": {"Already open: task.", true}} {
		if text, failed, _ := last.ToolResult(id); failed != want.failed || !strings.Contains(text, want.text) {
			t.Errorf("reading %s gave %q (failed: %t), want %q (%t)", id, text, failed, want.text, want.failed)
		}
	}
	if _, ok := last.Tool(deploy); ok {
		t.Error("reading gave the model a tool")
	}
}

// A skill of an opened section is mounted by the caller while the call waits; the next request of the
// same turn announces it, and the model can call it up.
func TestLive_SkillOfAnOpenedSectionIsAnnounced(t *testing.T) {
	folding := load(t, fstest.MapFS{"folding.md": {Data: []byte("---\ndescription: what folding is for\n---\nFOLD IT TWICE\n")}}, "folding.md")
	p, err := prompt.NewPrompt[prompt.Text]("demo", "paper",
		prompt.Markdown("task", "Task", "Fold."),
		&prompt.Section{Key: "craft", Title: "Craft", Text: "Use the skill.", Summary: "About paper.", Visibility: prompt.Summary, Skills: []*prompt.Skill{folding}},
	)
	if err != nil {
		t.Fatal(err)
	}
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, opens("craft"), script.Call("Skill", script.Input{"skill": "folding"}), script.Text("Done.")).RequireAllUsed()
	var client *claude.Client
	l := live(t, p, &prompt.LiveOptions{OnOpen: func(ctx context.Context, o prompt.Opened) error {
		err := prompt.MountSkills(filepath.Join(cli.Config, "skills"), o.Skills...)
		_, reloaded := client.ReloadSkills(ctx)
		return errors.Join(err, reloaded)
	}})
	server, err := claudecode.NewSDKServer(l.Registry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"ENABLE_TOOL_SEARCH": "false"})
	opts.MCPServers = map[string]claude.MCPServer{"drover": server.Server()}
	opts.Tools, opts.AllowedTools, opts.SettingSources = []string{"Skill"}, []string{"mcp__drover", "Skill"}, []string{"user"}
	client = claudetest.Connect(t, opts)
	if err := client.Send(t.Context(), claude.Text(l.Rendered().Text)); err != nil {
		t.Fatal(err)
	}
	for m, err := range client.Messages() {
		if err != nil {
			t.Fatal(err)
		}
		if _, over := m.(*claude.TurnEnd); over {
			break
		}
	}
	requests := model.Requests()
	const announced = "- folding: what folding is for"
	if requests[0].SawText(announced) || !requests[1].SawText(announced) {
		t.Errorf("announced at first: %t, in the next request: %t; want it after the opening only", requests[0].SawText(announced), requests[1].SawText(announced))
	}
	if text, failed, _ := requests[2].ToolResult("Skill"); failed || !requests[2].SawText("FOLD IT TWICE") {
		t.Errorf("the skill gave %q (failed: %t)", text, failed)
	}
}
