// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
)

func TestPipe_WriterWaitsForSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe()
		sent := bytes.Repeat([]byte("x"), pipeCapacity+1)
		done := false
		go func() {
			if n, err := p.Write(sent); n != len(sent) || err != nil {
				t.Errorf("wrote %d bytes (%v), want %d", n, err, len(sent))
			}
			done = true
			_ = p.Close()
		}()
		synctest.Wait()
		if done {
			t.Fatalf("a write of %d bytes did not wait, though the pipe holds %d", len(sent), pipeCapacity)
		}
		if n, err := p.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Fatalf("read %d bytes (%v), want 1", n, err)
		}
		synctest.Wait()
		if !done {
			t.Error("the write did not go on after a read made room")
		}
		rest, err := io.ReadAll(p)
		if len(rest) != pipeCapacity || err != nil {
			t.Errorf("read the other %d bytes (%v), want %d", len(rest), err, pipeCapacity)
		}
	})
}

func TestPipe_ReaderWaitsForBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe()
		var got []byte
		go func() { got, _ = io.ReadAll(p) }()
		synctest.Wait()
		_, _ = p.Write([]byte("half "))
		synctest.Wait()
		_, _ = p.Write([]byte("whole"))
		_ = p.Close()
		synctest.Wait()
		if string(got) != "half whole" {
			t.Errorf("read %q, want all that was written before the end", got)
		}
	})
}

func TestPipe_CloseOfEitherEnd(t *testing.T) {
	cases := []struct {
		name        string
		close       func(*pipe)
		left        string // what a reader still gets
		read, write error
	}{
		{"the writer closes", func(p *pipe) { _ = p.Close() }, "left", io.EOF, io.ErrClosedPipe},
		{"the reader closes", (*pipe).closeRead, "", os.ErrClosed, io.ErrClosedPipe},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPipe()
			_, _ = p.Write([]byte("left"))
			c.close(p)
			c.close(p) // again is harmless
			if _, err := p.Write([]byte("x")); !errors.Is(err, c.write) {
				t.Errorf("write: got %v, want %v", err, c.write)
			}
			buf := make([]byte, 10)
			if c.left != "" {
				if n, err := p.Read(buf); string(buf[:n]) != c.left || err != nil {
					t.Errorf("read: got %q (%v), want %q", buf[:n], err, c.left)
				}
			}
			if _, err := p.Read(buf); !errors.Is(err, c.read) {
				t.Errorf("read at the end: got %v, want %v", err, c.read)
			}
		})
	}
}

func TestPipe_CloseWakesReaderAndWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty, full := newPipe(), newPipe()
		_, _ = full.Write(make([]byte, pipeCapacity))
		var readErr, writeErr error
		go func() { _, readErr = empty.Read(make([]byte, 1)) }()
		go func() { _, writeErr = full.Write([]byte("x")) }()
		synctest.Wait()
		_ = empty.Close()
		full.closeRead()
		synctest.Wait()
		if !errors.Is(readErr, io.EOF) || !errors.Is(writeErr, io.ErrClosedPipe) {
			t.Errorf("the reader woke with %v and the writer with %v, want EOF and a closed pipe", readErr, writeErr)
		}
	})
}
