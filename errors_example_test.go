// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/prompt"
)

// One type has all that is known of a failure: where it was, what to do, and whether to try again.
func ExampleEvaluationError() {
	p, err := prompt.NewPrompt[prompt.Text]("docs", "greeting", prompt.Markdown("task", "Task", "Say hello."))
	if err != nil {
		fmt.Println(err)
		return
	}
	missing := &agenttest.Adapter{Readiness: agent.Readiness{State: agent.StateMissing, Repair: "install it"}}
	_, err = drover.Evaluate(context.Background(), missing, p, nil)
	if failure, ok := errors.AsType[*drover.EvaluationError](err); ok {
		fmt.Println(failure.Phase, failure.Kind)
		fmt.Println("next:", failure.Next)
		fmt.Println("worth another try:", failure.Retry.Worthwhile)
	}
	if throttle, ok := errors.AsType[*drover.ThrottleError](err); ok {
		fmt.Println("wait for", throttle.RetryAfter)
	}
	// Output:
	// request unavailable
	// next: install it
	// worth another try: false
}
