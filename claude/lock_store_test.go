// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/transcript"
)

// Two clients do not go on with one conversation at once: the turns of one would be lost. A fork may.
func TestResume_ConversationInUseIsRefused(t *testing.T) {
	store, err := transcript.NewFileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	dir := t.TempDir()
	if err := store.Append(t.Context(), transcript.Key{ProjectKey: transcript.ProjectKey(dir), SessionID: someUUID}, []json.RawMessage{json.RawMessage(`{"type":"user"}`)}); err != nil {
		t.Fatal(err)
	}
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.UntilEOF()
	})
	options := func(set func(*claude.Options)) *claude.Options {
		o := cli.Options()
		o.Dir, o.Store, o.Resume = dir, store, someUUID
		o.Env = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": t.TempDir()})
		set(o)
		return o
	}
	first := claudetest.Connect(t, options(func(*claude.Options) {}))
	if c, err := claude.Connect(t.Context(), options(func(*claude.Options) {})); !errors.Is(err, transcript.ErrInUse) {
		t.Errorf("a second client: %v, want ErrInUse", err)
		_ = c.Close()
	}
	claudetest.Connect(t, options(func(o *claude.Options) { o.Fork, o.SessionID = true, otherUUID }))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	claudetest.Connect(t, options(func(*claude.Options) {}))
}
