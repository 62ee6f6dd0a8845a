// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/event"
)

// In a program a task is the payload itself; who reads events from JSON has an extension.
func ExampleTask() {
	line := `{"type":"claude-code:task","agent":"claude-code","timestamp":0,"sessionId":"s","payload":{"taskId":"t1","state":"ended","toolUseId":"toolu_1","status":"completed","summary":"All tests pass."}}`
	var e event.Event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		fmt.Println(err)
		return
	}
	if x, ok := e.Payload.(event.Extension); ok && x.Kind == claudecode.KindTask {
		var task claudecode.Task
		if err := json.Unmarshal(x.Data, &task); err != nil {
			fmt.Println(err)
			return
		}
		if task.State == claudecode.TaskEnded {
			fmt.Println(task.Status+":", task.Summary)
		}
	}
	// Output: completed: All tests pass.
}
