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
// descendant that kept the pipe can make it wait; a pipe that no process has open ends at once.
const drainSilence = 200 * time.Millisecond

// childEnds are the program's ends of its pipes; they are closed here once it has them.
type childEnds struct{ files []*os.File }

func (c *childEnds) close() {
	for _, f := range c.files {
		_ = f.Close()
	}
}

// openPipes makes the three standard pipes. os.Pipe and not exec.Cmd's own pipes, because those
// are closed by Wait while a reader may still be reading.
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

// Write writes b. It gives [ErrEnded] once the program has ended, also to a write that was blocked at that moment.
func (p *inPipe) Write(b []byte) (int, error) {
	if p.ended.Load() {
		return 0, ErrEnded
	}
	n, err := p.file.Write(b)
	switch {
	case err == nil:
		return n, nil
	case isBrokenPipe(err), p.ended.Load() && errors.Is(err, os.ErrClosed):
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

// programEnded wakes a blocked writer, which may otherwise wait for a descendant that keeps the pipe.
func (p *inPipe) programEnded() {
	p.ended.Store(true)
	_ = p.file.Close()
}

// An outPipe is the reading end of the program's standard output or error. It closes itself when it has reported io.EOF.
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
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n = p.rest(b)
	}
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

// rest reads what is in the pipe right now. A deadline alone proves nothing: on a busy machine it
// may have passed before the read so much as looked.
func (p *outPipe) rest(b []byte) int {
	_ = p.file.SetReadDeadline(time.Time{})
	n, err := readNow(p.file, b)
	if err != nil {
		return 0
	}
	return n
}

// programEnded starts the time of silence. Where files have no deadlines (Windows) nothing needs to
// be done: the job object has ended all processes with the pipe, and the reader sees its end by itself.
func (p *outPipe) programEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	_ = p.file.SetReadDeadline(time.Now().Add(drainSilence))
}
