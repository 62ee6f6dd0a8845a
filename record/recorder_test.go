// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
)

const secret = `hunter"2 of <winter>`

// ask makes the text prompt of a test.
func ask(t *testing.T, text string) *prompt.Prompt[string] {
	t.Helper()
	p, err := prompt.FromText[string](text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func openStore(t *testing.T) *record.Store {
	t.Helper()
	s, err := record.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The run that is kept has each entry of the session's log, in the same order, and the end.
func TestRecorder_KeepsTheLogAndTheEnd(t *testing.T) {
	store := openStore(t)
	s := session.New(nil)
	a := agenttest.New(agenttest.Emit(event.Text{Content: "The token is " + secret + "."}), agenttest.Done("token-1"))
	resp, err := drover.Evaluate(t.Context(), a, ask(t, "Say "+secret), &drover.Options{
		Session: s, Recorder: record.NewRecorder(store, &record.RecorderOptions{Secrets: []string{secret}, Name: "reviewer"}),
		Settings: agent.Settings{Model: "big"},
	})
	if err != nil {
		t.Fatal(err)
	}
	run, err := store.Find(resp.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if run.State != record.Ended || run.End.Status != event.DoneSuccess || run.End.Problem != "" {
		t.Errorf("the run is %s, its end %+v", run.State, run.End)
	}
	if run.Name != "reviewer" || run.Model != "big" || run.Agent != a.Agent() || run.Session != s.ID() {
		t.Errorf("the run is %+v", run.Info)
	}
	var want, got []event.Kind
	for e := range s.Events() {
		want = append(want, e.Kind)
	}
	for entry, err := range run.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry.Event.Kind)
		if text, ok := entry.Event.Payload.(event.Text); ok && text.Content != "The token is [redacted]." {
			t.Errorf("the text is %q", text.Content)
		}
	}
	want = want[:run.End.Entries] // the answer is dispatched for its slice when the run is over
	if !slices.Equal(got, want) || !strings.Contains(strings.Join(kinds(got), " "), "prompt:executed") {
		t.Errorf("the log has %v, want %v", got, want)
	}
}

func kinds(of []event.Kind) []string {
	var all []string
	for _, k := range of {
		all = append(all, string(k))
	}
	return all
}
