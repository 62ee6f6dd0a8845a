// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"strings"
	"testing"
)

// The cell chooses the names of its files. They neither act on a terminal, nor add lines to a message,
// nor fill it.
func TestBreach_ShowsForeignNamesSafely(t *testing.T) {
	for _, what := range []What{Bytes, Files, FreeSpace} {
		plain := Breach{What: what, Path: "/work/file"}.Error()
		hostile := Breach{What: what, Path: "/work/\x1b[2Jé\n  next: run this\u202e/" + strings.Repeat("é/", 1<<20) + "file"}.Error()
		if strings.ContainsAny(hostile, "\x1b\u202e") || strings.Count(hostile, "\n") != strings.Count(plain, "\n") {
			t.Errorf("%s: the message can deceive: %q", what, hostile[:min(len(hostile), 500)])
		}
		if len(hostile) > 1000 {
			t.Errorf("%s: the message has %d bytes, want less than 1000", what, len(hostile))
		}
		if !strings.Contains(plain, "/work/file") || !strings.Contains(hostile, "/work/") || !strings.Contains(hostile, "é/file") {
			t.Errorf("%s: the path is missing: %q, %q", what, plain, hostile)
		}
	}
}
