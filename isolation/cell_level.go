// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/jail"
)

// A WeakError says that the walls which were asked for cannot be had here.
type WeakError struct {
	// Asked is the weakest level that the run accepts, and Best what this machine offers.
	Asked, Best Level
	// Reasons say why each stronger level cannot be had, and what would mend that.
	Reasons []error
}

func (e *WeakError) Error() string {
	return fmt.Sprintf("isolation: walls of level %s are asked for, and this machine offers %s\n%v\n  next: mend that, or accept less by name: Isolation.Weakest, drover run --isolation %s",
		e.Asked, e.Best, errors.Join(e.Reasons...), e.Best)
}

// Unwrap gives the reasons.
func (e *WeakError) Unwrap() []error { return e.Reasons }

// decideLevel is the strongest level that can be had. A level that is weaker than asked for is an error.
func (i *Isolation) decideLevel(ctx context.Context) (Level, error) {
	if i.sandbox().Disabled {
		if i.Weakest != LevelHost {
			return 0, errors.New("isolation: Sandbox.Disabled means no walls at all\n  next: set Isolation.Weakest to LevelHost too, or use Development()")
		}
		return LevelHost, nil
	}
	best, reasons := Best(ctx)
	if i.Strongest > best {
		best = i.Strongest
	}
	if best > i.Weakest {
		return best, &WeakError{Asked: i.Weakest, Best: best, Reasons: reasons}
	}
	return best, nil
}

// Best is the strongest level that this machine offers to this user, and why the stronger ones cannot be
// had.
func Best(ctx context.Context) (Level, []error) {
	var reasons []error
	for _, try := range []struct {
		level     Level
		supported func(context.Context) error
	}{
		{LevelCell, func(ctx context.Context) error { return jail.Supported(ctx, "") }},
		{LevelLandlock, landlockSupported},
		{LevelSandbox, sandboxSupported},
	} {
		err := try.supported(ctx)
		if err == nil {
			return try.level, reasons
		}
		reasons = append(reasons, fmt.Errorf("  %s: %w", try.level, err))
	}
	return LevelHost, reasons
}

// sandboxSupported reports whether the CLI has a sandbox of its own here. Whether it works the CLI finds
// out, and refuses to start otherwise.
func sandboxSupported(context.Context) error {
	switch runtime.GOOS {
	case "linux", "darwin":
		return nil
	}
	return fmt.Errorf("the CLI has no sandbox on %s", runtime.GOOS)
}

// raise makes the walls of the cell's level.
func (c *Cell) raise(o *claude.Options) (walls, error) {
	switch c.level {
	case LevelCell:
		return c.jail(o)
	case LevelLandlock:
		return c.landlock(o)
	default:
		return c.open()
	}
}
