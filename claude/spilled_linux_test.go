// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// What waits on disk for a consumer that has left goes with the query: the file has no name, so only
// its descriptor would show it.
func TestQuery_ClosesTheFileOfUnreadMessages(t *testing.T) {
	written := make(chan struct{})
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		for range 50 {
			s.SendText(strings.Repeat("m", 100_000))
		}
		close(written)
		s.UntilEOF()
	})
	opts := cli.Options()
	opts.MaxBufferedBytes = 1 << 20
	spilled := 0
	for m, err := range claude.Query(t.Context(), "talk", opts) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*claude.AssistantMessage); ok {
			<-written
			for spilled == 0 { // the reader may be a line behind the script
				spilled = deletedFiles(t)
			}
			break
		}
	}
	if left := deletedFiles(t); left != 0 {
		t.Errorf("%d files without a name are still open, of %d while messages waited", left, spilled)
	}
}

// deletedFiles counts the open files that have no name any more.
func deletedFiles(t *testing.T) int {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasSuffix(to, "(deleted)") {
			n++
		}
	}
	return n
}
