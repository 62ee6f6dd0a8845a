// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"io"
	"os"
	"sync"
)

// pipeCapacity is what a pipe of the operating system holds on Linux.
const pipeCapacity = 64 << 10

// A pipe is an in-memory pipe that behaves like a real one: it holds a limited number of bytes, a
// writer waits for space, a reader gets the available bytes, and either end can be closed.
type pipe struct {
	mu      sync.Mutex
	changed sync.Cond
	buf     []byte
	wclosed bool // no more will be written: EOF after the buffered bytes
	rclosed bool // no more will be read: writes fail
}

func newPipe() *pipe {
	p := &pipe{}
	p.changed.L = &p.mu
	return p
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.wclosed && !p.rclosed {
		p.changed.Wait()
	}
	if p.rclosed {
		return 0, os.ErrClosed
	}
	if len(p.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.buf)
	p.buf = p.buf[n:]
	p.changed.Broadcast()
	return n, nil
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	written := 0
	for len(b) > 0 {
		for len(p.buf) >= pipeCapacity && !p.wclosed && !p.rclosed {
			p.changed.Wait()
		}
		if p.wclosed || p.rclosed {
			return written, io.ErrClosedPipe
		}
		n := min(len(b), pipeCapacity-len(p.buf))
		p.buf = append(p.buf, b[:n]...)
		b = b[n:]
		written += n
		p.changed.Broadcast()
	}
	return written, nil
}

// Close closes the writing end.
func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wclosed = true
	p.changed.Broadcast()
	return nil
}

func (p *pipe) closeRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rclosed = true
	p.changed.Broadcast()
}
