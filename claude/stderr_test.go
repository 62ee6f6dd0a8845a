// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// What a CLI writes to standard error with a turn that fails belongs to the turn, also if it comes a little
// later. A CLI that never stops writing holds nothing up.
func TestTurnEnd_AwaitsStandardError(t *testing.T) {
	for name, x := range map[string]struct {
		lines int
		pause time.Duration
		want  string
		took  time.Duration
	}{
		"a little later": {lines: 1, pause: 15 * time.Millisecond, want: "line 0", took: 40 * time.Millisecond},
		"some lines":     {lines: 8, pause: 15 * time.Millisecond, want: "line 7", took: 160 * time.Millisecond},
		"without an end": {lines: 40, pause: 10 * time.Millisecond, want: "line 24", took: 250 * time.Millisecond},
		"nothing":        {took: 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
					s.Initialize("")
					s.Await("user")
					s.JSON(map[string]any{"type": "result", "subtype": "error_during_execution", "is_error": true, "errors": []string{"no"}, "session_id": "s", "uuid": "u"})
					s.State("idle")
					for i := range x.lines {
						time.Sleep(x.pause)
						s.Stderr(fmt.Sprintf("line %d", i))
					}
					s.UntilEOF()
				})
				c := claudetest.Connect(t, cli.Options())
				began := time.Now()
				end, _, _ := collect(c.Turn(t.Context(), claude.Text("go")))
				lines := strings.Split(end.StderrTail, "\n")
				if got := lines[len(lines)-1]; got != x.want && x.lines < 40 {
					t.Errorf("standard error ends with %q, want %q", got, x.want)
				}
				if took := time.Since(began); took > x.took {
					t.Errorf("the turn ended after %s, want at most %s", took, x.took)
				}
			})
		})
	}
}
