// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"regexp"
	"strings"
	"testing"
)

var nameCases = []struct{ name, from, want string }{
	{"as it is", "read_file-2", "read_file-2"},
	{"a dot", "files.read", "files_read"},
	{"blanks and slashes", "a b/c", "a_b_c"},
	{"letters of other scripts", "größe", "gr__e"},
	{"not UTF-8", "a\xffb", "a_b"},
	{"64 is not too long", strings.Repeat("x", 64), strings.Repeat("x", 64)},
	{"65 is too long", strings.Repeat("x", 65), strings.Repeat("x", 55) + "_9537c5fd"},
}

func TestLocalName_Forms(t *testing.T) {
	for _, tt := range nameCases {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := localName(tt.from); err != nil || got != tt.want {
				t.Errorf("got %q and %v, want %q", got, err, tt.want)
			}
		})
	}
	if _, err := localName(""); err == nil {
		t.Error("a tool needs no name")
	}
	long := strings.Repeat("y", 100)
	a, _ := localName(long + "a")
	b, _ := localName(long + "b")
	if a == b {
		t.Errorf("two long names both became %q", a)
	}
}

var wantName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func FuzzLocalName(f *testing.F) {
	for _, tt := range nameCases {
		f.Add(tt.from)
	}
	f.Fuzz(func(t *testing.T, from string) {
		got, err := localName(from)
		if from == "" {
			if err == nil {
				t.Error("an empty name was taken")
			}
			return
		}
		if err != nil || !wantName.MatchString(got) {
			t.Errorf("%q became %q, %v", from, got, err)
		}
		if again, _ := localName(got); again != got {
			t.Errorf("%q became %q, and that %q", from, got, again)
		}
		if wantName.MatchString(from) && got != from {
			t.Errorf("%q may stay, and became %q", from, got)
		}
	})
}
