// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safetext"
)

// A Terminal is an [Approver] that asks a person at a terminal, one question at a time: yes, no (perhaps with a reason, which the
// model reads), always with this input, or always this tool. The end of the input denies, and so do three invalid answers in a row.
//
// The text of the model is shown with every terminal control character escaped. A long text is
// shortened, with a note. An answer that was begun before a question was shown never answers it:
// after a question was withdrawn, the next line is discarded.
type Terminal struct {
	in    *bufio.Reader
	out   io.Writer
	raw   io.Reader
	turn  chan struct{} // held while a question is shown
	over  chan struct{} // closed by Close
	close sync.Once

	// The holder of turn alone uses these.
	pending chan line // a read that a withdrawn question has left behind
}

type line struct {
	text string
	err  error
}

// TerminalApprover makes an approver of a terminal, or of another reader of lines and writer of text. It reads only while a
// question is open. Other writers to out, such as a log of events, may write between the lines of a question.
func TerminalApprover(in io.Reader, out io.Writer) *Terminal {
	return &Terminal{in: bufio.NewReader(in), raw: in, out: out, turn: make(chan struct{}, 1), over: make(chan struct{})}
}

// Close denies the open question and all later ones. A read that waits for the person is ended where
// the reader has read deadlines; elsewhere it ends with the next line.
func (t *Terminal) Close() error {
	t.close.Do(func() {
		close(t.over)
		if r, ok := t.raw.(interface{ SetReadDeadline(time.Time) error }); ok {
			_ = r.SetReadDeadline(time.Now()) // a terminal may have none, and then there is nothing to do
		}
	})
	return nil
}

var errTerminalClosed = errors.New("gate: the terminal approver is closed")

// Approve asks the question.
func (t *Terminal) Approve(ctx context.Context, q Question) (Answer, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-t.over:
		return Answer{}, errTerminalClosed
	}
	if _, err := io.WriteString(t.out, describe(q)+choices); err != nil {
		return Answer{}, fmt.Errorf("gate: asking at the terminal: %w", err)
	}
	return t.answer(ctx)
}

const (
	choices = "Allow it? [y]es, [n]o, no with a reason [n reason], [a]lways with this input, always this [t]ool: "
	// maxTries is the number of invalid answers that deny.
	maxTries = 3
)

func (t *Terminal) answer(ctx context.Context) (Answer, error) {
	for tries := 0; tries < maxTries; {
		stale := t.pending != nil
		got, err := t.read(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return Answer{Reason: noTerminal}, nil
		case err != nil:
			why := ""
			if cause := context.Cause(ctx); cause != nil && !errors.Is(ctx.Err(), cause) {
				why = ": " + safetext.Line(cause.Error())
			}
			_, _ = io.WriteString(t.out, "\n(no longer asked"+why+")\n")
			return Answer{}, err
		case stale:
			_, _ = io.WriteString(t.out, "That line was begun before this question was asked. "+choices)
			continue
		}
		if a, ok := parseAnswer(got); ok {
			return a, nil
		}
		if tries++; tries < maxTries {
			_, _ = io.WriteString(t.out, "Answer with y, n, a or t: ")
		}
	}
	return Answer{Reason: unclearAnswer}, nil
}

func parseAnswer(text string) (Answer, bool) {
	text = strings.TrimSpace(text)
	if word, reason, more := strings.Cut(text, " "); more && (strings.EqualFold(word, "n") || strings.EqualFold(word, "no")) {
		return Answer{Reason: fmt.Sprintf(personReason, strings.ToValidUTF8(strings.TrimSpace(reason), ""))}, true
	}
	switch strings.ToLower(text) {
	case "y", "yes":
		return Answer{Verdict: event.Allow}, true
	case "n", "no":
		return Answer{Reason: personRejected}, true
	case "a", "always":
		return Answer{Verdict: event.Allow, Remember: SameInput}, true
	case "t", "tool":
		return Answer{Verdict: event.Allow, Remember: SameTool}, true
	}
	return Answer{}, false
}

// read waits for the next line. A read cannot be interrupted, so it continues on its own
// goroutine after the caller has left; there is never more than one such read.
func (t *Terminal) read(ctx context.Context) (string, error) {
	if t.pending == nil {
		lines := make(chan line, 1)
		t.pending = lines
		go func() {
			text, err := readLine(t.in)
			lines <- line{text, err}
		}()
	}
	select {
	case got := <-t.pending:
		t.pending = nil
		return got.text, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	case <-t.over:
		return "", errTerminalClosed
	}
}

// readLine reads a line. What is longer than the buffer of r cannot be an answer, and reads as "".
func readLine(r *bufio.Reader) (string, error) {
	text, tooLong, err := r.ReadLine()
	got := string(text)
	for tooLong && err == nil {
		got = ""
		_, tooLong, err = r.ReadLine()
	}
	return got, err
}

// maxShown is how much of an input is shown, in characters.
const maxShown = 2000

func describe(q Question) string {
	var b strings.Builder
	who := "The agent"
	if q.Call.AgentID != "" {
		who = "Subagent " + shortened(q.Call.AgentID)
	}
	fmt.Fprintf(&b, "\n%s wants to call %s (risk: %s; needs: %s)\n", who, shortened(q.Call.Name), q.Risk, q.Needs)
	if q.Reason != "" {
		fmt.Fprintf(&b, "  why it is asked: %s\n", shortened(q.Reason))
	}
	fmt.Fprintf(&b, "  input: %s\n", shortened(compact(q.Call.Input)))
	return b.String()
}

func compact(input json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, input) != nil {
		return string(input)
	}
	return b.String()
}

func shortened(s string) string {
	total := utf8.RuneCountInString(s)
	if total <= maxShown {
		return safetext.Line(s)
	}
	shown := string([]rune(s)[:maxShown])
	return fmt.Sprintf("%s\n  [only the first %d of %d characters are shown; %d are hidden]", safetext.Line(shown), maxShown, total, total-maxShown)
}
