// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
)

func vfsPath(t testing.TB, text string) workspace.Path {
	t.Helper()
	p, err := workspace.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePath_RefusesPathsOutsideTheWorkspace(t *testing.T) {
	for name, test := range map[string]struct{ text, reason string }{
		"empty":             {"", "is empty"},
		"absolute":          {"/etc/passwd", "is absolute"},
		"the folder itself": {".", "itself"},
		"nothing but dots":  {"././/", "itself"},
		"climbing":          {"../a", "segment .."},
		"climbing inside":   {"a/../../b", "segment .."},
		"NUL":               {"a\x00b", "NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := workspace.ParsePath(test.text)
			var bad *workspace.PathError
			if !errors.As(err, &bad) || !strings.Contains(bad.Reason, test.reason) {
				t.Errorf("ParsePath(%q) = %q, %v, want an error with %q", test.text, p, err, test.reason)
			}
		})
	}
}

func TestParsePath_LeavesOutSegmentsThatMeanNothing(t *testing.T) {
	for text, want := range map[string]string{
		"a/b": "a/b", "./a": "a", "a/./b": "a/b", "a//b": "a/b", "a/": "a", ".//a/.//b/.": "a/b", ".a/..b": ".a/..b",
	} {
		if p, err := workspace.ParsePath(text); err != nil || p.String() != want {
			t.Errorf("ParsePath(%q) = %q, %v, want %q", text, p, err, want)
		}
	}
	if p, err := workspace.PathOf("a", "", "b"); err == nil {
		t.Errorf("PathOf with an empty segment = %q, want an error", p)
	}
}

func TestPathOf_JoinsSegments(t *testing.T) {
	p, err := workspace.PathOf("project", "src", "cart.py")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.String(), "project/src/cart.py"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if p != vfsPath(t, "project/src/cart.py") {
		t.Error("the same path from a text and from segments differs")
	}
	if diff := cmp.Diff([]string{"project", "src", "cart.py"}, p.Segments()); diff != "" {
		t.Errorf("Segments() (-want +got):\n%s", diff)
	}
	for _, bad := range [][]string{{"a/b"}, {"a", ""}, {".."}, {}, {"a", "/"}} {
		if p, err := workspace.PathOf(bad...); err == nil {
			t.Errorf("PathOf(%q) = %q, want an error", bad, p)
		}
	}
	if got := (workspace.Path{}).Segments(); got != nil {
		t.Errorf("the zero path has segments %q", got)
	}
}

func TestPath_CompareOrdersBySegments(t *testing.T) {
	want := []string{"a", "a/b", "a/b/c", "a/c", "a!", "a.go", "a0", "b", "\xff"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(a, b string) int { return vfsPath(t, a).Compare(vfsPath(t, b)) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a", "a/b.go", "..", "/a", "a//b", "a\x00", "caf\xe9/x", "a\"b/<c>", "."} {
		f.Add(seed, "a/c")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		p, err := workspace.ParsePath(text)
		if err != nil {
			return
		}
		if !isLocal(p.String()) {
			t.Errorf("ParsePath(%q) succeeded", text)
		}
		if again, err := workspace.PathOf(p.Segments()...); err != nil || again != p {
			t.Errorf("PathOf(%q) = %q, %v, want %q", p.Segments(), again, err, p)
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back workspace.Path
		if err := json.Unmarshal(data, &back); err != nil || back != p {
			t.Errorf("%s became %q, %v, want %q", data, back, err, p)
		}
		if q, err := workspace.ParsePath(other); err == nil {
			if got, want := sign(p.Compare(q)), slices.Compare(p.Segments(), q.Segments()); got != want {
				t.Errorf("%q.Compare(%q) = %d, want %d", p, q, got, want)
			}
		}
	})
}

// isLocal is a second definition of what a path may be.
func isLocal(text string) bool {
	for _, segment := range strings.Split(text, "/") {
		if segment == "" || segment == "." || segment == ".." || strings.ContainsRune(segment, 0) {
			return false
		}
	}
	return true
}

func sign(n int) int { return max(-1, min(1, n)) }
