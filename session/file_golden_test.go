// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// The log in testdata was written by version 1, and given a field in the header and one in a record that
// no version knows. It is never written again: every later version must open it.
const goldenLog = "testdata/log-v1.jsonl"

type note struct {
	Text string `json:"text"`
}

func (note) EventKind() event.Kind { return "test.note" }

type noteCount int

func (noteCount) EventKind() event.Kind { return "test.count" }

// copyGolden returns a copy that may be changed, and its text.
func copyGolden(t *testing.T, checkpoint bool) (path, text string) {
	t.Helper()
	path, text = filepath.Join(t.TempDir(), "log.jsonl"), readText(t, goldenLog)
	overwrite(t, path, text)
	if checkpoint {
		overwrite(t, path+".checkpoint", readText(t, goldenLog+".checkpoint"))
	}
	return path, text
}

func TestOpenFile_ReadsVersion1(t *testing.T) {
	path, text := copyGolden(t, true)
	s := openLogFile(t, path, nil)
	want := session.Head{
		Version: 1, ID: "golden", Tags: map[string]string{"team": "red"}, Created: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
	}
	got, err := s.Head()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Head() = %v (-want +got):\n%s", err, diff)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if diff := cmp.Diff(lines[1:], readLog(t, s, 0)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if c, err := s.Checkpoint(); err != nil || c.Pos != 6 || !json.Valid(c.Data) {
		t.Errorf("Checkpoint() = %d %s, %v, want the one at 6", c.Pos, c.Data, err)
	}
}

func TestOpen_ContinuesASessionOfVersion1(t *testing.T) {
	for name, checkpoint := range map[string]bool{"with checkpoint": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			path, text := copyGolden(t, checkpoint)
			s, err := session.Open(openLogFile(t, path, nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			session.Reduce(s, func(n noteCount, _ note) noteCount { return n + 1 })
			dispatch(t, t.Context(), s, note{"by a later version"})
			notes := slices.Collect(session.Query[note](s).All())
			if diff := cmp.Diff([]note{{"first <é>"}, {"kept"}, {"after the checkpoint"}, {"by a later version"}}, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if got, _ := session.Query[noteCount](s).Latest(); got != 4 {
				t.Errorf("%d notes were counted, want 4", got)
			}
			var unknown []string
			for e := range s.Events() {
				if raw, ok := e.Payload.(event.Extension); ok && raw.Kind == "future.kind" {
					unknown = append(unknown, string(raw.Data))
				}
			}
			if diff := cmp.Diff([]string{`{"some":["thing",1.50]}`}, unknown); diff != "" {
				t.Errorf("events of an unknown kind (-want +got):\n%s", diff)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := readText(t, path); !strings.HasPrefix(got, text) || len(got) == len(text) {
				t.Errorf("the log is no longer what it was with more at its end:\n%s", got)
			}
		})
	}
}
