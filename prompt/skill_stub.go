// SPDX-License-Identifier: Apache-2.0

package prompt

// A Skill is a folder of instructions that the agent can load.
type Skill struct {
	Name, Description, Hash string
}
