// SPDX-License-Identifier: Apache-2.0

package isolation

// This file has every text of the package that a model reads. They are lines in the output of a command.
const (
	textOutputCut = "[%d bytes before this line are left out]\n"
	textTimeout   = "the command was stopped after %v. Make it faster, or run less of it"
)
