// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package jail

import (
	"context"
	"net"
	"runtime"

	"github.com/drover-agents/drover/internal/proc"
)

// A Cell is a program that runs in a cell. There is none on this system.
type Cell struct{ *proc.Process }

// Listeners are the sockets opened inside.
func (*Cell) Listeners() []net.Listener { return nil }

// Init is the host pid of the first process inside.
func (*Cell) Init() int { return 0 }

// Start fails: it says what holds on this system.
func Start(ctx context.Context, s Spec) (*Cell, error) { return nil, Supported(ctx, s.Bwrap) }

// Supported says that no cell can be had.
func Supported(context.Context, string) error { return unsupportedOn(runtime.GOOS, runtime.GOARCH) }

// Pids returns the host pids of everything in a cell.
func Pids(int) []int { return nil }
