// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/record"
)

// An import copies every part of a run without secrets, and reports it in the journal. A run in progress is refused, and nothing of it
// is left in the store.
func TestStore_ImportCopiesEveryPart(t *testing.T) {
	from, to := openStore(t), openStore(t)
	line, err := json.Marshal(map[string]string{"text": "It is " + secret})
	if err != nil {
		t.Fatal(err)
	}
	kept := keep(t, from, nil, func(r *agenttest.Run) {
		r.Request.Transcript(agent.TranscriptLine{Raw: line, Source: agent.MainSource})
	}, agenttest.Emit(event.Text{Content: "I have " + secret}), during(t, func() error {
		running, err := from.Last()
		if err != nil {
			return err
		}
		if _, err := to.Import(running, nil); !errors.Is(err, record.ErrRunning) {
			t.Errorf("a run in progress is imported: %v", err)
		}
		return nil
	}), agenttest.Done("token-1"))
	if err := os.WriteFile(filepath.Join(kept.Path, "workspace.diff"), []byte("+it is "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if folders, err := to.Folders(); err != nil || len(folders) != 0 {
		t.Errorf("the store has %v, %v", folders, err)
	}
	got, err := to.Import(find(t, from, kept.ID), []string{secret})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(entries(t, got)); n != len(entries(t, kept)) || got.State != record.Ended || !cmp.Equal(got.End, kept.End) || got.Imported != kept.Path {
		t.Errorf("%d entries; %s, %+v, imported from %s", n, got.State, got.End, got.Imported)
	}
	if d, err := got.Details(); err != nil || !slices.Equal(d.Texts, []string{"I have [redacted]"}) {
		t.Errorf("the texts are %v, %v", d.Texts, err)
	}
	var transcript []drover.TranscriptEntry
	for entry, err := range got.Transcript() {
		if err != nil {
			t.Fatal(err)
		}
		transcript = append(transcript, entry)
	}
	if len(transcript) == 0 || string(transcript[len(transcript)-1].Detail) != `{"text":"It is [redacted]"}` {
		t.Errorf("the transcript is %+v", transcript)
	}
	if diff, err := got.Diff(); err != nil || string(diff) != "+it is [redacted]\n" {
		t.Errorf("the diff is %q, %v", diff, err)
	}
	if changes, _, _, err := to.Changes(0); err != nil || !slices.Equal(changes, []record.Change{{Run: to.Folder(got), What: record.ChangeEnd}}) {
		t.Errorf("the journal has %v, %v", changes, err)
	}
}
