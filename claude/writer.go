// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"errors"
	"io"
	"sync"
)

// A lineWriter writes whole lines to the CLI, in the order in which they were given. A torn line
// ends the CLI, so there is one writer at a time; lines that wait for it are written together.
type lineWriter struct {
	w io.WriteCloser

	mu      sync.Mutex
	pending []byte
	spare   []byte        // the buffer that was written last, for reuse
	queued  uint64        // lines given so far
	written uint64        // lines handed to the operating system
	active  bool          // a goroutine is writing
	err     error         // why no more can be written
	moved   chan struct{} // closed when written or err changes; nil if no sender waits
}

var errInputClosed = errors.New("claude: the CLI's input is closed")

// send writes line and waits until the operating system has it, the context ends, or the writer
// fails. A line whose wait was cut short is still written whole, or not at all.
func (w *lineWriter) send(ctx context.Context, line []byte, taken func([]byte)) error {
	number, idle, err := w.enqueue(line, taken)
	if err != nil {
		return err
	}
	if idle {
		go w.flush()
	}
	return w.await(ctx, number)
}

// post writes line on the calling goroutine, or leaves it to the goroutine that is writing. It is for answers,
// whose failure the reader reports anyway.
func (w *lineWriter) post(line []byte) {
	if _, idle, err := w.enqueue(line, nil); err == nil && idle {
		w.flush()
	}
}

// enqueue calls taken, unless it is nil, with a line that will be written, in the order of the lines.
func (w *lineWriter) enqueue(line []byte, taken func([]byte)) (number uint64, idle bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, false, w.err
	}
	if taken != nil {
		taken(line)
	}
	w.pending = append(append(w.pending, line...), '\n')
	w.queued++
	idle = !w.active
	w.active = true
	return w.queued, idle, nil
}

// flush writes until no line is pending.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && len(w.pending) > 0 {
		batch, upTo := w.pending, w.queued
		w.pending = w.spare[:0]
		w.mu.Unlock()
		_, err := w.w.Write(batch)
		w.mu.Lock()
		w.spare = reusable(batch)
		if err != nil && w.err == nil {
			w.err = err
		}
		if err == nil {
			w.written = upTo
		}
		w.wakeLocked()
	}
	w.active = false
}

// reusable keeps a buffer for the next batch unless one large line has made it big.
func reusable(buf []byte) []byte {
	if cap(buf) > 1<<20 {
		return nil
	}
	return buf
}

func (w *lineWriter) wakeLocked() {
	if w.moved != nil {
		close(w.moved)
		w.moved = nil
	}
}

func (w *lineWriter) await(ctx context.Context, number uint64) error {
	for {
		w.mu.Lock()
		if w.written >= number {
			w.mu.Unlock()
			return nil
		}
		if w.err != nil {
			defer w.mu.Unlock()
			return w.err
		}
		if w.moved == nil {
			w.moved = make(chan struct{})
		}
		moved := w.moved
		w.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close refuses further lines with reason and closes the CLI's input. It breaks off a write that the CLI does not read.
func (w *lineWriter) close(reason error) error {
	w.mu.Lock()
	already := w.err != nil
	if !already {
		w.err = reason
		w.wakeLocked()
	}
	w.mu.Unlock()
	if already && errors.Is(reason, errInputClosed) {
		return nil
	}
	return w.w.Close()
}
