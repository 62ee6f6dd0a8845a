// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package jail

import (
	"context"
	"net"
	"os"
	"runtime"

	"github.com/drover-agents/drover/internal/proc"
)

// A Cell is a program that runs in a cell. This system has no cells.
type Cell struct{ *proc.Process }

// Listeners are the sockets opened inside.
func (*Cell) Listeners() []net.Listener { return nil }

// Init is the host pid of the first process inside.
func (*Cell) Init() int { return 0 }

// Start fails with what this system offers instead.
func Start(ctx context.Context, s Spec) (*Cell, error) { return nil, Supported(ctx, s.Bwrap) }

// Supported returns that there are no cells here.
func Supported(context.Context, string) error { return here() }

// MountsByHandle is false: there are no mounts.
func MountsByHandle(context.Context, string) bool { return false }

// Guardable reports whether a program can be guarded. None can here.
func Guardable(string) bool { return false }

// A Handoff is the socket over which the helper hands out its listeners. There is no helper here.
type Handoff struct{ Child *os.File }

// NewHandoff fails.
func NewHandoff() (*Handoff, error) { return nil, here() }

// Close does nothing.
func (*Handoff) Close() {}

// Receive fails.
func (*Handoff) Receive(context.Context, int) ([]net.Listener, error) { return nil, here() }

// Arguments returns nil.
func (Launch) Arguments() []string { return nil }

// HelperFile fails.
func HelperFile() (*os.File, error) { return nil, here() }

// DataFile fails.
func DataFile([]byte) (*os.File, error) { return nil, here() }

// Filter is empty: the calls of this system are not known.
func Filter(bool) []byte { return nil }

// SharedNetworkFilter is empty too.
func SharedNetworkFilter() []byte { return nil }

// SystemPaths returns nil.
func SystemPaths() []string { return nil }

func here() error { return UnsupportedOn(runtime.GOOS, runtime.GOARCH) }
