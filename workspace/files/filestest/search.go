// SPDX-License-Identifier: Apache-2.0

package filestest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/workspace"
	"github.com/drover-agents/drover/workspace/files"
)

func glob(t *testing.T, s System) {
	for _, name := range []string{"a.go", "a.txt", "x/b.go", "x/y/c.go", "x/y/[odd].go"} {
		put(t, s.FS, name, "")
	}
	tests := map[string][]string{
		"*.go":           {"a.go"},
		"**/*.go":        {"a.go", "x/b.go", "x/y/[odd].go", "x/y/c.go"},
		"x/**":           {"x", "x/b.go", "x/y", "x/y/[odd].go", "x/y/c.go"},
		"x/*":            {"x/b.go", "x/y"},
		"{a,x/b}.go":     {"a.go", "x/b.go"},
		"x/y/[[]*.go":    {"x/y/[odd].go"},
		"a.???":          {"a.txt"},
		"none/**/*":      nil,
		".":              {"."},
		"**/y/**/[a-c]*": {"x/y/c.go"},
	}
	for pattern, wanted := range tests {
		got, err := files.Glob(s.FS, pattern)
		if diff := cmp.Diff(wanted, got); err != nil || diff != "" {
			t.Errorf("Glob(%q) = %v (-want +got):\n%s", pattern, err, diff)
		}
	}
	for _, pattern := range []string{"/etc/*", "../*", "x/../../*"} {
		if _, err := files.Glob(s.FS, pattern); !errors.Is(err, workspace.ErrSecurity) {
			t.Errorf("Glob(%q) = %v, want a SecurityError", pattern, err)
		}
	}
	if _, err := files.Glob(s.FS, "[a"); !errors.Is(err, path.ErrBadPattern) {
		t.Errorf("Glob of a bad pattern = %v", err)
	}
}

func grep(t *testing.T, s System) {
	put(t, s.FS, "a.go", "one\ntwo needle\r\nthree\nneedle")
	put(t, s.FS, "x/b.txt", "needle in text\n")
	put(t, s.FS, "x/bin", "needle\x00")
	put(t, s.FS, "x/large", "needle "+strings.Repeat("x", 5000))
	put(t, s.FS, "x/wide", strings.Repeat("ü", 5000)+"needle"+strings.Repeat("ü", 5000))
	ctx := t.Context()
	search := func(opts files.GrepOptions) files.Found {
		t.Helper()
		found, err := files.Grep(ctx, s.FS, opts)
		if err != nil {
			t.Errorf("Grep(%+v) = %v", opts, err)
		}
		return found
	}
	hits := []files.Hit{{Path: "a.go", Line: 2, Text: "two needle"}, {Path: "a.go", Line: 4, Text: "needle"}}
	text := files.Hit{Path: "x/b.txt", Line: 1, Text: "needle in text"}
	tests := []struct {
		name string
		opts files.GrepOptions
		want files.Found
	}{
		{"files by glob", files.GrepOptions{Pattern: "needle", Files: "**/*.go"}, files.Found{Hits: hits}},
		{"below a file", files.GrepOptions{Pattern: "^nee", Below: "a.go"}, files.Found{Hits: hits[1:]}},
		{"as many as may be", files.GrepOptions{Pattern: "needle", Below: "a.go", MaxHits: 2}, files.Found{Hits: hits}},
		{"more than may be", files.GrepOptions{Pattern: "needle", Below: "a.go", MaxHits: 1}, files.Found{Hits: hits[:1], More: true}},
		{"large files", files.GrepOptions{Pattern: "needle", Below: "x", MaxFile: 100}, files.Found{Hits: []files.Hit{text}, Skipped: []string{"x/large", "x/wide"}}},
		{"nothing", files.GrepOptions{Pattern: "hay"}, files.Found{}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, search(test.opts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	for _, hit := range search(files.GrepOptions{Pattern: "needle", Files: "x/{large,wide}"}).Hits {
		if len(hit.Text) > 1024 || !strings.Contains(hit.Text, "needle") || strings.ContainsRune(hit.Text, '\ufffd') {
			t.Errorf("the text of a long line is %q, want a part with the match", hit.Text)
		}
	}
	grepErrors(t, s)
}

func grepErrors(t *testing.T, s System) {
	var many strings.Builder
	for i := range 1001 {
		fmt.Fprintln(&many, i)
	}
	put(t, s.FS, "many", many.String())
	if found, err := files.Grep(t.Context(), s.FS, files.GrepOptions{Pattern: ".", Below: "many"}); err != nil || len(found.Hits) != 1000 || !found.More {
		t.Errorf("Grep gives %d hits, more %v, %v; want 1000 of 1001", len(found.Hits), found.More, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := files.Grep(ended, s.FS, files.GrepOptions{Pattern: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Grep after cancel = %v", err)
	}
	for _, opts := range []files.GrepOptions{{Pattern: "("}, {Pattern: "x", Below: "none"}, {Pattern: "x", Below: "../x"}, {Pattern: "x", Files: "[a"}} {
		if _, err := files.Grep(t.Context(), s.FS, opts); err == nil {
			t.Errorf("Grep(%+v) = nil, want an error", opts)
		}
	}
}
