// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// An event of the agent is in the session, and at the reader of the stream, before the agent goes on.
func TestEvents_DispatchedWhileTheRunIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(nil)
		defer func() { _ = s.Close() }()
		read := make(chan struct{})
		wait := func(*agenttest.Run) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if !recordedText(ctx, s, "I look.") {
				t.Error("the session does not have the text while the agent works")
			}
			select {
			case <-read:
			case <-ctx.Done():
				t.Error("the reader does not have the text while the agent works")
			}
		}
		adapter := agenttest.New(agenttest.Emit(event.Text{Content: "I look."}), wait,
			agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "Fine.", Output: []byte(noted)}))
		run := drover.Stream(t.Context(), adapter, reviewPrompt(t), &drover.Options{Session: s})
		for ev, err := range run.Events() {
			if err != nil {
				t.Error(err)
			}
			if text, ok := ev.Payload.(event.Text); ok && text.Content == "I look." {
				close(read)
			}
		}
		if _, err := run.Response(); err != nil {
			t.Error(err)
		}
	})
}

// recordedText reports whether the session has a text of the agent before the context ends.
func recordedText(ctx context.Context, s *session.Session, content string) bool {
	for entry, err := range s.After(ctx, 0) {
		if text, ok := entry.Event.Payload.(event.Text); ok && err == nil && text.Content == content {
			return true
		}
	}
	return false
}
