// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package session

import "fmt"

const (
	contextTask      = "[Context] Current task: "
	contextDirectory = "[Context] Working directory: "

	callUnfinished = "Error: the tool stopped before it returned a result. Check what it did before you call it again."
)

func changesLost(cause error) string {
	return fmt.Sprintf("Error: the tool ran, but its changes to the session are lost: %v. Do not rely on them.", cause)
}
