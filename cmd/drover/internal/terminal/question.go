// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

var _ gate.Approver = (*live)(nil)

var errClosed = errors.New("drover: the terminal is closed")

// Approve asks in the status line, one question at a time, and waits for a key. Keys count only after timeToSee, when the
// choices appear: a key that was typed for something else must not approve an unread question.
func (v *live) Approve(ctx context.Context, q gate.Question) (gate.Answer, error) {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return gate.Answer{}, ctx.Err()
	case <-v.over:
		return gate.Answer{}, errClosed
	}
	defer v.asked()
	v.ask(&question{Question: q, dir: v.lines.opts.Dir})
	select {
	case <-time.After(timeToSee):
	case <-ctx.Done():
		return gate.Answer{}, ctx.Err()
	case <-v.over:
		return gate.Answer{}, errClosed
	}
	v.listen()
	return v.answer(ctx, q)
}

// timeToSee is how long a question is there before keys count.
const timeToSee = 250 * time.Millisecond

// ask puts a question into the status line, without choices yet. Where that has no room for what is
// asked, all of it is shown above: a user must not approve what cannot be seen.
func (v *live) ask(q *question) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.question = q
	var above []string
	if _, left := q.keys(v.layout.width - 1); left < leastSubject {
		above = q.explained(v.layout.width)
	}
	v.drawLocked(above)
}

// listen offers the choices, and throws away what was typed before.
func (v *live) listen() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	v.question.open = true
	v.keyboard.listen() // first, so that no key is thrown away that answers what is drawn
	v.drawLocked(nil)
}

// asked takes the question off the screen.
func (v *live) asked() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.question = nil
	v.drawLocked(nil)
	if !v.closed {
		v.keyboard.silence()
	}
}

const (
	ctrlC  = 3
	escape = 27
)

func (v *live) answer(ctx context.Context, q gate.Question) (gate.Answer, error) {
	for {
		select {
		case <-ctx.Done():
			return gate.Answer{}, ctx.Err()
		case <-v.over:
			return gate.Answer{}, errClosed
		default:
		}
		key, err := v.keyboard.key()
		if err != nil {
			return gate.Answer{}, fmt.Errorf("drover: asking at the terminal: %w", err)
		}
		if ctx.Err() != nil {
			continue // it was typed when the question was no longer one
		}
		switch key {
		case 'y', 'Y':
			return gate.Answer{Verdict: event.Allow}, nil
		case 'a', 'A':
			return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
		case 'n', 'N':
			return gate.Answer{Reason: fmt.Sprintf(deniedByUser, q.Call.Name)}, nil
		case '?':
			v.explain()
		case escape:
			v.keyboard.skipSequence()
		case ctrlC:
			interruptSelf()
		}
	}
}

func (v *live) explain() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.question != nil {
		v.drawLocked(v.question.explained(v.layout.width))
	}
}

// A question is in the status line, or about to be.
type question struct {
	gate.Question
	dir  string
	open bool // keys count
}

const (
	choices      = "[y] once  [a] this run  [n] no  [?] why"
	shortChoices = "[y/a/n/?]"
	wideEnough   = 100 // columns; less has no room for a long question and words for the keys
)

// line is the question in one line. An open one always has its choices; what is asked about is cut to the room, with a note.
func (q *question) line(room int) string {
	what := q.what()
	keys, left := q.keys(room)
	if !q.open {
		keys = ""
	}
	if left < leastSubject {
		return cut(keys, room)
	}
	if !fits(what, left) {
		const note = "… (? shows all)"
		if left > 2*columns(note) {
			what = what[:prefix(what, left-columns(note))] + note
		}
	}
	return strings.TrimRight(cut(what, left)+"   "+keys, " ")
}

func (q *question) what() string {
	return fmt.Sprintf("  %s wants to %s", safe(name(q.Call.Name)), q.wish())
}

// keys are the choices as far as there is room for them, and how many columns they leave.
func (q *question) keys(room int) (keys string, left int) {
	keys = choices
	if columns(q.what())+3+columns(choices) > room && room < wideEnough {
		keys = shortChoices
	}
	return keys, room - columns(keys) - 3
}

func name(tool string) string {
	text, _ := toolName(tool)
	return text
}

// wish is what the call would do, in words for native tools.
func (q *question) wish() string {
	subject := safe((&lines{opts: Options{Dir: q.dir}}).subject(q.Call))
	verb := "be called"
	if native, ok := catalogue.Tools().Native(q.Call.Name); ok {
		verb = cmp.Or(native.Verb, verb)
	}
	return verb + ": " + cmp.Or(subject, "{}")
}

// explained is everything about the question, nothing clipped.
func (q *question) explained(width int) []string {
	var out []string
	add := func(label, text string) {
		rows, _ := wrap(text, width-12, 1<<20)
		for i, row := range rows {
			if i > 0 {
				label = ""
			}
			out = append(out, cut("  "+pad(label, 8)+"  ", width-2)+row)
		}
	}
	add("tool", q.Call.Name)
	if q.Call.AgentID != "" {
		add("subagent", q.Call.AgentID)
	}
	add("why", joinWords(q.Policy, q.Reason))
	add("needs", q.Needs.String()+"; risk: "+q.Risk.String())
	if q.Call.Description != "" {
		add("says", q.Call.Description)
	}
	var b bytes.Buffer
	if json.Indent(&b, q.Call.Input, "", " ") != nil {
		b.Reset()
		b.Write(q.Call.Input)
	}
	add("input", b.String())
	add("keys", "[y] allow it once  [a] allow this tool for the rest of the run  [n] deny it")
	return append(out, "")
}
