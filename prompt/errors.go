// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"fmt"
	"strings"
)

// Conditions that callers test for with errors.Is.
var (
	// ErrDefinition is wrapped when a template cannot be made of its definition.
	ErrDefinition = errors.New("the definition is wrong")
	// ErrParams is wrapped when values do not fit the params of a template.
	ErrParams = errors.New("the params do not fit")
	// ErrRender is wrapped when a prompt cannot be rendered with the given options.
	ErrRender = errors.New("it cannot be rendered")
	// ErrOverride is wrapped when an override is for the text at hand but cannot be applied.
	ErrOverride = errors.New("an override cannot be applied")
	// ErrOutput is wrapped when an answer is not of the output type; see [OutputError].
	ErrOutput = errors.New("the answer does not fit the output type")
)

// An Error is one thing that is wrong with a prompt. Functions that find several join them.
type Error struct {
	// Prompt is the name of the prompt.
	Prompt string
	// Section is the path of the section. It is empty for a problem of the whole prompt.
	Section string
	// Part is the part of the section: "text", "summary", "tool find". It may be empty.
	Part string
	// Line and Column are a position in the text as written, from 1 in characters. Zero means that it is unknown.
	Line, Column int
	// Reason is the problem.
	Reason string
	// Next is the advice. It may be empty.
	Next string
	// Err is one of the conditions of this package.
	Err error
	// Cause is the underlying error. It may be nil.
	Cause error
}

// Error returns "prompt: demo:review: section "task": text 2:5: reason".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompt: %s: ", e.Prompt)
	if e.Section != "" {
		fmt.Fprintf(&b, "section %q: ", e.Section)
	}
	if e.Part != "" {
		b.WriteString(e.Part)
		if e.Line > 0 {
			fmt.Fprintf(&b, " %d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Reason)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// Advice implements [advice.Adviser].
func (e *Error) Advice() string { return e.Next }

// Unwrap returns the condition and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

type problems struct {
	prompt string
	err    error
	all    []error
	more   int // those that are not among all
}

const maxProblems = 100

func (p *problems) add(e Error) {
	if p.full() {
		return
	}
	e.Prompt, e.Err = p.prompt, p.err
	p.all = append(p.all, &e)
}

// addFlaws adds the problems of placeholders, with their positions in the text.
func (p *problems) addFlaws(n *node, part, written string, flaws []flaw) {
	for _, f := range flaws {
		if p.full() {
			continue
		}
		line, column := position(written, f.offset)
		p.add(Error{Section: n.path, Part: part, Line: line, Column: column, Reason: f.reason})
	}
}

// full reports whether the list is full, and then counts the problem. To find the position of one takes time.
func (p *problems) full() bool {
	if len(p.all) < maxProblems {
		return false
	}
	p.more++
	return true
}

func (p *problems) join() error {
	if p.more > 0 {
		return errors.Join(append(p.all, &Error{Prompt: p.prompt, Err: p.err, Reason: fmt.Sprintf("there are %d more problems", p.more)})...)
	}
	return errors.Join(p.all...)
}
