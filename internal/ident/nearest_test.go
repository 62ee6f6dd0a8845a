// SPDX-License-Identifier: Apache-2.0

package ident

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest_MisspelledNames(t *testing.T) {
	known := []string{"Bash", "Edit", "MultiEdit", "Read", "WebFetch", "Write", "count_lines", "requireBefore", "sections"}
	for name, want := range map[string]string{
		"read": "Read", "Raed": "Read", "Rea": "Read", "Bsah": "Bash", "Webfetch": "WebFetch", "WebFecth": "WebFetch",
		"count-lines": "count_lines", "countLine": "count_lines", "section": "sections", "require_before": "requireBefore",
		"multi_edit": "MultiEdit", "Wirte": "Write", "Rite": "Write",
		"colour": "", "Frob": "", "": "", strings.Repeat("Read", 100): "",
	} {
		if got := strings.Join(Nearest(name, known), " "); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
	if got, want := Nearest("ab", []string{"abd", "xab", "abc", "ab"}), []string{"ab", "abc", "abd"}; !slices.Equal(got, want) {
		t.Errorf("of several: %v, want %v", got, want)
	}
}
