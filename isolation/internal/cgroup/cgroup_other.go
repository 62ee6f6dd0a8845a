// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import (
	"fmt"
	"runtime"
	"time"

	"github.com/drover-agents/drover/advice"
)

// A Group exists on Linux only.
type Group struct{}

// New fails: there are no control groups on this system.
func New(string, Limits) (*Group, error) {
	return nil, advice.Wrap(fmt.Errorf("%w: %s has none", ErrUnavailable, runtime.GOOS),
		"run on Linux, or without limits on a cell's memory and processes")
}

// Sweep finds nothing.
func Sweep() int { return 0 }

// Add does nothing.
func (*Group) Add(...int) error { return nil }

// MemoryPeak is not known.
func (*Group) MemoryPeak() (int64, bool) { return 0, false }

// OOMKills is not known.
func (*Group) OOMKills() (int64, bool) { return 0, false }

// ForksRefused is not known.
func (*Group) ForksRefused() (int64, bool) { return 0, false }

// CPUTime is not known.
func (*Group) CPUTime() (time.Duration, bool) { return 0, false }

// Close does nothing.
func (*Group) Close() error { return nil }
