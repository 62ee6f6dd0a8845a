// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package terminal

import (
	"errors"
	"os"
)

// canLive is false: this system has no live view yet. It shows lines, and asks between them.
const canLive = false

// A keyboard is never made here.
type keyboard struct{}

func newKeyboard(*os.File) *keyboard { return new(keyboard) }

func (*keyboard) silence()           {}
func (*keyboard) listen()            {}
func (*keyboard) restore()           {}
func (*keyboard) key() (byte, error) { return 0, errors.ErrUnsupported }
func (*keyboard) skipSequence() bool { return false }

func inForeground(int) bool { return true }

func notifyTerminal(chan os.Signal) {}
