// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
)

// A fullDisk is a store whose disk is full.
type fullDisk struct{ *transcript.MemoryStore }

func (fullDisk) Append(context.Context, transcript.Key, []json.RawMessage) error {
	return syscall.ENOSPC
}

// A stopped evaluation whose conversation is not stored has no token, and says why.
func TestStopped_NamesWhyTheConversationIsNotStored(t *testing.T) {
	memory := transcript.NewMemoryStore()
	for name, x := range map[string]struct {
		store transcript.Store
		why   string
	}{"stored": {memory, ""}, "full": {fullDisk{memory}, syscall.ENOSPC.Error()}} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			config := t.TempDir()
			base := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.JSON(map[string]any{
					"type": "transcript_mirror", "filePath": filepath.Join(config, "projects", "p", "6f9619ff-8b86-4d11-b42d-00c04fc964ff.jsonl"),
					"entries": []any{map[string]string{"type": "user", "uuid": "u1"}},
				})
				s.SendText("Wait.")
				<-ctx.Done()
				s.Result("")
				s.State("idle")
				s.UntilEOF()
			}).Options()
			base.Env = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": config})
			base.Store, base.StoreEager = x.store, true
			run := drover.Stream(ctx, claudecode.New(base), reviewPrompt(t), nil)
			var done event.Done
			for e := range run.Events() {
				switch p := e.Payload.(type) {
				case event.Text:
					stop() // the conversation is known by now
				case event.Done:
					done = p
				}
			}
			_, err := run.Response()
			var failed *drover.EvaluationError
			if !errors.As(err, &failed) {
				t.Fatalf("the error is %v", err)
			}
			summary := failed.Summary
			if full := x.why != ""; full != (done.ResumeToken == "") || full != (summary.ResumeToken == "") || full != (summary.NotStored != "") {
				t.Errorf("the token is %q, that of the summary %q; not stored: %q", done.ResumeToken, summary.ResumeToken, summary.NotStored)
			}
			if !strings.Contains(summary.NotStored, x.why) || !strings.HasSuffix(done.Reason, summary.NotStored) || done.Status != event.DoneInterrupted {
				t.Errorf("%s for %q, and the summary has %q, want %q", done.Status, done.Reason, summary.NotStored, x.why)
			}
		})
	}
}
