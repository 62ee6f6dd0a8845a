// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page of the design shows the path of a tool call in few lines, each with its file, through few packages.
func TestDesign_PathOfAToolCall(t *testing.T) {
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "## The path of a tool call\n")
	if !found {
		t.Fatal("the page has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	steps := regexp.MustCompile(`(?m)^\d+\. `).Split(section, -1)[1:]
	if len(steps) < 5 || len(steps) > 10 {
		t.Errorf("the path has %d lines, want at most 10", len(steps))
	}
	named := regexp.MustCompile("`([A-Za-z.]+)`, ([a-z_/]+\\.go)")
	packages := map[string]bool{}
	for i, step := range steps {
		step, _, _ = strings.Cut(step, "\n\n")
		files := named.FindAllStringSubmatch(step, -1)
		if len(files) == 0 {
			t.Errorf("line %d names no file: %q", i+1, step)
		}
		for _, f := range files {
			packages[path.Dir(f[2])] = true
			text, err := os.ReadFile(filepath.Join("../..", f[2]))
			name := f[1][strings.LastIndex(f[1], ".")+1:]
			if err != nil || !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+name+`\b`).Match(text) {
				t.Errorf("line %d: there is no function %s in %s", i+1, f[1], f[2])
			}
		}
	}
	if len(packages) > 7 {
		t.Errorf("the path crosses %d packages, want at most 7: %v", len(packages), packages)
	}
}
