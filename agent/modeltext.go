// SPDX-License-Identifier: Apache-2.0

// This file has every text of the package that a model reads.

package agent

import (
	"errors"
	"fmt"
	"strings"
)

func notPermitted(tool string) string {
	return fmt.Sprintf("%s is not permitted. Continue without this call.", tool)
}

func otherInputOnly(tool string) string {
	return fmt.Sprintf("%s is permitted only with another input. Change the input, or continue without this call.", tool)
}

func invalidRewrite(tool string) string {
	return fmt.Sprintf("call rejected: a hook replaced the input of %s by a value that is not a JSON object. Continue without this call.", tool)
}

func noCheckpoint(cause error) string {
	if errors.Is(cause, errRunIsOver) {
		return "call rejected: the run is over. Make no further calls."
	}
	line, _, _ := strings.Cut(cause.Error(), "\n")
	return fmt.Sprintf("call rejected: no checkpoint could be taken: %s. Make the call again; if it is rejected again, continue without it.", line)
}
