// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
	"github.com/drover-agents/drover/isolation/internal/landlock"
)

// A WeakError reports that the machine does not offer the required isolation level.
type WeakError struct {
	// Asked is the weakest level that the run accepts, and Best what this machine offers.
	Asked, Best Level
	// Reasons are why each stronger level is not available, and how to fix that.
	Reasons []error
}

func (e *WeakError) Error() string {
	return fmt.Sprintf("isolation: level %s is not available; best available: %s\n%v", e.Asked, e.Best, errors.Join(e.Reasons...))
}

// Advice implements [advice.Adviser].
func (e *WeakError) Advice() string {
	less := fmt.Sprintf("to accept less, set Isolation.Weakest (drover run --isolation %s)", e.Best)
	return strings.TrimPrefix(advice.Of(errors.Join(e.Reasons...))+"\n"+less, "\n")
}

// Unwrap gives the reasons.
func (e *WeakError) Unwrap() []error { return e.Reasons }

// Best is the strongest level that this machine offers to this user, and why the stronger ones cannot be had.
func Best(ctx context.Context) (Level, []error) { return thisMachine().best(ctx, LevelCell) }

// MountsByHandle reports whether a cell of this user mounts files by the handles that were checked. If not, it mounts
// them by name, compares them inside with the handles, and does not start if one differs.
func MountsByHandle(ctx context.Context) bool { return jail.MountsByHandle(ctx, "") }

// decideLevel is the strongest level that the machine has and the isolation wants, and why those that are
// stronger cannot be had. A level that is weaker than asked for is an error.
func (i *Isolation) decideLevel(ctx context.Context, m machine) (Level, []error, error) {
	if !i.Strongest.valid() || !i.Weakest.valid() {
		return 0, nil, advice.Wrap(fmt.Errorf("isolation: invalid level: Strongest=%s Weakest=%s", i.Strongest, i.Weakest),
			"choose Strongest and Weakest among the constants, LevelCell to LevelHost")
	}
	if i.Strongest > i.Weakest {
		return 0, nil, advice.Wrap(fmt.Errorf("isolation: Strongest is %s, and Weakest wants at least %s", i.Strongest, i.Weakest),
			"set Isolation.Weakest to %s too, if that level is enough", i.Strongest)
	}
	if i.sandbox().Disabled {
		if i.Weakest != LevelHost {
			return 0, nil, advice.Wrap(errors.New("isolation: Sandbox.Disabled means no isolation"), "set Isolation.Weakest to LevelHost too, or use Development()")
		}
		return LevelHost, nil, nil
	}
	best, reasons := m.best(ctx, i.Strongest)
	if best > i.Weakest {
		return 0, nil, &WeakError{Asked: i.Weakest, Best: best, Reasons: reasons}
	}
	return best, reasons, nil
}

// A machine is what decides which levels can be had.
type machine struct {
	goos string
	root bool
	// cell is why there is no jail, or nil.
	cell func(context.Context) error
	// landlock is the version of Landlock in the kernel, and helper why its helper cannot be had.
	landlock int
	helper   func() error
	// find is why a program cannot be found, or nil.
	find func(program string) error
}

func thisMachine() machine {
	return machine{
		goos: runtime.GOOS, root: os.Geteuid() == 0,
		cell:     func(ctx context.Context) error { return jail.Supported(ctx, "") },
		landlock: landlock.ABI(),
		helper: func() error {
			file, err := jail.HelperFile()
			if err != nil {
				return err
			}
			return file.Close()
		},
		find: func(program string) error {
			_, err := exec.LookPath(program)
			return err
		},
	}
}

// best is the strongest level from a given one on, and why the stronger ones cannot be had.
func (m machine) best(ctx context.Context, strongest Level) (Level, []error) {
	var reasons []error
	for level := strongest; level < LevelHost; level++ {
		err := m.has(ctx, level)
		if err == nil {
			return level, reasons
		}
		reasons = append(reasons, fmt.Errorf("  %s: %w", level, err))
	}
	return LevelHost, reasons
}

// has is why a level cannot be had, or nil.
func (m machine) has(ctx context.Context, level Level) error {
	switch level {
	case LevelCell:
		return m.cell(ctx)
	case LevelLandlock:
		return m.hasLandlock()
	case LevelSandbox:
		return m.hasSandbox()
	}
	return nil
}

// landlockTCP is the first version of Landlock with TCP rules. Without them tools would reach all, against the policy.
const landlockTCP = 4

func (m machine) hasLandlock() error {
	switch {
	case m.goos != "linux":
		return advice.Wrap(fmt.Errorf("%s has no Landlock", m.goos), "run on Linux")
	case m.landlock == 0:
		return advice.Wrap(errors.New("the kernel has no Landlock"), "use Linux 6.7 or newer, with landlock in its lsm= list")
	case m.landlock < landlockTCP:
		return advice.Wrap(fmt.Errorf("the Landlock of this kernel has version %d, and only version %d limits the network", m.landlock, landlockTCP),
			"use Linux 6.7 or newer")
	case m.root:
		return advice.Wrap(errors.New("with Landlock too much is open to root"), "run as an ordinary user")
	}
	return m.helper()
}

// hasSandbox reports whether the CLI has its own sandbox here. The CLI refuses to start if that does not work.
func (m machine) hasSandbox() error {
	switch m.goos {
	case "darwin":
		return nil
	case "linux":
		return m.hasSandboxPrograms()
	}
	return advice.Wrap(fmt.Errorf("the CLI has no sandbox on %s", m.goos), "run on Linux or macOS, or in a container")
}

func (m machine) hasSandboxPrograms() error {
	var missing []string
	for _, program := range []struct{ file, name string }{{"bwrap", "bubblewrap"}, {"socat", "socat"}} {
		if m.find(program.file) != nil {
			missing = append(missing, program.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := strings.Join(missing, " and ")
	return advice.Wrap(fmt.Errorf("the CLI's own sandbox needs %s", names), "install %s", names)
}

func (c *Cell) raise(p Program) (isolator, error) {
	switch c.level {
	case LevelCell:
		return c.jail(p)
	case LevelLandlock:
		return c.landlock(p)
	default:
		return c.raiseNone()
	}
}
