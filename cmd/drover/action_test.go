// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// An action is action.yml, as far as its steps need it.
type action struct {
	Inputs  map[string]struct{ Default string }
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

// An actionStep is a step of an action or of a workflow.
type actionStep struct {
	ID, Name, If, Shell, Run, Uses string
	Env, With                      map[string]string
}

func readAction(t *testing.T) (a action) {
	t.Helper()
	text, err := os.ReadFile("../../action.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A script with an expression in it is a script that others write.
func TestAction_NoScriptHasAnExpression(t *testing.T) {
	a, used := readAction(t), ""
	if a.Runs.Using != "composite" || len(a.Runs.Steps) < 4 {
		t.Fatalf("the action is %+v", a.Runs)
	}
	for _, s := range a.Runs.Steps {
		if strings.Contains(s.Run, "${{") || s.Run == "" || s.Shell != "bash" || s.Uses != "" || strings.Contains(s.Run, "eval") {
			t.Errorf("step %q is not a script of bash without expressions", s.Name)
		}
		for name, value := range s.Env {
			used += value
			if !strings.Contains(s.Run, "$"+name) && !strings.Contains(s.Run, "${"+name) && name != "DROVER_CLAUDE" {
				t.Errorf("step %q does not use %s", s.Name, name)
			}
			if strings.Contains(value, "inputs.api-key") && s.ID != "run" {
				t.Errorf("step %q gets the key", s.Name)
			}
		}
	}
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range a.Inputs {
		if !strings.Contains(used, "inputs."+name+" ") || !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("no step uses the input %s, or docs/ci.md does not have it", name)
		}
	}
	for name := range a.Outputs {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/ci.md does not have the output %s", name)
		}
	}
}

var pinnedAction = regexp.MustCompile(`^[\w-]+/[\w./-]+@[0-9a-f]{40}$`)

// Workflows of the page pin what they use, name the rights of each job, and let no event in that runs a fork's code with secrets.
func TestAction_WorkflowsOfThePageAreSafe(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i, block := range strings.Split(string(page), "```") {
		text, is := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !is {
			continue
		}
		var w struct {
			On          any
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Steps       []actionStep
			}
		}
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if strings.Contains(text, "_target") || w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("a workflow has the event pull_request_target, or rights for all jobs:\n%s", text)
		}
		for name, job := range w.Jobs {
			uploads := false
			for _, s := range job.Steps {
				seen++
				if s.Uses != "" && !pinnedAction.MatchString(s.Uses) || strings.Contains(s.Run, "${{") {
					t.Errorf("job %s: %s %s", name, s.Uses, s.Run)
				}
				if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != "false" {
					t.Errorf("job %s: a checkout keeps the token in the folder", name)
				}
				uploads = uploads || strings.Contains(s.Uses, "/upload-sarif@")
			}
			for right, level := range job.Permissions {
				if may := level == "read" || right == "security-events" && uploads; !may {
					t.Errorf("job %s may %s %s", name, level, right)
				}
			}
			if job.Permissions == nil {
				t.Errorf("job %s does not name its rights", name)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d steps found", seen)
	}
}
