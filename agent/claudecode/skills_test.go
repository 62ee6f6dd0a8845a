// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

// skillOf is a skill that has the model send a text, and brings a tool with it.
func skillOf(t testing.TB, name string) *prompt.Skill {
	t.Helper()
	text := fmt.Sprintf("---\nname: %s\ndescription: The description of %s.\nallowed-tools: Bash\n---\nSay HELLO-FROM-%s.\n", name, name, name)
	s, err := prompt.LoadSkillFS(fstest.MapFS{name + "/SKILL.md": {Data: []byte(text)}}, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The model finds the skills of a request by their descriptions and reads them, with every kind of host and with
// any other tools.
func TestSkills_ModelUsesThoseOfARequest(t *testing.T) {
	shell := &gate.Permissions{ShellExecute: gate.LevelAllow}
	for name, req := range map[string]agent.Request{
		"no handler decides":      {},
		"a list of tools":         {Settings: agent.Settings{Tools: []string{"Read"}}},
		"no tools":                {Settings: agent.Settings{Tools: []string{}}},
		"a gate":                  {Settings: agent.Settings{Permissions: shell}},
		"a gate and a list":       {Settings: agent.Settings{Permissions: shell, Tools: []string{"Read"}}},
		"the oldest CLI":          {},
		"the oldest and a list":   {Settings: agent.Settings{Tools: []string{"Read"}}},
		"an isolation that knows": {},
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI
			if strings.Contains(name, "oldest") {
				cli = claudetest.OldestCLI
			}
			model := claudetest.NewModel(t, script.Call("Skill", script.Input{"skill": "greet"}), script.Text("Done."))
			base := cli(t).Options(model)
			runIsolation := &isolation.Isolation{}
			if name == "an isolation that knows" {
				runIsolation.Populate = func(h *isolation.Home) error { return skillOf(t, "house").WriteTo(claudecell.SkillsDir(h)) }
			}
			req.Skills = []agent.Skill{skillOf(t, "greet"), skillOf(t, "other")}
			got := in(t, runIsolation, base, req)
			got.check(t)
			if got.result("Skill") != event.ToolSuccess || !model.SawText("Say HELLO-FROM-greet.") {
				t.Errorf("the skill ended with %q: %+v", got.result("Skill"), of[event.ToolResult](got))
			}
			known := []string{"greet", "other"}
			if runIsolation.Populate != nil {
				known = append(known, "house")
			}
			for _, skill := range known {
				if !model.Requests()[0].SawText("The description of " + skill) {
					t.Errorf("the model does not know of %s", skill)
				}
			}
			if req.Tools != nil && slices.Contains(model.Requests()[0].ToolNames(), "Bash") {
				t.Error("with the skills came other tools")
			}
		})
	}
}

// A tool gives the agent skills while it works. The model knows them when it reads the tool's result, without
// a question about them where no handler decides.
func TestSkills_AreAddedDuringATurn(t *testing.T) {
	bothCLIs(t, func(t *testing.T, cli *claudetest.RealCLI) {
		model := claudetest.NewModel(t,
			script.Call("mcp__drover__learn", nil), script.Call("Skill", script.Input{"skill": "late"}), script.Text("Done."),
			script.Call("Skill", script.Input{"skill": "greet"}), script.Text("Bye."))
		var conversation agent.Conversation
		learn := tool.Must("learn", "Learns.", func(ctx context.Context, _ struct{}) (string, error) {
			return "learned", conversation.(agent.Learner).AddSkills(ctx, []agent.Skill{skillOf(t, "late")})
		}, tool.ReadOnly)
		adapter := newAdapter(t, cli.Options(model))
		var err error
		conversation, err = adapter.Open(inTime(t), agent.Request{Registry: tool.MustRegistry(nil, learn), Skills: []agent.Skill{skillOf(t, "greet")}})
		if err != nil {
			t.Fatal(err)
		}
		got := record(t, conversation.Send(inTime(t), "go"))
		if got.result("Skill") != event.ToolSuccess || !model.SawText("Say HELLO-FROM-late.") {
			t.Errorf("the skill ended with %q: %+v", got.result("Skill"), of[event.ToolResult](got))
		}
		requests := model.Requests()
		if requests[0].SawText("The description of late") || !requests[1].SawText("The description of late") {
			t.Error("the model does not know of the skill when it reads the result of the tool, or did before")
		}
		if again := record(t, conversation.Send(inTime(t), "and greet")); again.result("Skill") != event.ToolSuccess {
			t.Errorf("the first skill ended with %q", again.result("Skill"))
		}
		if err := conversation.Close(); err != nil {
			t.Error(err)
		}
		if err := conversation.(agent.Learner).AddSkills(inTime(t), []agent.Skill{skillOf(t, "late")}); err == nil || !strings.Contains(advice.Text(err), "closed") {
			t.Errorf("a conversation that is closed learns: %v", err)
		}
	})
}

// An agent that puts a link in the place of a folder of its home does not have skills written elsewhere.
func TestSkills_AreNotWrittenOutsideOfTheHome(t *testing.T) {
	cli, outside := claudetest.CLI(t), t.TempDir()
	model := claudetest.NewModel(t,
		script.Reply(bash("rm -r ~/.claude/skills && ln -s "+outside+" ~/.claude/skills && echo LINKED")),
		script.Call("mcp__drover__learn", nil), script.Text("Done."))
	var conversation agent.Conversation
	learned := errors.New("the tool did not run")
	learn := tool.Must("learn", "Learns.", func(ctx context.Context, _ struct{}) (string, error) {
		learned = conversation.(agent.Learner).AddSkills(ctx, []agent.Skill{skillOf(t, "late")})
		return "tried", nil
	}, tool.ReadOnly)
	base := cli.Options(model)
	base.PermissionMode = claude.ModeBypassPermissions
	var err error
	if conversation, err = newAdapter(t, base).Open(inTime(t), agent.Request{Registry: tool.MustRegistry(nil, learn)}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conversation.Close() }()
	record(t, conversation.Send(inTime(t), "go"))
	if !model.SawText("LINKED") {
		t.Fatal("the command did not make the link")
	}
	if learned == nil || !strings.Contains(advice.Text(learned), "escapes") {
		t.Errorf("adding the skill gives %v, want an error about the link", learned)
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("%v was written outside of the home", left)
	}
}

func TestSkills_UnusableOnesAreRefused(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(*claudetest.ScriptSession) {})
	for name, x := range map[string]struct {
		base *claude.Options
		req  agent.Request
		want string
	}{
		"a spawner":     {cli.Options(), agent.Request{Skills: []agent.Skill{skillOf(t, "greet")}}, "Request.Skills: the CLI is started by a Spawner"},
		"two of a name": {nil, agent.Request{Skills: []agent.Skill{skillOf(t, "greet"), skillOf(t, "greet")}}, `two skills "greet"`},
		"no folder":     {nil, agent.Request{Skills: []agent.Skill{outside{}}}, `"../x" is not the name of a folder`},
	} {
		t.Run(name, func(t *testing.T) {
			x.req.Prompt = "go"
			if err := refused(t, claudecode.New(x.base), x.req); err == nil || !strings.Contains(advice.Text(err), x.want) {
				t.Errorf("got %v, want an error with %q", err, x.want)
			}
		})
	}
}

// outside is a skill that would be written elsewhere.
type outside struct{}

func (outside) Name() string           { return "../x" }
func (outside) WriteIn(*os.Root) error { return nil }
