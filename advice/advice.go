// SPDX-License-Identifier: Apache-2.0

// Package advice carries what a user can do about an error apart from the text of the error.
//
// An error states what failed, on what, and why. Its advice is a value that [errors.As] finds as an [Adviser], however deep it
// is wrapped. The program that shows the error to a person renders both once, with [Text].
package advice

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// An Adviser is an error that knows what a user can do about it.
type Adviser interface {
	error
	// Advice is a sentence in the imperative, without a period. Several are on lines of their own. It is empty where nothing is known.
	Advice() string
}

type advised struct {
	error
	next string
}

func (e *advised) Unwrap() error  { return e.error }
func (e *advised) Advice() string { return e.next }

// Wrap returns err with advice. The text of the error stays the same. Advice that err already has comes first. Wrap returns nil
// for nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &advised{err, join(Of(err), fmt.Sprintf(format, args...))}
}

// Of returns the advice of an error, or "". The outermost [Adviser] that knows something counts; of joined errors, each one.
func Of(err error) string {
	if a, ok := err.(Adviser); ok && a.Advice() != "" { //nolint:errorlint // this function unwraps
		return a.Advice()
	}
	switch err := err.(type) { //nolint:errorlint // this function unwraps
	case interface{ Unwrap() error }:
		return Of(err.Unwrap())
	case interface{ Unwrap() []error }:
		var all []string
		for _, each := range err.Unwrap() {
			all = append(all, Of(each))
		}
		return join(all...)
	}
	return ""
}

// Safe is [Of] for the error of foreign code, whose methods may panic: it has no advice then.
func Safe(err error) (next string) {
	defer func() { _ = recover() }()
	return Of(err)
}

// Text renders an error and its advice for a person:
//
//	the disk is full
//	  next: make room in /var
//
// Joined errors have their advice below each one. Text is empty for nil.
func Text(err error) string {
	var lines []string
	for text, next := range All(err) {
		lines = append(lines, Render(text, next))
	}
	return strings.Join(lines, "\n")
}

// All yields the text and the advice of each error that [errors.Join] joined, or of the one error. A nil has none.
func All(err error) iter.Seq2[string, string] {
	return func(yield func(text, next string) bool) { _ = all(err, yield) }
}

func all(err error, yield func(text, next string) bool) bool {
	if err == nil {
		return true
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return yield(err.Error(), Of(err))
	}
	if whole := errors.Join(joined.Unwrap()...); whole == nil || err.Error() != whole.Error() {
		return yield(err.Error(), Of(err))
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(each error) bool { return !all(each, yield) })
}

// Render renders a text and the advice that belongs to it, as [Text] does.
func Render(text, next string) string {
	if next == "" {
		return text
	}
	return text + "\n  next: " + strings.ReplaceAll(next, "\n", "\n  next: ")
}

// join lists each advice once.
func join(all ...string) string {
	var once []string
	for _, each := range all {
		if each != "" && !slices.Contains(once, each) {
			once = append(once, each)
		}
	}
	return strings.Join(once, "\n")
}
