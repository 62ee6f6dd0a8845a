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
