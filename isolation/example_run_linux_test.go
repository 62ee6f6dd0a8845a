// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	"github.com/drover-agents/drover/prompt"
)

// newReviewer is the agent of docs/isolation.md. What all its runs together may cost is in budget.
func newReviewer(base *claude.Options, budget *guard.Tracker, house *prompt.Skill) (*agent.Runner, error) {
	return agent.NewRunner(claudecode.New(base).In(&isolation.Isolation{
		Network:  isolation.WithDomains("docs.example.com", "*.example.org"),
		Sandbox:  &isolation.Sandbox{ReadablePaths: []string{"../shared"}},
		Limits:   isolation.Limits{Memory: 4 << 30, WorkspaceBytes: 1 << 30, CPUTime: time.Hour},
		Trackers: []*guard.Tracker{budget},
		Populate: func(home *isolation.Home) error {
			return prompt.MountSkills(claudecell.SkillsDir(home), house)
		},
	}), nil)
}

// inUse reads the events of a run that a program usually looks at.
func inUse(ctx context.Context, reviewer *agent.Runner) (protection isolation.Protection, used gateway.Usage, done event.Done, err error) {
	for e, err := range reviewer.Run(ctx, agent.Request{Prompt: "Review this."}) {
		if err != nil { // no cell is available, no credential is found, or an option bypasses the isolation
			return protection, used, done, err
		}
		switch p := e.Payload.(type) {
		case isolation.Protection: // once, after the init
			protection = p
		case isolation.Breach: // the run went beyond its Limits and ends
			fmt.Println(p.Message)
		case event.Done:
			done = p
			_ = json.Unmarshal(e.Metadata[claudecode.GatewayUsage], &used) // absent without a cell
		}
	}
	return protection, used, done, nil
}

func TestExample_ReviewerOfTheDocs(t *testing.T) {
	cli := claudetest.CLI(t)
	shared := filepath.Join(cli.Root, "shared")
	plant(t, filepath.Join(shared, "notes"), "shared notes")
	skill := filepath.Join(t.TempDir(), "house-rules")
	plant(t, filepath.Join(skill, "SKILL.md"), "---\nname: house-rules\ndescription: the rules of the house\n---\nBe kind.\n")
	house, err := prompt.LoadSkill(skill)
	if err != nil {
		t.Fatal(err)
	}
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "cat ../shared/notes; ls $CLAUDE_CONFIG_DIR/skills; touch ../shared/x"}),
		script.Text("It is good."),
	).RequireAllUsed()
	budget := guard.NewTracker(guard.Budget{MaxTotalTokens: 1_000_000})
	base := cli.Options(model)
	base.PermissionMode = claude.ModeBypassPermissions // there is nothing to ask for in a cell
	reviewer, err := newReviewer(base, budget, house)
	if err != nil {
		t.Fatal(err)
	}
	protection, used, done, err := inUse(t.Context(), reviewer)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := done.Result, "It is good."; got != want || protection.Level != isolation.LevelCell {
		t.Errorf("got %q at level %s, want %q in a cell", got, protection.Level, want)
	}
	if got := budget.Consumed().TotalTokens(); used.Total.Requests != 2 || got == 0 || got != used.Total.AllInput()+used.Total.Output {
		t.Errorf("the budget has %d tokens, the gateway %+v; want the same, of two calls", got, used.Total)
	}
	text, _, _ := model.ToolResult("Bash")
	for _, want := range []string{"shared notes", "house-rules", "Read-only file system"} {
		if !strings.Contains(text, want) {
			t.Errorf("the agent saw %q, want %q in it", text, want)
		}
	}
}
