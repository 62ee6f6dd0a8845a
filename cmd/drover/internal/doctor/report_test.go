// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

func TestReport_FoldsAtTheWidthOfATerminal(t *testing.T) {
	report := newReport([]Check{
		{Name: "claude", State: stateOK, Detail: "short"},
		{Name: "sandbox", State: stateWarning, Detail: strings.Repeat("word ", 20) + "end\x1b[31m\nmo\u202ere", Fix: []string{"one", "two"}},
	})
	var out bytes.Buffer
	if err := report.WriteText(&out, 80); err != nil {
		t.Fatal(err)
	}
	want := `claude      ok       short
sandbox     warning  word word word word word word word word word word word word
                     word word word word word word word word end\x1b[31m
                     mo\u202ere
            fix      one
            or       two
exit 0: a run can begin; one warning: sandbox
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// Folding loses no word, and no line is wider than it must be.
func TestFold_KeepsEveryWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-zé…]{1,40}`)).Draw(t, "words")
		most := rapid.IntRange(0, 120).Draw(t, "most")
		parts := folded(strings.Join(words, " "), most)
		if got := strings.Fields(strings.Join(parts, " ")); !slices.Equal(got, words) && len(words) > 0 {
			t.Fatalf("got the words %q, want %q", got, words)
		}
		for _, part := range parts {
			if most >= narrowestDetail && utf8.RuneCountInString(part) > most && strings.Contains(part, " ") {
				t.Fatalf("%q is wider than %d and could be folded", part, most)
			}
		}
	})
}

func TestReport_Summary(t *testing.T) {
	cases := []struct {
		states []State
		want   string
		exit   int
	}{
		{nil, "all a run needs is here", 0},
		{[]State{stateOK, stateSkipped}, "all a run needs is here", 0},
		{[]State{stateOK, stateWarning}, "a run can begin; one warning: b", 0},
		{[]State{stateWarning, stateWarning}, "a run can begin; 2 warnings: a, b", 0},
		{[]State{stateMissing, stateWarning}, "one thing is missing: a", 3},
		{[]State{stateMissing, stateMissing}, "2 things are missing: a, b", 3},
		{[]State{stateOK, stateBroken}, "one thing is broken: b", 3},
		{[]State{stateBroken, stateMissing}, "2 things are missing or broken: b, a", 3},
	}
	for _, c := range cases {
		var checks []Check
		for i, state := range c.states {
			checks = append(checks, Check{Name: string(rune('a' + i)), State: state})
		}
		if got := newReport(checks); got.Summary != c.want || got.Exit != c.exit {
			t.Errorf("%v: got %d %q, want %d %q", c.states, got.Exit, got.Summary, c.exit, c.want)
		}
	}
}
