// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"os"
	"strings"
	"testing"
)

func TestDocs_ListTheCodesOfTheAdapter(t *testing.T) {
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		codeMalformedLine, codeMissingResult, codeResult, codeOutput, codeStream, codeEnded, codeHook, codeUnheeded, codeBreach, retryCode("", 0), retryCode("", 500),
	} {
		if !strings.Contains(string(page), "| `"+code+"`") && !strings.Contains(string(page), ", `"+code+"`") {
			t.Errorf("docs/agents.md has no row for %s", code)
		}
	}
}
