// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
)

// A fullStore is one whose disk is full.
type fullStore struct {
	*transcript.MemoryStore
	full bool
}

func (s fullStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	if s.full {
		return syscall.ENOSPC
	}
	return s.MemoryStore.Append(ctx, key, entries)
}

// A token is given only for a conversation that is stored. The answer comes all the same. The store is asked once
// more, after longer than a run that is stopped waits.
func TestResumeToken_OnlyForStoredConversations(t *testing.T) {
	const id = "6f9619ff-8b86-4d11-b42d-00c04fc964ff"
	for name, x := range map[string]struct{ full, stopped bool }{
		"stored": {false, false}, "full": {true, false}, "stored and stopped": {false, true}, "full and stopped": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			config := t.TempDir()
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.JSON(map[string]any{
					"type": "transcript_mirror", "filePath": filepath.Join(config, "projects", "p", id+".jsonl"),
					"entries": []any{map[string]string{"type": "user", "uuid": "u1"}},
				})
				s.SendText("It is 4.")
				s.Result("It is 4.")
				s.State("idle")
				s.UntilEOF()
			})
			base := cli.Options()
			base.Env = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": config})
			base.Store, base.StoreEager = fullStore{transcript.NewMemoryStore(), x.full}, true
			var done event.Done
			reported := false
			for e, err := range New(base).Run(ctx, agent.Request{Prompt: "go"}) {
				if err != nil {
					t.Fatal(err)
				}
				switch p := e.Payload.(type) {
				case event.Text: // a run that is stopped before it has sent a text has nothing to continue
					if x.stopped {
						stop()
					}
				case event.Error:
					reported = reported || p.Code == codeNotKept && p.Recoverable
				case event.Done:
					done = p
					reported = reported || strings.Contains(p.Reason, "the conversation could not be stored")
				}
			}
			if !x.stopped && (done.Status != event.DoneSuccess || done.Result != "It is 4.") {
				t.Errorf("done is %+v, want the answer", done)
			}
			if (done.ResumeToken == "") != x.full || reported != x.full {
				t.Errorf("the token is %q, reported %t; the disk is full: %t", done.ResumeToken, reported, x.full)
			}
		})
	}
}
