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
	"unicode/utf8"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

var _ gate.Approver = (*live)(nil)

var errClosed = errors.New("terminal: the view is closed")

// Approve asks in the status line, one question at a time, and waits for a key. Keys count only after timeToSee, when the
// choices appear: a key that was typed for something else must not approve an unread question.
func (v *live) Approve(ctx context.Context, q gate.Question) (a gate.Answer, err error) {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return gate.Answer{}, ctx.Err()
	case <-v.over:
		return gate.Answer{}, errClosed
	}
	defer func() { v.asked(ctx, q, err) }()
	opts := &v.lines.opts
	v.ask(&question{Question: q, opts: opts, change: opts.changeOf(q.Call, true)})
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

// ask puts a question into the status line, without choices yet, below the change that an edit would make. Where that
// has no room for what is asked, all of it is shown above: a user must not approve what cannot be seen.
func (v *live) ask(q *question) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.question = q
	v.lines.showed(q.Call.ID, q.change)
	above := append(v.laidOut(v.lines.flush()), v.layout.change(q.change, askedRows, " (? shows all)")...)
	if _, left := q.keys(v.layout.width - 1); left < leastSubject {
		above = append(above, q.explained(v.layout)...)
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

// asked takes the question off the screen, and shows an answer that came from elsewhere.
func (v *live) asked(ctx context.Context, q gate.Question, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.question = nil
	var above []string
	if elsewhere, is := errors.AsType[gate.AnsweredElsewhere](context.Cause(ctx)); is && err != nil {
		name, _ := tool.ShortName(q.Call.Name)
		above = v.laidOut([]row{{at: v.lines.since(event.Event{}), what: name, subject: elsewhere.Error()}})
	}
	v.drawLocked(above)
	if !v.closed {
		v.keyboard.silence()
	}
}

const (
	ctrlC     = 3
	ctrlH     = 8
	ctrlU     = 21
	escape    = 27
	space     = 32
	backspace = 127
)

// key waits for a key, as long as the question is one.
func (v *live) key(ctx context.Context) (byte, error) {
	for {
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-v.over:
			return 0, errClosed
		default:
		}
		key, err := v.keyboard.key()
		if err != nil {
			return 0, fmt.Errorf("terminal: asking a question: %w", err)
		}
		if key != 0 && ctx.Err() == nil {
			return key, nil
		}
	}
}

func (v *live) answer(ctx context.Context, q gate.Question) (gate.Answer, error) {
	for {
		key, err := v.key(ctx)
		if err != nil {
			return gate.Answer{}, err
		}
		switch key {
		case 'y', 'Y':
			return gate.Answer{Verdict: event.Allow}, nil
		case 'a', 'A':
			return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
		case 'n', 'N':
			return gate.Answer{Reason: denial(q.Call.Name, "")}, nil
		case 'r', 'R':
			reason, given, err := v.reason(ctx)
			if err != nil || given {
				return gate.Answer{Reason: denial(q.Call.Name, reason)}, err
			}
		case '?':
			v.explain()
		case escape:
			v.keyboard.skipSequence()
		case ctrlC:
			interruptSelf()
		}
	}
}

// maxReason is how many bytes of a reason are taken.
const maxReason = 1000

// reason reads the reason of a denial in the status line, up to Enter. Escape leads back to the question.
func (v *live) reason(ctx context.Context) (text string, given bool, err error) {
	for {
		v.typed(&text)
		key, err := v.key(ctx)
		switch {
		case err != nil:
			return "", false, err
		case key == '\r' || key == '\n':
			return strings.TrimSpace(strings.ToValidUTF8(text, "")), true, nil
		case key == escape && !v.keyboard.skipSequence():
			v.typed(nil)
			return "", false, nil
		case key == ctrlC:
			interruptSelf()
		case key == ctrlU:
			text = ""
		case key == backspace || key == ctrlH:
			_, size := utf8.DecodeLastRuneInString(text)
			text = text[:len(text)-size]
		case key >= space && len(text) < maxReason:
			text += string([]byte{key})
		}
	}
}

// typed shows how far a reason has come. Nil means that none is typed.
func (v *live) typed(text *string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.question == nil {
		return
	}
	v.question.reason = nil
	if text != nil {
		v.question.reason = new(strings.ToValidUTF8(*text, ""))
	}
	v.drawLocked(nil)
}

func (v *live) explain() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.question != nil {
		v.drawLocked(v.question.explained(v.layout))
	}
}

// A question is in the status line, or about to be.
type question struct {
	gate.Question
	opts   *Options
	change []string // the lines of a diff
	open   bool     // keys count
	reason *string  // of a denial, as far as it is typed
}

const (
	choices       = "[y] once  [a] this run  [n] no  [r] no, with a reason  [?] why"
	middleChoices = "[y] once [a] this run [n] no [r] reason [?] why"
	shortChoices  = "[y/a/n/r/?]"
	wideEnough    = 100 // columns; less has no room for a long question and words for the keys

	reasonHead    = "  no, with the reason: "
	reasonChoices = "   [enter] send it  [esc] back"
)

// line is the question in one line. An open one always has its choices; what is asked about is cut to the room, with a note.
func (q *question) line(room int) string {
	if q.reason != nil {
		return q.reasonLine(room)
	}
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

// reasonLine shows the end of a reason that is being typed.
func (q *question) reasonLine(room int) string {
	head, keys := reasonHead, reasonChoices
	if room < columns(head)+columns(keys)+leastSubject {
		head, keys = "  no: ", ""
	}
	return cut(head+clipStart(*q.reason+"_", room-columns(head)-columns(keys))+keys, room)
}

func (q *question) what() string {
	name, _ := tool.ShortName(q.Call.Name)
	return fmt.Sprintf("  %s wants to %s", safe(name), q.wish())
}

// keys are the choices as far as there is room for them, and how many columns they leave.
func (q *question) keys(room int) (keys string, left int) {
	what := columns(q.what()) + 3
	switch {
	case what+columns(choices) <= room:
		keys = choices
	case what+columns(middleChoices) <= room || room >= wideEnough:
		keys = middleChoices
	default:
		keys = shortChoices
	}
	return keys, room - columns(keys) - 3
}

// wish is what the call would do, in words for native tools.
func (q *question) wish() string {
	subject := safe(q.opts.Catalogue.Subject(q.Call.Name, q.Call.Input, q.opts.Dir))
	verb := "be called"
	if native, ok := q.opts.Catalogue.Native(q.Call.Name); ok {
		verb = cmp.Or(native.Verb, verb)
	}
	return verb + ": " + cmp.Or(subject, "{}")
}

// explained is everything about the question, nothing clipped.
func (q *question) explained(l layout) []string {
	var out []string
	add := func(label, text string) {
		rows, _ := wrap(text, l.width-12, 1<<20)
		for i, row := range rows {
			if i > 0 {
				label = ""
			}
			out = append(out, cut("  "+pad(label, 8)+"  ", l.width-2)+row)
		}
	}
	add("tool", q.Call.Name)
	if q.Call.AgentID != "" {
		add("subagent", q.Call.AgentID)
	}
	add("why", joinWords(q.Policy, q.Reason))
	add("needs", q.Needs.String()+"; risk: "+q.Risk.String())
	if q.Call.Description != "" {
		add("purpose", q.Call.Description)
	}
	var b bytes.Buffer
	if json.Indent(&b, q.Call.Input, "", " ") != nil {
		b.Reset()
		b.Write(q.Call.Input)
	}
	add("input", b.String())
	if len(q.change) > 0 {
		add("change", "as a diff:")
		out = append(out, l.change(q.change, len(q.change), "")...)
	}
	add("keys", "[y] allow it once  [a] allow this tool for the rest of the run  [n] deny it  [r] deny it, and give the model a reason")
	return append(out, "")
}
