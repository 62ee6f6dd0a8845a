// SPDX-License-Identifier: Apache-2.0

package safetext_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/internal/safetext"
)

func TestStart_CutsLongTexts(t *testing.T) {
	for text, want := range map[string]string{
		"short":                         "short",
		strings.Repeat("x", 200):        strings.Repeat("x", 200),
		strings.Repeat("x", 1000):       strings.Repeat("x", 200) + "…",
		"x" + strings.Repeat("é", 1000): "x" + strings.Repeat("é", 99) + "…",
	} {
		if got := safetext.Start(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFew_NamesTheFirst(t *testing.T) {
	if got := safetext.Few([]string{"a", "b"}); got != "a, b" {
		t.Errorf("got %q", got)
	}
	if got := safetext.Few(slices.Repeat([]string{"a"}, 1020)); !strings.HasSuffix(got, "a, a and 1000 more") || len(got) > 100 {
		t.Errorf("got %q", got)
	}
	if got := safetext.Few(nil); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestFirstWords_LeavesOutHeadings(t *testing.T) {
	for text, want := range map[string]string{
		"Set the price.\nTo three.":                       "Set the price. To three.",
		"## 1. Task (task)\n\nSet  the\tprice.\n":         "Set the price.",
		"Do it.\n### How\n  ###### Long\n#\nBy hand.\r\n": "Do it. By hand.",
		"#hashtag stays, as does\n    # code\n####### x":  "#hashtag stays, as does # cod…",
		"## 1. Task (task)\n\n##\n":                       "1. Task (task)",
		"":                                                "",
		strings.Repeat("é", 31):                           strings.Repeat("é", 29) + "…",
		strings.Repeat("é", 30):                           strings.Repeat("é", 30),
		strings.Repeat("# x\n", 1<<20) + "late":           strings.Repeat("x ", 14) + "x…",
	} {
		if got := safetext.FirstWords(text, 30); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
}
