// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// handoffWait bounds the wait for the helper, which needs milliseconds.
const handoffWait = 30 * time.Second

// A Handoff is the socket over which the helper hands out its listeners and reports whether the program
// runs. Give Child to the child, close it once the child has it, then call Receive.
type Handoff struct {
	Child *os.File
	conn  *net.UnixConn
	// held, if not nil, gets the mount namespace of a helper that waits until it returns.
	held func(namespace *os.File) error
}

// NewHandoff makes one. Close it.
func NewHandoff() (*Handoff, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "handoff")
	defer func() { _ = ours.Close() }()
	child := os.NewFile(uintptr(pair[1]), "handoff child")
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = child.Close()
		return nil, fmt.Errorf("opening a socket pair: %w", err)
	}
	return &Handoff{Child: child, conn: conn.(*net.UnixConn)}, nil
}

// Close closes both ends. Listeners that were received stay open.
func (h *Handoff) Close() {
	_ = h.Child.Close()
	_ = h.conn.Close()
}

// errNoReport is returned by Receive if the helper ended without a word: it was killed, or whatever was to start it failed.
var errNoReport = errors.New("the cell ended before its program ran")

// Receive waits until the program runs and returns the listeners, in order. The caller closes them.
func (h *Handoff) Receive(ctx context.Context, want int) ([]net.Listener, error) {
	_ = h.conn.SetReadDeadline(time.Now().Add(handoffWait))
	stop := context.AfterFunc(ctx, func() { _ = h.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var files []*os.File
	defer func() { closeAll(files) }()
	for ready := false; ; {
		word, sent, err := h.message()
		files = append(files, sent...)
		switch {
		case err != nil:
			return nil, errors.Join(ctx.Err(), fmt.Errorf("waiting for the cell's helper: %w", err))
		case len(word) > 1 && word[0] == 'E':
			return nil, fmt.Errorf("in the cell: %s: %w", word[2:], unix.Errno(word[1]))
		case len(word) == 0 && (!ready || len(files) != want):
			return nil, errNoReport
		case len(word) == 0:
			return listenersOf(files)
		}
		ready = true
		if h.held == nil {
			continue
		}
		if files, err = h.release(files); err != nil {
			return nil, err
		}
	}
}

// release lets a helper go on that has sent its mount namespace as the last of files, and returns the others.
func (h *Handoff) release(files []*os.File) ([]*os.File, error) {
	if len(files) == 0 {
		return files, errNoReport
	}
	last := len(files) - 1
	defer func() { _ = files[last].Close() }()
	if err := h.held(files[last]); err != nil {
		return files[:last], err
	}
	_, err := h.conn.Write([]byte{1})
	return files[:last], err
}

// message reads one message. An empty one is the end.
func (h *Handoff) message() ([]byte, []*os.File, error) {
	word, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*(MaxListen+1)))
	n, controlled, _, _, err := h.conn.ReadMsgUnix(word, control)
	if errors.Is(err, io.EOF) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlled])
	if err != nil {
		return nil, nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	return word[:n], files, nil
}

// listenersOf makes listeners of files; the files can be closed then.
func listenersOf(files []*os.File) ([]net.Listener, error) {
	var all []net.Listener
	for _, f := range files {
		l, err := net.FileListener(f)
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
			return nil, fmt.Errorf("taking over a listener of the cell: %w", err)
		}
		all = append(all, l)
	}
	return all, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
