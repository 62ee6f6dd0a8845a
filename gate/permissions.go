// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/drover-agents/drover/event"

// Permissions are a permission policy over capabilities, as [FromCapabilities] takes it.
type Permissions struct {
	FileWrite, ShellExecute, NetworkAccess event.Verdict
}
