// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-agents/drover/claude"
)

// A hook that keeps the shell from deleting, and lets everything else pass to the usual rules.
func ExampleOn() {
	hook := claude.On("Bash", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		var input struct{ Command string }
		if err := json.Unmarshal(in.ToolInput, &input); err != nil {
			return nil, err // denies the call
		}
		if strings.Contains(input.Command, "rm ") {
			return claude.DenyTool("nothing is deleted here"), nil
		}
		return nil, nil
	})
	out, _ := hook.Func(context.Background(), &claude.PreToolUseInput{ToolName: "Bash", ToolInput: json.RawMessage(`{"command":"rm -r ."}`)})
	fmt.Println(hook.Event, out.(*claude.PreToolUseOutput).PermissionDecision)
	// Output: PreToolUse deny
}

// A permission callback that answers the model's questions itself and takes the CLI's own
// suggestion, "always allow", for reading.
func ExampleCanUseTool() {
	var decide claude.CanUseTool = func(_ context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		switch req.ToolName {
		case claude.AskUserQuestionTool:
			return req.Answer(map[string][]string{"Which database?": {"SQLite"}})
		case "Read":
			return claude.Allow{UpdatedPermissions: req.Suggestions}, nil
		}
		return claude.Deny{Message: "only reading is allowed"}, nil
	}
	result, _ := decide(context.Background(), &claude.PermissionRequest{ToolName: "Write"})
	fmt.Printf("%+v\n", result)
	// Output: {Message:only reading is allowed Interrupt:false Classification:}
}
