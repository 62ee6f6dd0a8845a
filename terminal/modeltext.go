// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"strings"
)

// This file has every text of the package that a model reads.

const (
	deniedByUser    = "The user denied this call of %s." + afterUserDenial
	afterUserDenial = " Do not repeat it. Continue without it, or explain in your answer why you need it." // not shown to the user

	deniedForReason = "The user denied this call of %s. The user's reason: %s" + afterUserReason
	afterUserReason = "\nDo not repeat the call unchanged. Do what the reason says." // not shown to the user
)

// denial is what the model reads of a call that the user has denied, perhaps with a reason.
func denial(tool, reason string) string {
	if reason == "" {
		return fmt.Sprintf(deniedByUser, tool)
	}
	return fmt.Sprintf(deniedForReason, tool, reason)
}

// withoutInstruction is the reason of a denial as the user sees it.
func withoutInstruction(reason string) string {
	return strings.TrimSuffix(strings.TrimSuffix(reason, afterUserDenial), afterUserReason)
}
