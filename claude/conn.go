// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/spill"
)

// A conn speaks the line protocol with one process. It owns two goroutines, the reader and the
// drain of standard error, and one for each request of the CLI that is being answered.
//
// The reader never blocks: messages go to a queue that spills to disk, requests of the CLI are answered on goroutines of
// their own, answers to our requests are handed over by a channel with room for them.
type conn struct {
	proc    Process
	out     *lineWriter
	in      *lines.Reader
	log     *slog.Logger
	started time.Time
	stderr  *stderrReader
	secrets noSecrets
	queue   *spill.Queue
	turns   *turnTracker
	calls   callTable     // our requests that wait for an answer
	asked   *handlerTable // the CLI's requests being answered
	// prepare takes a request of the CLI, in the order of the lines, and returns what answers it. It must not block.
	prepare  func(ctx context.Context, request cliRequest) service
	recorder Recorder
	// mirror takes a transcript_mirror line. It must not block.
	mirror func(line []byte)
	// resulted is called at each result. It must not block.
	resulted func()

	// lazy is set while no consumer decodes messages: then the reader does not check them. For a
	// consumer that does, the check runs in parallel to its work.
	lazy atomic.Bool

	skipped string // the last line of the open turn that did not begin like an object; for the reader alone

	done chan struct{} // closed when the process is reaped and everything above is settled

	mu         sync.Mutex
	closing    bool           // the owner asked for the end
	ready      bool           // initialize was answered
	lastFailed *ResultMessage // an error result that is the last message so far
	end        error          // why the connection ended; nil for an orderly end
	gone       error          // what calls get that come too late, orderly end or not
}

// Tags of queue entries. Lines of the CLI have the tag of their [Line], which is far below.
const (
	tagMalformed uint64 = 1<<63 + iota // a line that is not JSON
	tagTurnEnd                         // the payload is a turnMark
	tagStreamEnd                       // Client.fed has the end of the stream of prompts
)

// read takes lines until the CLI has ended, then settles everything.
func (c *conn) read() {
	var err error
	for {
		var line []byte
		line, err = c.in.Next()
		if err != nil {
			break
		}
		c.take(line)
	}
	c.settle(err)
}

// take handles one line. Only lines that start like an object are the CLI's: some builds print other text on stdout.
func (c *conn) take(line []byte) {
	if len(line) == 0 || line[0] != '{' {
		c.log.Debug("claude: skipped a line that is not JSON", "line", c.in.Number())
		c.skipped = string(line[:min(len(line), 200)])
		c.turns.malformed(false)
		return
	}
	look, checked := peekLine, true
	if c.lazy.Load() {
		look, checked = glanceLine, false
	}
	head, err := look(line)
	if err != nil {
		c.malformed(line, err)
		return
	}
	switch head.typ {
	case "control_request":
		c.request(head)
	case "control_response":
		c.response(head)
	case "control_cancel_request":
		c.asked.cancel(head.requestID)
	case "keep_alive":
	case "transcript_mirror":
		c.mirror(line)
	default:
		c.message(Line{head: head, raw: line, checked: checked})
	}
}

// malformed keeps a line that is not JSON as a message, except for the torn end of a CLI that died.
func (c *conn) malformed(line []byte, err error) {
	if c.in.Last() {
		c.log.Debug("claude: dropped a torn last line", "line", c.in.Number(), "bytes", len(line))
		return
	}
	c.log.Warn("claude: a line of the CLI is not valid JSON", "line", c.in.Number(), "error", err)
	c.recorder.Message(Line{raw: line})
	c.push(tagMalformed, line)
	c.turns.malformed(bytes.HasPrefix(line, []byte(`{"type":"result"`)))
}

// message keeps a line for the consumer and notes what the turn rule needs of it. The line is kept
// first, so that a turn never ends before its last message.
func (c *conn) message(line Line) {
	head := line.head
	c.recorder.Message(line)
	switch {
	case head.typ == "result":
		c.noteResult(line)
		return
	case (head.typ == "assistant" || head.typ == "stream_event") && !head.hasParent:
		c.turns.activity()
	}
	if !followsResult[head.subtype] {
		c.clearFailed()
	}
	c.push(line.tag(), line.raw)
	if head.typ == "system" {
		c.system(line)
	}
}

// system notes what the turn rule needs from system messages.
func (c *conn) system(line Line) {
	switch line.Subtype() {
	case "session_state_changed", "task_started", "task_notification", "task_updated":
	default:
		return
	}
	m, err := line.Decode()
	if err != nil {
		return
	}
	switch m := m.(type) {
	case *SessionStateChanged:
		c.turns.sessionState(m.State)
	case *TaskStarted:
		c.turns.task(m.TaskID, m.TaskType, true)
	case *TaskNotification:
		c.turns.task(m.TaskID, "", false)
	case *TaskUpdated:
		if m.Patch.Ended() {
			c.turns.task(m.TaskID, "", false)
		}
	}
}

// followsResult are the system messages that may follow a result without meaning that the CLI went on.
var followsResult = map[string]bool{"session_state_changed": true, "session_writes_lost": true, "plugin_install": true}

// noteResult keeps a result, and remembers an error result: the exit with code 1 after it is not a crash.
func (c *conn) noteResult(line Line) {
	var failed *ResultMessage
	empty := false
	if m, err := line.Decode(); err == nil {
		if r, ok := m.(*ResultMessage); ok {
			if r.Failed() {
				failed = r
			}
			empty = failed == nil && r.NumTurns == 0 && r.Result == "" && r.LocalCommand == ""
		}
	}
	c.mu.Lock()
	c.lastFailed = failed
	c.mu.Unlock()
	c.push(line.tag(), line.raw)
	c.resulted()
	if !c.turns.isQuiet(empty) {
		c.turns.result()
	}
}

// clearFailed forgets an error result after a later message: if the CLI ends now, that is a crash.
func (c *conn) clearFailed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastFailed = nil
}

func (c *conn) push(tag uint64, item []byte) {
	if err := c.queue.Push(spill.Item{Data: item, Tag: tag}); err != nil && !errors.Is(err, spill.ErrClosed) {
		c.log.Error("claude: a message could not be kept", "error", err)
	}
}

// settle runs when no more lines will come: it reaps the process, finds out why it ended, and
// fails all pending calls with that reason.
func (c *conn) settle(readErr error) {
	if !errors.Is(readErr, io.EOF) {
		_ = c.proc.Kill()
	}
	status := c.reap()
	c.recorder.End()
	err := c.verdict(readErr, status)
	reason := c.setEnd(err, status)
	c.turns.stop()
	_ = c.out.close(reason)
	c.calls.fail(reason)
	c.asked.close()
	c.queue.Close(err)
	close(c.done)
}

// setEnd notes why the connection ended, and returns the error of calls that can have no answer any
// more. They fail also after an orderly end of the CLI.
func (c *conn) setEnd(err error, status ExitStatus) error {
	gone := err
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && c.closing:
		gone = ErrClosed
	case err == nil:
		gone = c.processError(status, c.ready)
	}
	c.end, c.gone = err, gone
	return gone
}

// goneError is what a call gets after the end of the connection.
func (c *conn) goneError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone == nil {
		return ErrClosed
	}
	return c.gone
}

// exitGrace is how long a CLI that has closed its output may take to exit.
const exitGrace = 5 * time.Second

// reap waits for the process and for the end of its standard error.
func (c *conn) reap() ExitStatus {
	timer := time.AfterFunc(exitGrace, func() { _ = c.proc.Kill() })
	status := c.proc.Wait()
	timer.Stop()
	select {
	case <-c.stderr.done:
	case <-time.After(200 * time.Millisecond): // a grandchild holds the pipe
	}
	return status
}

// verdict returns why the connection ended; nil means in good order.
func (c *conn) verdict(readErr error, status ExitStatus) error {
	c.mu.Lock()
	closing, ready, failed := c.closing, c.ready, c.lastFailed
	c.mu.Unlock()
	var tooLong *lines.TooLongError
	switch {
	case errors.As(readErr, &tooLong):
		return &MessageTooLargeError{Limit: tooLong.Limit}
	case closing:
		return nil
	case !errors.Is(readErr, io.EOF):
		return advice.Wrap(fmt.Errorf("claude: reading from the CLI: %w", readErr),
			"start again; if the spawner is your own, see why its Stdout fails")
	case failed != nil:
		return failed.errWithout(c.secrets)
	case status.Code == 0 && ready && !c.turns.isOpen():
		return nil
	}
	return c.processError(status, ready)
}

func (c *conn) processError(status ExitStatus, ready bool) error {
	return &ProcessError{Status: status, During: c.phase(ready), After: time.Since(c.started), StderrTail: c.stderr.text()}
}

func (c *conn) phase(ready bool) string {
	switch {
	case !ready:
		return "initialize"
	case c.turns.isOpen():
		return "a turn"
	}
	return "idle"
}
