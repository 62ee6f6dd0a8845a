// SPDX-License-Identifier: Apache-2.0

package isolation

// Development has no isolation: tools reach every host and every file of the user, and see the host's
// variables but for sensitive ones. Home and credentials stay private. It is for disposable machines only.
func Development() *Isolation {
	return &Isolation{
		Network:        &NetworkPolicy{AllowedDomains: []string{"*"}, AllowLocalhost: true, AllowLocalBinding: true},
		Sandbox:        &Sandbox{Disabled: true},
		IncludeHostEnv: true,
		Weakest:        LevelHost,
	}
}

// Autonomous is for unattended agents in a permission mode that asks nothing: no network and no files but the workspace.
func Autonomous() *Isolation {
	return &Isolation{Network: NoNetwork(), Sandbox: &Sandbox{}, Weakest: LevelCell}
}
