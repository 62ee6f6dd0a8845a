// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/safetext"
)

const (
	stderrTailBytes = 4 << 10
	stderrLineBytes = 64 << 10
)

// A stderrReader drains the CLI's standard error, so that the CLI never blocks on it, hands whole
// lines to a callback, and keeps the end for error messages.
type stderrReader struct {
	onLine func(string)
	log    *slog.Logger
	redact *safetext.Redactor
	done   chan struct{}

	mu   sync.Mutex
	tail []byte
	seen int // lines so far
}

// Standard error has no mark at the end of a turn: it counts as complete after a pause.
const (
	stderrQuiet = 20 * time.Millisecond
	stderrLimit = 250 * time.Millisecond
)

// await waits for a pause in the output of the CLI, within a limit.
func (s *stderrReader) await() {
	limit := time.After(stderrLimit)
	quiet := time.Tick(stderrQuiet)
	for before := -1; before != s.lines(); {
		before = s.lines()
		select {
		case <-quiet:
		case <-s.done:
			return
		case <-limit:
			return
		}
	}
}

func (s *stderrReader) lines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *stderrReader) run(r io.Reader) {
	defer close(s.done)
	if r == nil {
		return
	}
	buf := bufio.NewReaderSize(r, stderrLineBytes)
	for {
		line, err := buf.ReadSlice('\n') // a line beyond the buffer comes in pieces
		if len(line) > 0 {
			s.take(strings.TrimRight(string(line), "\r\n"))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (s *stderrReader) take(line string) {
	clean := s.redact.String(line) // before the tail is cut: half a secret is not recognised
	s.mu.Lock()
	s.seen++
	s.tail = append(append(s.tail, clean...), '\n')
	if extra := len(s.tail) - stderrTailBytes; extra > 0 {
		s.tail = append(s.tail[:0], s.tail[extra:]...)
	}
	s.mu.Unlock()
	if s.onLine != nil {
		s.call(line)
	}
}

// call runs the callback; its panic must not stop the draining.
func (s *stderrReader) call(line string) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("claude: Options.Stderr panicked", "panic", p)
		}
	}()
	s.onLine(line)
}

// text is the redacted end of what the CLI wrote.
func (s *stderrReader) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(string(s.tail))
}
