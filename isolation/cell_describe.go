// SPDX-License-Identifier: Apache-2.0

package isolation

// describe says what holds and what does not.
func (c *Cell) describe(upstream string, leftOut []string) Walls {
	return Walls{Level: c.level, Upstream: upstream, LeftOut: leftOut, Enforced: []string{}}
}
