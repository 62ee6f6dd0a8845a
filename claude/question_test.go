// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

func askRequest() *PermissionRequest {
	return &PermissionRequest{ToolName: AskUserQuestionTool, Input: json.RawMessage(`{"questions":[{"question":"Which?","header":"Pick","options":[{"label":"A","description":"first"},{"label":"B","description":"second","preview":"bb"}],"multiSelect":false},{"question":"Extras?","header":"More","options":[],"multiSelect":true}],"metadata":{"k":"<1>"}}`)}
}

func TestQuestions_AreDecoded(t *testing.T) {
	got, err := askRequest().Questions()
	want := []Question{
		{"Which?", "Pick", []QuestionOption{{"A", "first", ""}, {"B", "second", "bb"}}, false},
		{"Extras?", "More", []QuestionOption{}, true},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if _, err := (&PermissionRequest{ToolName: "Bash"}).Questions(); err == nil {
		t.Error("a Bash request gave questions")
	}
}

func TestQuestions_Answer(t *testing.T) {
	tests := []struct {
		name    string
		answers map[string][]string
		want    string // answers member, or part of the error if it starts with "!"
	}{
		{"all", map[string][]string{"Which?": {"B"}, "Extras?": {"x", "y"}}, `{"Extras?":"x, y","Which?":"B"}`},
		{"one missing", map[string][]string{"Which?": {"B"}}, `!question "Extras?" has 0 answers`},
		{"two for a single choice", map[string][]string{"Which?": {"A", "B"}, "Extras?": {"x"}}, `!question "Which?" has 2 answers`},
		{"not asked", map[string][]string{"Which?": {"B"}, "Extras?": {"x"}, "Why?": {"z"}}, `!"Why?" was not asked`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			allow, err := askRequest().Answer(tt.answers)
			if reason, fails := strings.CutPrefix(tt.want, "!"); fails {
				if err == nil || !strings.Contains(advice.Text(err), reason) {
					t.Errorf("got error %v, want %q", err, reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(allow.UpdatedInput.(json.RawMessage), &got); err != nil {
				t.Fatal(err)
			}
			if string(got["answers"]) != tt.want || string(got["metadata"]) != `{"k":"<1>"}` || got["questions"] == nil {
				t.Errorf("updated input %s", allow.UpdatedInput)
			}
		})
	}
}
