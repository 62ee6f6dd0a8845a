// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// drainSilence is how long a reader waits for more output once the program has ended. Only a
// descendant that kept the pipe can make it wait; a pipe nobody holds ends at once.
const drainSilence = 200 * time.Millisecond

// childEnds are the program's ends of its pipes; they are closed here once it has them.
type childEnds struct{ files []*os.File }

func (c *childEnds) close() {
	for _, f := range c.files {
		_ = f.Close()
	}
}

// openPipes makes the three standard pipes. os.Pipe and not exec.Cmd's own pipes, because those
// are closed by Wait while somebody may still be reading.
func openPipes() (*inPipe, *outPipe, *outPipe, *childEnds, error) {
	var all []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			(&childEnds{all}).close()
			return nil, nil, nil, nil, fmt.Errorf("making pipes: %w", err)
		}
		all = append(all, r, w)
	}
	ends := &childEnds{[]*os.File{all[0], all[3], all[5]}}
	return &inPipe{file: all[1]}, &outPipe{file: all[2]}, &outPipe{file: all[4]}, ends, nil
}

// An inPipe is the writing end of the program's standard input.
type inPipe struct {
	file  *os.File
	ended atomic.Bool
}

// Write writes b. It gives [ErrEnded] once the program has ended, also to a write that was
// blocked at that moment.
func (p *inPipe) Write(b []byte) (int, error) {
	if p.ended.Load() {
		return 0, ErrEnded
	}
	n, err := p.file.Write(b)
	switch {
	case err == nil:
		return n, nil
	case isBrokenPipe(err), p.ended.Load() && errors.Is(err, os.ErrDeadlineExceeded):
		return n, fmt.Errorf("%w: %w", ErrEnded, err)
	default:
		return n, err
	}
}

// Close closes the pipe. A blocked Write returns with os.ErrClosed. Closing again does nothing.
func (p *inPipe) Close() error {
	if err := p.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func (p *inPipe) programEnded() {
	p.ended.Store(true)
	// Where deadlines do not work (Windows) closing is what wakes a writer.
	if p.file.SetWriteDeadline(time.Unix(1, 0)) != nil {
		_ = p.file.Close()
	}
}

// An outPipe is the reading end of the program's standard output or error. It closes itself when
// it has reported io.EOF.
type outPipe struct {
	file  *os.File
	mu    sync.Mutex // held around "look at ended, set the deadline"
	ended bool
	eof   atomic.Bool
}

// Read reads what the program wrote.
func (p *outPipe) Read(b []byte) (int, error) {
	if p.eof.Load() {
		return 0, io.EOF
	}
	p.extend()
	n, err := p.file.Read(b)
	if err == nil || n > 0 {
		return n, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) || p.eof.Load() {
		p.eof.Store(true)
		_ = p.file.Close()
		return 0, io.EOF
	}
	return 0, err
}

// extend gives a program that has ended another moment of silence.
func (p *outPipe) extend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = p.file.SetReadDeadline(time.Now().Add(drainSilence))
	}
}

func (p *outPipe) programEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.file.SetReadDeadline(time.Now().Add(drainSilence)) != nil {
		// No deadlines here (Windows, where the job object has ended all who held the pipe):
		// the reader sees the end of the pipe by itself.
		return
	}
}
