// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/launch"
)

// A notedRecorder writes down what it is given.
type notedRecorder struct {
	mu    sync.Mutex
	notes []string
}

func (r *notedRecorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

func (r *notedRecorder) Start(dir string, copies bool) { r.note("start %s %v", dir, copies) }
func (r *notedRecorder) Message(line claude.Line)      { r.note("message %s %s", line.Type(), line.Raw()) }
func (r *notedRecorder) End()                          { r.note("end") }

func (r *notedRecorder) Prompt(line []byte) {
	r.note("prompt %v", strings.Contains(string(line), `"content":"hi"`))
}

func (r *notedRecorder) Copies(file string, entries []json.RawMessage) {
	r.note("copies %s %s", filepath.Base(file), entries)
}

// A recorder gets what is part of the conversation, each line once, and nothing of the control protocol.
func TestOptionRecorder_ReceivesEachLineOnce(t *testing.T) {
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		for _, line := range []string{
			`{"type":"keep_alive"}`, "text", "", `{"type":"control_cancel_request","request_id":"none"}`,
			`{"type":"transcript_mirror","filePath":"/p/s.jsonl","entries":[{"type":"user"},7]}`,
			`{"type":"transcript_mirror","filePath":1}`,
			`{"type":"system","subtype":"new"}`, `{"torn`,
		} {
			s.Line(line)
		}
		s.Line(`{"type":"result","subtype":"success"}`)
		s.State("idle")
		s.UntilEOF()
		s.Write(`{"last":1}`)
	})
	noted := &notedRecorder{}
	o := cli.Options()
	o.Recorder, o.Env = noted, claude.ExactEnv(map[string]string{"CLAUDE_CONFIG_DIR": "/config"})
	_, _, _ = collect(claude.Query(t.Context(), "hi", o)) // the recorder has what counts
	state := noted.notes[len(noted.notes)-3]
	want := []string{
		"start /config true", "prompt true", `copies s.jsonl [{"type":"user"} 7]`,
		`message system {"type":"system","subtype":"new"}`, `message  {"torn`,
		`message result {"type":"result","subtype":"success"}`, state, `message  {"last":1}`, "end",
	}
	if diff := cmp.Diff(want, noted.notes); diff != "" || !strings.Contains(state, "session_state_changed") {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// A conversation without files has no copies, and a CLI that does not start has an end.
func TestOptionRecorder_WithoutFiles(t *testing.T) {
	for _, set := range []func(*claude.Options){
		func(o *claude.Options) { o.NoPersistence = true },
		func(o *claude.Options) { o.ExtraArgs = []string{"--no-session-persistence"} },
	} {
		noted, failed := &notedRecorder{}, errors.New("no process")
		o := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) { s.UntilEOF() }).Options()
		o.Recorder, o.Env = noted, claude.ExactEnv(map[string]string{"HOME": "/home/u"})
		o.Spawner = launch.SpawnerFunc(func(_ context.Context, cmd claude.Command) (claude.Process, error) {
			if strings.Contains(fmt.Sprint(cmd.Args), "--session-mirror") {
				t.Errorf("the arguments are %q, want no copies", cmd.Args)
			}
			return nil, failed
		})
		set(o)
		if _, err := claude.Connect(t.Context(), o); !errors.Is(err, failed) {
			t.Errorf("got %v, want the spawner's error", err)
		}
		if diff := cmp.Diff([]string{"start " + filepath.Join("/home/u", ".claude") + " false", "end"}, noted.notes); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	}
}
