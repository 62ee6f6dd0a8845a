// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
)

type outline struct {
	Name  string    `json:"name"`
	Parts []outline `json:"parts"`
}

// Answers of every kind come through the real CLI and a Runner, whether the agent is asked for them by
// the schema that is made for it or by that of the type.
func TestOutput_RealRunReturnsAnswersOfEveryKind(t *testing.T) {
	cli := claudetest.CLI(t)
	inner := outline{"etc", []outline{}}
	roundTrip(t, cli, "slice of structs that nest", []outline{{"root", []outline{inner}}, inner})
	roundTrip(t, cli, "scalar", -3)
	roundTrip(t, cli, "struct that looks wrapped", struct {
		Value []string `json:"value"`
	}{[]string{"a"}})
}

func roundTrip[Out any](t *testing.T, cli *claudetest.RealCLI, name string, want Out) {
	p, err := prompt.NewPrompt[Out]("demo", "output", prompt.Markdown("a", "A", "Answer."))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := p.Render(nil)
	if err != nil {
		t.Fatal(err)
	}
	for form, asked := range map[string]json.RawMessage{"for the agent": rendered.OutputSchema, "of the type": rendered.Output.JSON()} {
		t.Run(name+"/"+form, func(t *testing.T) {
			got, err := p.Parse(answer(t, cli, agent.Request{Prompt: rendered.Text, OutputSchema: asked}, asWrapped(rendered, want)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// asWrapped is what the model gives: the schema that the CLI has is always that of an object.
func asWrapped(r *prompt.Rendered, v any) any {
	raw, err := json.Marshal(v)
	if err == nil && r.Output.Validate(raw) == nil && raw[0] == '{' {
		return v
	}
	return map[string]any{"value": v}
}

// answer is the structured answer of a run in which the model gives value.
func answer(t *testing.T, cli *claudetest.RealCLI, req agent.Request, value any) json.RawMessage {
	model := claudetest.NewModel(t, script.Structured(value), script.Text("Done."))
	runner, err := agent.NewRunner(claudecode.New(cli.Options(model)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var done event.Done
	for e, err := range runner.Run(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := e.Payload.(event.Done); ok {
			done = d
		}
	}
	if done.Status != event.DoneSuccess {
		t.Fatalf("the run ended with %+v", done)
	}
	return done.Output
}
