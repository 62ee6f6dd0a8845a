// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codeConstant is how the codes of error events are declared.
var codeConstant = regexp.MustCompile(`(?m)^(?:const|\t) ?code[A-Z]\w* *= "(\w+)"`)

func TestDocs_ListTheCodesOfTheAdapter(t *testing.T) {
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := []string{retryCode("", 0), retryCode("", 500)}
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range codeConstant.FindAllSubmatch(text, -1) {
			codes = append(codes, string(found[1]))
		}
	}
	if len(codes) < 12 {
		t.Errorf("found only %v", codes)
	}
	for _, code := range codes {
		if !strings.Contains(string(page), "| `"+code+"`") && !strings.Contains(string(page), ", `"+code+"`") {
			t.Errorf("docs/agents.md has no row for %s", code)
		}
	}
}
