// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package drover

import "fmt"

const (
	// defaultInput is the user's message where the prompt is in the system prompt.
	defaultInput = "Begin."
	// resumePrompt follows a turn that broke off.
	resumePrompt = "Your work was interrupted by a technical failure. Continue where you stopped. First check what is already done; do not repeat it."
	// checkFailed is the feedback of a completion check that failed without any.
	checkFailed = "The completion check failed to run. Keep working until you are sure that the task is complete."
	// noStructuredAnswer is the fault of an answer in text; see repairPrompt.
	noStructuredAnswer = "you replied with text, not with structured output."
)

func repairPrompt(fault string) string {
	return fmt.Sprintf("Your last answer cannot be used: %s\n\nGive the whole answer again, as structured output that matches the schema.", fault)
}
