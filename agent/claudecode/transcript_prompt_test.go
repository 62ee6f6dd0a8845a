// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"strings"
	"sync"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

// A prompt that could not be sent, because the CLI is ending, is no part of the conversation.
func TestTranscript_PromptThatWasNotSent(t *testing.T) {
	closed, release := make(chan struct{}), make(chan struct{})
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.UntilEOF()
		close(closed)
		<-release
	})
	var mu sync.Mutex
	var reported strings.Builder
	o := cli.Options()
	o.Env = claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": t.TempDir()})
	o.Recorder = newTranscriptRecorder(func(line agent.TranscriptLine) {
		mu.Lock()
		defer mu.Unlock()
		reported.Write(line.Raw)
	})
	client, err := claude.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = client.Close() }()
	<-closed
	err = client.Send(t.Context(), claude.Text("too late"))
	close(release)
	<-done
	mu.Lock()
	defer mu.Unlock()
	if err == nil || strings.Contains(reported.String(), "too late") {
		t.Errorf("Send: %v; the transcript is %s", err, reported.String())
	}
}
