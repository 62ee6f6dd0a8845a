// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/safetext"
)

// A Problem is one mistake in a file. Functions that find several join them.
type Problem struct {
	// File is the name of the file.
	File string
	// Line and Column count from 1.
	Line, Column int
	// Key leads to the value: "sections[0].text". It is empty for a problem of the whole file.
	Key string
	// Reason is the problem, and Next the advice.
	Reason, Next string
	// Err is the underlying error. It may be nil.
	Err error
}

// Error returns "review.yaml:3:5: sections[0].text: reason". It is one line, whatever the names of the file and its keys are.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	return safetext.Line(b.String() + p.Reason)
}

// Advice implements [advice.Adviser]. A cause that has advice knows better.
func (p *Problem) Advice() string { return cmp.Or(advice.Of(p.Err), p.Next) }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

type problems struct {
	file string
	tree *tree
	all  []*Problem
	more int // those that are not among all
}

const maxProblems = 100

// add notes a problem of the value to which a pointer leads.
func (p *problems) add(pointer, reason, next string) { _ = p.note(pointer, reason, next) }

// fail notes an error about such a value.
func (p *problems) fail(pointer string, err error) { p.note(pointer, err.Error(), "").Err = err }

// note is add, and returns the problem so that the caller can add details.
func (p *problems) note(pointer, reason, next string) *Problem {
	if p.full() {
		p.more++
		return &Problem{}
	}
	line, column := p.tree.position(pointer)
	found := &Problem{File: p.file, Line: line, Column: column, Key: keyOf(pointer), Reason: reason, Next: next}
	p.all = append(p.all, found)
	return found
}

func (p *problems) full() bool { return len(p.all) >= maxProblems }

// join returns all problems in the order of their positions, or nil.
func (p *problems) join() error {
	slices.SortStableFunc(p.all, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	joined := make([]error, len(p.all))
	for i, one := range p.all {
		joined[i] = one
	}
	if p.more > 0 {
		last := p.all[len(p.all)-1]
		joined = append(joined, &Problem{File: p.file, Line: last.Line, Column: last.Column, Reason: fmt.Sprintf("there are %d more problems", p.more), Next: "fix these first"})
	}
	return errors.Join(joined...)
}

// keyOf writes a JSON pointer as people write keys: "/sections/0/text" as "sections[0].text".
func keyOf(pointer string) string {
	var b strings.Builder
	for _, step := range steps(pointer) {
		switch {
		case strings.Trim(step, "0123456789") == "":
			b.WriteString("[" + step + "]")
		case b.Len() > 0:
			b.WriteString("." + step)
		default:
			b.WriteString(step)
		}
	}
	return b.String()
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// steps are the parts of a JSON pointer.
func steps(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(pointer[1:], "/")
	for i, part := range parts {
		parts[i] = unescape.Replace(part)
	}
	return parts
}

// at is the pointer to a property or an element of what another pointer leads to.
func at(pointer string, step any) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(step))
}
