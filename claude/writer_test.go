// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A slowPipe takes a write only when it is let, like the input of a CLI that does not read.
type slowPipe struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	gate   chan struct{} // nil lets everything through
	closed chan struct{}
	once   sync.Once
}

func newSlowPipe(gate chan struct{}) *slowPipe {
	return &slowPipe{gate: gate, closed: make(chan struct{})}
}

func (p *slowPipe) Write(b []byte) (int, error) {
	if p.gate != nil {
		select {
		case <-p.gate:
		case <-p.closed:
			return 0, io.ErrClosedPipe
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *slowPipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *slowPipe) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Split(strings.TrimSuffix(p.buf.String(), "\n"), "\n")
}

func TestLineWriter_NeverTearsALine(t *testing.T) {
	p := newSlowPipe(nil)
	w := &lineWriter{w: p}
	var wg sync.WaitGroup
	const writers, each = 16, 200
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				line := []byte(strings.Repeat(fmt.Sprintf("%d.%d;", i, j), 50))
				if j%2 == 0 {
					w.post(line)
				} else if err := w.send(context.Background(), line, nil); err != nil {
					t.Errorf("send: %v", err)
				}
			}
		})
	}
	wg.Wait()
	next := map[string]int{}
	for _, line := range p.lines() {
		word, _, _ := strings.Cut(line, ";")
		if line != strings.Repeat(word+";", 50) {
			t.Fatalf("torn line: %q", line)
		}
		writer, number, _ := strings.Cut(word, ".")
		if want := fmt.Sprint(next[writer]); number != want {
			t.Fatalf("writer %s: line %s, want %s", writer, number, want)
		}
		next[writer]++
	}
	if len(next) != writers || next["0"] != each {
		t.Errorf("lines of %d writers, %d of the first; want %d, %d", len(next), next["0"], writers, each)
	}
}

func TestLineWriter_ContextEndsABlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe(make(chan struct{}))
		w := &lineWriter{w: p}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.send(ctx, []byte("first"), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("send to a full pipe: %v, want the context's error", err)
		}
		waiting := make(chan error, 1)
		go func() { waiting <- w.send(t.Context(), []byte("second"), nil) }()
		synctest.Wait()
		if err := w.close(errInputClosed); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-waiting; !errors.Is(err, errInputClosed) {
			t.Errorf("a send that waited got %v, want %v", err, errInputClosed)
		}
		if err := w.send(t.Context(), []byte("third"), nil); !errors.Is(err, errInputClosed) {
			t.Errorf("send after close: %v, want %v", err, errInputClosed)
		}
	})
}

func TestLineWriter_ReportsABrokenPipe(t *testing.T) {
	p := newSlowPipe(make(chan struct{}))
	_ = p.Close()
	w := &lineWriter{w: p}
	for range 2 {
		if err := w.send(t.Context(), []byte("x"), nil); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("send: %v, want %v", err, io.ErrClosedPipe)
		}
	}
	w.post([]byte("y")) // must not panic or block
}

func BenchmarkWriterPost(b *testing.B) {
	w := &lineWriter{w: discard{}}
	line := bytes.Repeat([]byte("x"), 300)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.post(line)
		}
	})
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }
