// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package treewatch

import (
	"fmt"
	"os"
	"runtime"
)

// A Watcher watches a tree. It is not supported on this system.
type Watcher struct{}

// New fails: this system cannot report every change of a tree.
func New(dir string, opts *Options) (*Watcher, error) { return nil, errHere() }

// Add does nothing.
func (*Watcher) Add(dir string) error { return errHere() }

// AddFile does nothing.
func (*Watcher) AddFile(path string) error { return errHere() }

// Take does nothing.
func (*Watcher) Take() (Hints, error) { return Hints{}, errHere() }

// Settle does nothing.
func (*Watcher) Settle(read []Reading) ([]bool, error) { return nil, errHere() }

// Close does nothing.
func (*Watcher) Close() error { return nil }

// Unwritten is not available on this system.
func Unwritten(f *os.File) (bool, error) { return false, errHere() }

func errHere() error { return fmt.Errorf("%w: %s", ErrUnsupported, runtime.GOOS) }
