// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"testing"
)

func TestString_OfFilesAndChanges(t *testing.T) {
	f := &File{Path: "a/b.go", Mode: 0o644, Size: 12}
	for want, value := range map[string]any{
		"-rw-r--r-- 12 a/b.go": f,
		"created a/b.go":       Change{Path: "a/b.go", After: f},
		"deleted a/b.go":       &Change{Path: "a/b.go", Before: f},
		"[changed a\\tb]":      []Change{{Path: "a\tb", Before: f, After: f}},
	} {
		if got := fmt.Sprint(value); got != want {
			t.Errorf("%#v is printed as %q, want %q", value, got, want)
		}
	}
}
