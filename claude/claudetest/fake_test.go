// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"fmt"
	"strings"
	"testing"
)

// A fakeTest replaces the test whose failures are tested.
type fakeTest struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (f *fakeTest) Helper()          {}
func (f *fakeTest) Failed() bool     { return len(f.errors) > 0 }
func (f *fakeTest) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeTest) Error(args ...any) {
	f.errors = append(f.errors, fmt.Sprint(args...))
}

func (f *fakeTest) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// end is the end of the test that f represents.
func (f *fakeTest) end() {
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
}

// wantOnly checks that the test failed once, with these words.
func (f *fakeTest) wantOnly(t *testing.T, words ...string) {
	t.Helper()
	if len(f.errors) != 1 {
		t.Fatalf("the test failed with %q, want one failure with %q", f.errors, words)
	}
	for _, w := range words {
		if !strings.Contains(f.errors[0], w) {
			t.Errorf("the test failed with %q, want %q in it", f.errors[0], w)
		}
	}
}
