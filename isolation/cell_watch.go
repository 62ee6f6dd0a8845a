// SPDX-License-Identifier: Apache-2.0

package isolation

import "github.com/drover-agents/drover/internal/jail"

// A confinement keeps one start of the CLI within the limits that no resource limit of the kernel
// expresses.
type confinement struct{}

func (c *Cell) confine(*jail.Spec) (*confinement, error) { return &confinement{}, nil }

func (*confinement) watch(int, <-chan struct{}, func() error) {}
func (*confinement) release() error                           { return nil }
