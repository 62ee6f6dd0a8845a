// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

// SystemArguments show the system inside.
func SystemArguments() []string { return systemArgs() }
