// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package terminal

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// canLive is true: this system has what the live view needs.
const canLive = true

// A keyboard is the terminal's input. While the live view is shown nothing typed is echoed, since it would be written into
// the status line; while a question is open keys are read one by one. Ctrl-C sends its signal all the time.
type keyboard struct {
	fd     int
	before unix.Termios
	usable bool
}

func newKeyboard(f *os.File) *keyboard {
	k := &keyboard{fd: int(f.Fd())}
	if t, err := unix.IoctlGetTermios(k.fd, getTermios); err == nil {
		k.before, k.usable = *t, true
	}
	return k
}

// silence turns the echo off and leaves the rest.
func (k *keyboard) silence() {
	t := k.before
	t.Lflag &^= unix.ECHO
	k.set(setTermios, t)
}

// listen has keys come without Enter, and throws away what was typed before. A read waits for a tenth of a second.
func (k *keyboard) listen() {
	t := k.before
	t.Lflag &^= unix.ECHO | unix.ICANON
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 0, 1
	k.set(setTermiosFlush, t)
}

func (k *keyboard) restore() { k.set(setTermios, k.before) }

// set changes the mode, unless another process group has the terminal: to touch it from the background stops the program.
func (k *keyboard) set(request uint, t unix.Termios) {
	if k.usable && inForeground(k.fd) {
		_ = unix.IoctlSetTermios(k.fd, request, &t) // a terminal that is gone needs no mode
	}
}

// inForeground reports whether the terminal is ours to use.
func inForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

var errNoTerminal = errors.New("the terminal is gone")

// key is the next key, or zero if none was typed in a tenth of a second. A terminal that has hung up is an error at once.
func (k *keyboard) key() (byte, error) {
	const least = 20 * time.Millisecond
	for range 5 {
		begun := time.Now()
		var b [1]byte
		n, err := unix.Read(k.fd, b[:])
		switch {
		case errors.Is(err, unix.EINTR):
			return 0, nil
		case err != nil:
			return 0, errors.Join(errNoTerminal, err)
		case n == 1:
			return b[0], nil
		case time.Since(begun) > least:
			return 0, nil
		}
	}
	return 0, errors.Join(errNoTerminal, io.EOF)
}

// skipSequence reads the rest of a key that sends more than one character, such as an arrow, whose last
// one is a letter and must not be taken for an answer. It reports false for the escape key alone.
func (k *keyboard) skipSequence() bool {
	kind, err := k.key()
	if err != nil || kind != '[' && kind != 'O' {
		return kind != 0
	}
	for {
		const firstFinal, lastFinal = '@', '~'
		if b, err := k.key(); err != nil || b == 0 || b >= firstFinal && b <= lastFinal {
			return true
		}
	}
}

// notifyTerminal notifies of a new size, and of the continuation after a suspension.
func notifyTerminal(c chan os.Signal) { signal.Notify(c, unix.SIGWINCH, unix.SIGCONT) }
