// SPDX-License-Identifier: Apache-2.0

package advice_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/drover-agents/drover/advice"
)

// A limitError has advice of its own.
type limitError struct{ next string }

func (e *limitError) Error() string  { return "too large" }
func (e *limitError) Advice() string { return e.next }
func (e *limitError) Unwrap() error  { return advice.Wrap(fs.ErrInvalid, "take less") }

func TestAdvice_OfAndText(t *testing.T) {
	full := advice.Wrap(errors.New("the disk is full"), "make room in %s", "/var")
	for _, test := range []struct {
		name       string
		err        error
		next, text string
	}{
		{"nil", nil, "", ""},
		{"nil with advice", advice.Wrap(nil, "nothing"), "", ""},
		{"none", fs.ErrExist, "", "file already exists"},
		{"one", full, "make room in /var", "the disk is full\n  next: make room in /var"},
		{"wrapped", fmt.Errorf("saving: %w", full), "make room in /var", "saving: the disk is full\n  next: make room in /var"},
		{"the cause's first", advice.Wrap(fmt.Errorf("saving: %w", full), "save elsewhere"), "make room in /var\nsave elsewhere", "saving: the disk is full\n  next: make room in /var\n  next: save elsewhere"},
		{"the same twice", advice.Wrap(full, "make room in /var"), "make room in /var", "the disk is full\n  next: make room in /var"},
		{"a type's own", fmt.Errorf("x: %w", &limitError{"raise MaxBytes"}), "raise MaxBytes", "x: too large\n  next: raise MaxBytes"},
		{"a type that knows nothing", &limitError{}, "take less", "too large\n  next: take less"},
		{"two causes", fmt.Errorf("%w, %w", full, &limitError{"raise it"}), "make room in /var\nraise it", "the disk is full, too large\n  next: make room in /var\n  next: raise it"},
		{"no causes", fmt.Errorf("%w and %w", error(nil), error(nil)), "", "%!w(<nil>) and %!w(<nil>)"},
		{"joined", errors.Join(full, fs.ErrExist, errors.Join(&limitError{"raise it"})), "make room in /var\nraise it", "the disk is full\n  next: make room in /var\nfile already exists\ntoo large\n  next: raise it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := advice.Of(test.err); got != test.next {
				t.Errorf("Of is %q, want %q", got, test.next)
			}
			if got := advice.Text(test.err); got != test.text {
				t.Errorf("Text is %q, want %q", got, test.text)
			}
			var a advice.Adviser
			if errors.As(test.err, &a) != (test.next != "") {
				t.Errorf("errors.As finds an Adviser: %v, want %v", a, test.next != "")
			}
		})
	}
	if got := advice.Safe((*limitError)(nil)); got != "" {
		t.Errorf("the advice of an error that panics is %q", got)
	}
	if !errors.Is(advice.Wrap(fs.ErrExist, "x"), fs.ErrExist) {
		t.Error("Wrap hides the cause")
	}
}

func ExampleText() {
	err := advice.Wrap(errors.New("the disk is full"), "make room in %s", "/var")
	fmt.Println(err)
	fmt.Println(advice.Text(fmt.Errorf("saving: %w", err)))
	// Output:
	// the disk is full
	// saving: the disk is full
	//   next: make room in /var
}
