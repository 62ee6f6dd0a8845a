// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
	"github.com/drover-agents/drover/launch"
)

func (c *Cell) spawnCommand(ctx context.Context, o ExecOptions, cmd launch.Command) (launch.Process, error) {
	if c.level == LevelHost {
		return (&openIsolator{cell: c}).spawn(ctx, cmd)
	}
	mounts, err := c.commandMounts(o)
	if err != nil {
		return nil, err
	}
	if c.level == LevelLandlock {
		if folder := replaceable(mounts, c.cli); c.cli != "" && folder != "" {
			return nil, advice.Wrap(fmt.Errorf("isolation: the CLI %s is in %s, where a command could replace it", c.cli, folder),
				"install the CLI elsewhere, or set ExecOptions.ReadOnly")
		}
		return (&landlockIsolator{cell: c, mounts: mounts}).start(ctx, cmd, cmd.Path, mounts)
	}
	mounts, _ = c.shielded(mounts)
	spec := c.jailSpec(cmd.Path, cmd, mounts)
	spec.Nested = false
	return c.start(ctx, spec)
}

func (c *Cell) commandMounts(o ExecOptions) ([]jail.Mount, error) {
	m := c.newMounts(!o.ReadOnly)
	sandbox := c.isolation.sandbox()
	for _, path := range sandbox.WritablePaths {
		m.add(path, false, "Sandbox.WritablePaths")
	}
	for _, path := range o.Program.AddDirs {
		m.add(path, false, "AddDirs")
	}
	for _, path := range sandbox.ReadablePaths {
		m.addReadOnly(path, "Sandbox.ReadablePaths")
	}
	return m.checked()
}
