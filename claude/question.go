// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
)

// AskUserQuestionTool lets the model ask the user. Its calls reach [CanUseTool]; [PermissionRequest.Answer] makes the
// result.
const AskUserQuestionTool = "AskUserQuestion"

// A Question is one question of the model to the user.
type Question struct {
	Question    string           `json:"question"`
	Header      string           `json:"header"`
	Options     []QuestionOption `json:"options"`
	MultiSelect bool             `json:"multiSelect"`
}

// A QuestionOption is one of the answers offered. The user may give another one.
type QuestionOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Preview     string `json:"preview"`
}

// Questions returns what the model asks, or an error if the request is not one of the AskUserQuestion tool.
func (r *PermissionRequest) Questions() ([]Question, error) {
	if r.ToolName != AskUserQuestionTool {
		return nil, fmt.Errorf("claude: the request is about %s, not %s", r.ToolName, AskUserQuestionTool)
	}
	var in struct {
		Questions []Question `json:"questions"`
	}
	if err := json.Unmarshal(r.Input, &in); err != nil {
		return nil, fmt.Errorf("claude: questions of %s: %w", AskUserQuestionTool, err)
	}
	return in.Questions, nil
}

// Answer makes the result that gives the user's answers to the model: for each question's text the chosen labels, or free
// text. Every question needs an answer, and only questions with MultiSelect take more than one.
func (r *PermissionRequest) Answer(answers map[string][]string) (Allow, error) {
	questions, err := r.Questions()
	if err != nil {
		return Allow{}, err
	}
	joined := make(map[string]string, len(answers))
	for _, q := range questions {
		given := answers[q.Question]
		if len(given) == 0 || len(given) > 1 && !q.MultiSelect {
			return Allow{}, fmt.Errorf("claude: question %q has %d answers", q.Question, len(given))
		}
		joined[q.Question] = strings.Join(given, ", ")
	}
	for text := range answers {
		if !slices.ContainsFunc(questions, func(q Question) bool { return q.Question == text }) {
			return Allow{}, fmt.Errorf("claude: %q was not asked", text)
		}
	}
	return answeredInput(r.Input, joined)
}

func answeredInput(input json.RawMessage, answers map[string]string) (Allow, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(input, &members); err != nil {
		return Allow{}, err
	}
	b, err := plainjson.Marshal(answers)
	if err != nil {
		return Allow{}, err
	}
	members["answers"] = b
	updated, err := plainjson.Marshal(members)
	return Allow{UpdatedInput: updated}, err
}
