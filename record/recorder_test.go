// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childStore); dir != "" {
		os.Exit(child(dir))
	}
	goleak.VerifyTestMain(m)
}

const secret = `hunter"2 of <winter>`

// ask makes the text prompt of a test.
func ask(t testing.TB, text string) *prompt.Prompt[string] {
	t.Helper()
	p, err := prompt.FromText[string](text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func openStore(t testing.TB) *record.Store {
	t.Helper()
	s, err := record.Open(filepath.Join(t.TempDir(), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keep evaluates a prompt with a scripted agent, and returns the run that was kept.
func keep(t testing.TB, store *record.Store, o *record.RecorderOptions, steps ...agenttest.Step) *record.Run {
	t.Helper()
	resp, err := drover.Evaluate(t.Context(), agenttest.New(steps...), ask(t, "Look."), &drover.Options{Recorder: record.NewRecorder(store, o)})
	if err != nil {
		t.Fatal(err)
	}
	return find(t, store, resp.RunID)
}

// during does something while the agent works.
func during(t *testing.T, do func() error) agenttest.Step {
	return func(*agenttest.Run) {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
}

func find(t testing.TB, store *record.Store, id string) *record.Run {
	t.Helper()
	run, err := store.Find(id)
	if err != nil {
		t.Fatal(advice.Text(err))
	}
	return run
}

func entries(t testing.TB, run *record.Run) (all []session.Entry) {
	t.Helper()
	for entry, err := range run.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
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
	run := find(t, store, resp.RunID[:8])
	if run.State != record.Ended || run.End.Status != event.DoneSuccess || run.End.ResumeToken != "token-1" || run.End.Problem != "" {
		t.Errorf("the run is %s, its end %+v", run.State, run.End)
	}
	if run.Name != "reviewer" || run.Model != "big" || run.Agent != a.Agent() || run.Session != s.ID() || !strings.Contains(string(run.Settings), `"model":"big"`) {
		t.Errorf("the run is %+v", run.Info)
	}
	var want, got []event.Kind
	for e := range s.Events() {
		want = append(want, e.Kind)
	}
	texts := 0
	for _, entry := range entries(t, run) {
		got = append(got, entry.Event.Kind)
		if text, ok := entry.Event.Payload.(event.Text); ok && text.Content == "The token is [redacted]." {
			texts++
		}
	}
	if !slices.Equal(got, want) || len(got) < 5 || texts != 1 || run.End.Entries != int64(len(got)) {
		t.Errorf("the log has %v, want %v", got, want)
	}
	d, err := run.Details()
	if err != nil || d.Prompt != "Say [redacted]" || !slices.Equal(d.Texts, []string{"The token is [redacted]."}) {
		t.Errorf("the details are %+v, %v", d, err)
	}
}

// Runs of one session are kept apart, each with its own entries from 1 on.
func TestRecorder_EachRunOfASessionIsOneRecord(t *testing.T) {
	store := openStore(t)
	s := session.New(nil)
	r := record.NewRecorder(store, nil)
	for _, text := range []string{"one", "two"} {
		resp, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Emit(event.Text{Content: text}), agenttest.Done("")), ask(t, text), &drover.Options{Session: s, Recorder: r})
		if err != nil {
			t.Fatal(err)
		}
		run := find(t, store, resp.RunID)
		d, err := run.Details()
		if err != nil || !slices.Equal(d.Texts, []string{text}) || d.Prompt != text {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
		for i, entry := range entries(t, run) {
			if entry.Pos != int64(i+1) || entry.Event.RunID != "" && entry.Event.RunID != resp.RunID {
				t.Errorf("%s: entry %d is %d, of run %s", text, i+1, entry.Pos, entry.Event.RunID)
			}
		}
	}
}

// A conversation is a run for each message.
func TestRecorder_EachMessageOfAConversationIsARun(t *testing.T) {
	store := openStore(t)
	a := agenttest.New(agenttest.Emit(event.Text{Content: "Yes."}), agenttest.Done("t"))
	c := drover.Converse(a, ask(t, "Hello"), &drover.Options{Recorder: record.NewRecorder(store, nil)})
	for _, text := range []string{"", "More."} {
		var err error
		if text == "" {
			_, err = c.Begin(t.Context())
		} else {
			_, err = c.Send(t.Context(), text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	folders, err := store.Folders()
	if err != nil || len(folders) != 2 {
		t.Errorf("the store has %v, %v, want two runs", folders, err)
	}
}

// A run that fails is kept with why.
func TestRecorder_KeepsAFailedRun(t *testing.T) {
	store := openStore(t)
	_, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Fail(errors.New("the model is asleep"))), ask(t, "Look."), &drover.Options{Recorder: record.NewRecorder(store, nil)})
	failure, ok := errors.AsType[*drover.EvaluationError](err)
	if !ok {
		t.Fatal(err)
	}
	run := find(t, store, failure.Summary.RunID)
	if run.State != record.Ended || run.End.Status != event.DoneError || !strings.Contains(run.End.Error, "the model is asleep") {
		t.Errorf("the end is %+v", run.End)
	}
}

// A line of the transcript that is its own detail is kept once, and read as both.
func TestRecorder_KeepsALineOfTheTranscriptOnce(t *testing.T) {
	store := openStore(t)
	run := keep(t, store, nil, func(r *agenttest.Run) {
		r.Request.Transcript(agent.TranscriptLine{Raw: json.RawMessage(`{"note":"only here"}`), Source: agent.MainSource})
	}, agenttest.Done(""))
	text, err := os.ReadFile(filepath.Join(run.Path, "transcript.jsonl"))
	if err != nil || strings.Count(string(text), "only here") != 1 {
		t.Errorf("kept is %s, %v", text, err)
	}
	for entry, err := range run.Transcript() {
		if err != nil || string(entry.Detail) != `{"note":"only here"}` || string(entry.Raw) != string(entry.Detail) {
			t.Errorf("read is %+v, %v", entry, err)
		}
	}
}

// Secrets of each kind, in each place where a run may have them, are in no file.
func TestRecorder_KeepsNoSecret(t *testing.T) {
	values := map[string]string{
		"named":    secret,
		"lines":    "-----BEGIN SHAPE-----\nmany-words-of-a-first-line\nmany-words-of-a-second-line\n-----END SHAPE-----",
		"key":      "sk-ant-api03-" + strings.Repeat("a1B2", 12),
		"aws":      "AKIAIOSFODNN7EXAMPLE",
		"github":   "ghp_" + strings.Repeat("Ab12", 9),
		"run":      "drover-run-" + strings.Repeat("Q7", 13), /* as the gateway makes them */
		"password": `{"password":"correct-horse"}`,
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			input, err := json.Marshal(map[string]any{"command": "use " + value, value: []string{value}})
			if err != nil {
				t.Fatal(err)
			}
			output, err := json.Marshal(string(input))
			if err != nil {
				t.Fatal(err)
			}
			call := event.ToolCall{ID: "c1", Name: "Bash", Input: input}
			host := t.TempDir()
			if err := os.WriteFile(filepath.Join(host, "notes.txt"), []byte("nothing\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			files, err := workspace.Open(t.Context(), &workspace.Options{Mounts: []workspace.HostMount{{HostPath: host, MountPath: "notes"}}, AllowAnyRoot: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = files.Close() }()
			traffic := filepath.Join(t.TempDir(), "traffic.jsonl")
			if err := os.WriteFile(traffic, append(input, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			logger := slog.New(slog.NewJSONHandler(&log, nil))
			_, err = drover.Evaluate(t.Context(), agenttest.New(
				func(r *agenttest.Run) {
					r.Request.Transcript(agent.TranscriptLine{Raw: input, Source: agent.MainSource})
				},
				during(t, func() error {
					return os.WriteFile(filepath.Join(files.Root(), "notes", "notes.txt"), []byte("it is "+value+"\n"), 0o600)
				}),
				agenttest.Emit(event.Text{Content: "I have " + value}, call, event.ToolResult{ID: "c1", Name: "Bash", Status: event.ToolError, Output: output, Failure: &event.ToolFailure{Message: value}}),
				agenttest.Fail(fmt.Errorf("refused: %s", value)),
			), ask(t, "Take "+value), &drover.Options{
				Logger: logger, Settings: agent.Settings{AppendSystemPrompt: value, Workspace: files},
				Recorder: record.NewRecorder(store, &record.RecorderOptions{Secrets: []string{secret, values["lines"]}, Command: []string{"run", value}, Traffic: traffic, Logger: logger}),
			})
			if err == nil {
				t.Fatal("the evaluation succeeded")
			}
			hidden := []string{value, strings.Trim(strings.ReplaceAll(value, `"`, `\"`), "\n")}
			if name == "lines" {
				hidden = append(hidden, "many-words-of-a-second-line")
			}
			if name == "password" {
				hidden = []string{"correct-horse"}
			}
			if !strings.Contains(log.String(), "refused: ") || slices.ContainsFunc(hidden, func(h string) bool { return strings.Contains(log.String(), h) }) {
				t.Errorf("the log has the secret, or not the error: %s", log.String())
			}
			kept := map[string]int64{}
			err = filepath.WalkDir(store.Dir(), func(path string, e fs.DirEntry, err error) error {
				if info, err := e.Info(); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s is for others too: %v", path, info.Mode())
				}
				if err != nil || e.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				kept[filepath.Base(path)] = int64(len(text))
				for _, h := range hidden {
					if strings.Contains(string(text), h) {
						t.Errorf("%s has it: %s", filepath.Base(path), text)
					}
				}
				return err
			})
			for _, name := range []string{"run.json", "events.jsonl", "transcript.jsonl", "workspace.diff", "traffic.jsonl", "end.json"} {
				if err != nil || kept[name] == 0 {
					t.Errorf("%s has %d bytes, %v", name, kept[name], err)
				}
			}
		})
	}
}

// The kind of an event is no secret, and the log of a run whose secret is such a word can be read.
func TestRecorder_SecretThatIsAWordOfTheFormat(t *testing.T) {
	store := openStore(t)
	run := keep(t, store, &record.RecorderOptions{Secrets: []string{"payload", "prompt:rendered", "success", "timestamp"}},
		agenttest.Emit(event.Text{Content: "the payload is a success"}), agenttest.Done(""))
	d, err := run.Details()
	if err != nil || !slices.Equal(d.Texts, []string{"the [redacted] is a [redacted]"}) || d.Prompt != "Look." {
		t.Errorf("got %+v, %v", d, err)
	}
}

// Tags of the session are kept, without secrets.
func TestRecorder_TagsOfTheSession(t *testing.T) {
	store := openStore(t)
	s := session.New(&session.Options{Tags: map[string]string{"team": "shop", "key": secret}})
	resp, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Done("")), ask(t, "Look."), &drover.Options{
		Session: s, Recorder: record.NewRecorder(store, &record.RecorderOptions{Secrets: []string{secret}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(find(t, store, resp.RunID).Path, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(log), "\n")
	if !strings.Contains(head, `"key":"[redacted]"`) || !strings.Contains(head, `"team":"shop"`) {
		t.Errorf("the header is %s", head)
	}
}

// Runs begin while others remove the last run of the day.
func TestRecorder_BeginsWhileDaysAreRemoved(t *testing.T) {
	store := openStore(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				resp, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Done("")), ask(t, "Look."), &drover.Options{Recorder: record.NewRecorder(store, nil)})
				if err != nil || resp.NotRecorded != nil {
					t.Errorf("%v, %v", resp, err)
					return
				}
				if err := store.Remove(store.Folder(find(t, store, resp.RunID))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// onASlowDisk evaluates with a recorder that writes nothing of the log and of the transcript until the agent has sent many lines and
// had as many calls decided.
func onASlowDisk(t *testing.T) (run *record.Run, notRecorded error) {
	store, disk, calls := openStore(t), make(chan struct{}), 0
	r := record.NewRecorder(store, nil)
	record.BeforeWrite(r, func() { <-disk })
	a := agenttest.New(func(r *agenttest.Run) {
		for i := range 100 {
			r.Request.Transcript(agent.TranscriptLine{Raw: json.RawMessage(`{"note":"` + strings.Repeat("x", 1000) + `"}`), Source: agent.MainSource})
			id := event.CallID(fmt.Sprint("c", i))
			if r.Request.Host.Decide(r.Context, event.ToolCall{ID: id, Name: "perform", Input: json.RawMessage(`{"line":"ls"}`)}).Verdict == event.Allow {
				calls++
			}
		}
		close(disk)
	}, agenttest.Done(""))
	a.Tools = agenttest.Tools()
	resp, err := drover.Evaluate(t.Context(), a, ask(t, "Look."), &drover.Options{
		Recorder: r, Settings: agent.Settings{Permissions: &gate.Permissions{Mode: gate.ModeAllow}},
	})
	if err != nil || calls != 100 {
		t.Fatalf("%d calls are allowed, %v", calls, err)
	}
	return find(t, store, resp.RunID), resp.NotRecorded
}

// No line of the agent and no decision about a call waits for the disk. What waited is kept when there is room.
func TestRecorder_HooksDoNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, err := onASlowDisk(t)
		lines := 0
		for _, err := range run.Transcript() {
			if err != nil {
				t.Fatal(err)
			}
			lines++
		}
		if d, damage := run.Details(); err != nil || damage != nil || lines != 100 || len(d.Calls) != 100 || run.End.Problem != "" {
			t.Errorf("kept are %d lines and %d calls, %v, %v", lines, len(d.Calls), err, damage)
		}
	})
}

// A transcript that waits for the disk takes no more memory than it may. The run goes on, and its end says what is missing.
func TestRecorder_TranscriptThatWaitsIsBounded(t *testing.T) {
	record.LowerWaiting(t, 50_000)
	synctest.Test(t, func(t *testing.T) {
		run, err := onASlowDisk(t)
		if err == nil || !strings.Contains(run.End.Problem, "bytes of the transcript wait for the disk") {
			t.Errorf("got %v, and in the end %q", err, run.End.Problem)
		}
	})
}

// A run that is at work is listed as such.
func TestRecorder_FollowsTheLog(t *testing.T) {
	store := openStore(t)
	inStore := 0
	run := keep(t, store, nil, agenttest.Emit(event.Text{Content: "a"}), during(t, func() error {
		found, err := store.Last()
		if err != nil {
			return err
		}
		if found.State != record.Running || found.End != nil {
			return fmt.Errorf("the run is %s", found.State)
		}
		inStore++
		return nil
	}), agenttest.Done(""))
	if inStore != 1 || run.State != record.Ended {
		t.Errorf("the run was seen %d times, and is %s", inStore, run.State)
	}
}

// A store that cannot be written to withholds no answer, and the summary says that the run is not kept.
func TestRecorder_BeginFails(t *testing.T) {
	store := openStore(t)
	if err := os.RemoveAll(store.Dir()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store.Dir(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	resp, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Emit(event.Text{Content: "begun"}), agenttest.Done("")), ask(t, "Look."), &drover.Options{Recorder: record.NewRecorder(store, nil)})
	if err != nil || resp.NotRecorded == nil || !strings.Contains(resp.NotRecorded.Error(), "the run cannot be kept in "+store.Dir()) || advice.Of(resp.NotRecorded) == "" {
		t.Errorf("got %v, %v", resp, err)
	}
}

// A run that could not be kept whole has its answer all the same, and says so.
func TestRecorder_EndFails(t *testing.T) {
	store := openStore(t)
	resp, err := drover.Evaluate(t.Context(), agenttest.New(agenttest.Emit(event.Text{Content: "a"}), during(t, func() error {
		run, err := store.Last()
		return errors.Join(err, os.RemoveAll(run.Path))
	}), agenttest.Done("")), ask(t, "Look."), &drover.Options{Recorder: record.NewRecorder(store, nil)})
	if err != nil || resp.NotRecorded == nil || !strings.Contains(resp.NotRecorded.Error(), "could not be kept whole") || !strings.Contains(resp.String(), "not recorded whole") {
		t.Errorf("got %v, %v", resp, err)
	}
}

// The end of a run says what of it could not be kept. A line of traffic that is still being written is left out.
func TestRecorder_TrafficIsKeptOrMissed(t *testing.T) {
	for name, c := range map[string]struct{ text, want, problem string }{
		"whole lines": {"{\"a\":1}\n{\"b\":", "{\"a\":1}\n", ""},
		"no file":     {"", "", "traffic.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			store, traffic := openStore(t), filepath.Join(t.TempDir(), "traffic.jsonl")
			if c.text != "" {
				if err := os.WriteFile(traffic, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			run := keep(t, store, &record.RecorderOptions{Traffic: traffic}, agenttest.Done(""))
			got, _ := os.ReadFile(filepath.Join(run.Path, "traffic.jsonl"))
			if string(got) != c.want || !strings.Contains(run.End.Problem, c.problem) || (run.End.Problem == "") != (c.problem == "") {
				t.Errorf("kept is %q, the problem %q", got, run.End.Problem)
			}
		})
	}
}

// The last exchange of the model's traffic may end after the agent has its answer: the record waits for it, and says if it does not come.
func TestRecorder_TrafficIsSettledFirst(t *testing.T) {
	store, traffic := openStore(t), filepath.Join(t.TempDir(), "traffic.jsonl")
	last := func(err error) func(context.Context) error {
		return func(context.Context) error {
			return errors.Join(err, os.WriteFile(traffic, []byte("{\"a\":1}\n"), 0o600))
		}
	}
	run := keep(t, store, &record.RecorderOptions{Traffic: traffic, Settle: last(nil)}, agenttest.Done(""))
	if got, err := os.ReadFile(filepath.Join(run.Path, "traffic.jsonl")); string(got) != "{\"a\":1}\n" || run.End.Problem != "" {
		t.Errorf("kept is %q, %v, the problem %q", got, err, run.End.Problem)
	}
	run = keep(t, store, &record.RecorderOptions{Traffic: traffic, Settle: last(errors.New("one has not ended"))}, agenttest.Done(""))
	if !strings.Contains(run.End.Problem, "one has not ended") {
		t.Errorf("the problem is %q", run.End.Problem)
	}
}

// fakeRun has a folder of a run in the store, with files of so many bytes. Prune reads no more of it.
func fakeRun(t *testing.T, store *record.Store, id string, began time.Time, size int64) {
	t.Helper()
	dir := filepath.Join(store.Dir(), "2026-01-02", id)
	info := filepath.Join(dir, "run.json")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(info, nil, 0o600), os.Truncate(info, size), os.Chtimes(info, began, began)); err != nil {
		t.Fatal(err)
	}
}

// Each limit leaves the latest runs that it allows, exactly, and the strictest one counts.
func TestStore_PruneLeavesWhatTheLimitsAllow(t *testing.T) {
	now := time.Now()
	const gib = 1 << 30
	for name, c := range map[string]struct {
		keep record.Retention
		want string // of a, b, c, d and e, which began 0 to 4 hours ago and have 10 bytes each
	}{
		"all":                         {record.Retention{}, "abcde"},
		"as many runs":                {record.Retention{MaxRuns: 5}, "abcde"},
		"one run less":                {record.Retention{MaxRuns: 4}, "abcd"},
		"one run":                     {record.Retention{MaxRuns: 1}, "a"},
		"as old":                      {record.Retention{MaxAge: 2 * time.Hour}, "abc"},
		"a little older":              {record.Retention{MaxAge: 2*time.Hour - 1}, "ab"},
		"as large":                    {record.Retention{MaxBytes: 30}, "abc"},
		"a byte larger":               {record.Retention{MaxBytes: 29}, "ab"},
		"no room":                     {record.Retention{MaxBytes: 1}, ""},
		"no limits":                   {record.Retention{MaxRuns: -1, MaxAge: -1, MaxBytes: -1}, "abcde"},
		"the number is the strictest": {record.Retention{MaxRuns: 2, MaxAge: 3 * time.Hour, MaxBytes: 40}, "ab"},
		"the age is the strictest":    {record.Retention{MaxRuns: 4, MaxAge: time.Hour, MaxBytes: 40}, "ab"},
		"the size is the strictest":   {record.Retention{MaxRuns: 4, MaxAge: 3 * time.Hour, MaxBytes: 20}, "ab"},
		"one limit alone":             {record.Retention{MaxRuns: 3, MaxAge: -1, MaxBytes: -1}, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			for i, id := range []string{"a", "b", "c", "d", "e"} {
				fakeRun(t, store, id, now.Add(-time.Duration(i)*time.Hour), 10)
			}
			checkPruned(t, store, c.keep, now, c.want)
		})
	}
	for name, c := range map[string]struct {
		began time.Time
		size  int64
		want  string
	}{
		"as old as the default":   {now.Add(-90 * 24 * time.Hour), 1, "ab"},
		"older than the default":  {now.Add(-90*24*time.Hour - 1), 1, "a"},
		"as large as the default": {now.Add(-time.Hour), 4*gib - 10, "ab"},
		"larger than the default": {now.Add(-time.Hour), 4*gib - 9, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			store := openStore(t)
			fakeRun(t, store, "a", now, 10)
			fakeRun(t, store, "b", c.began, c.size)
			checkPruned(t, store, record.Retention{}, now, c.want)
		})
	}
	t.Run("more than the default", func(t *testing.T) {
		store := openStore(t)
		for i := range 2001 {
			fakeRun(t, store, fmt.Sprint(i), now.Add(-time.Duration(i)*time.Second), 1)
		}
		if removed, err := store.Prune(record.Retention{}, now); err != nil || !slices.Equal(removed, []string{"2026-01-02/2000"}) {
			t.Errorf("removed are %v, %v", removed, err)
		}
	})
}

// checkPruned fails unless these runs are left, and the others were reported and are gone from the journal.
func checkPruned(t *testing.T, store *record.Store, keep record.Retention, now time.Time, want string) {
	t.Helper()
	before, err := store.Folders()
	if err != nil {
		t.Fatal(err)
	}
	removed, err := store.Prune(keep, now)
	if err != nil {
		t.Fatal(err)
	}
	left, err := store.Folders()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(strings.Join(left, ""), "2026-01-02/", ""); got != want || len(removed) != len(before)-len(left) {
		t.Errorf("left is %q, want %q; removed were %v", got, want, removed)
	}
	changes, _, _, err := store.Changes(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range removed {
		if !slices.Contains(changes, record.Change{Run: run, What: record.ChangeRemove}) {
			t.Errorf("the journal does not have that %s was removed", run)
		}
	}
}

// The folder of a run that another program is making is not removed. One that a killed program has left is.
func TestStore_PruneLeavesARunThatIsBeingMade(t *testing.T) {
	store, now := openStore(t), time.Now()
	fakeRun(t, store, "a", now.Add(-time.Hour), 10)
	made := filepath.Join(store.Dir(), "2026-01-02", "made")
	if err := os.Mkdir(made, 0o700); err != nil {
		t.Fatal(err)
	}
	if removed, err := store.Prune(record.Retention{MaxRuns: 1}, now); err != nil || !slices.Equal(removed, []string{"2026-01-02/a"}) {
		t.Errorf("removed are %v, %v", removed, err)
	}
	if err := os.Chtimes(made, now.Add(-100*24*time.Hour), now.Add(-100*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if removed, err := store.Prune(record.Retention{}, now); err != nil || !slices.Equal(removed, []string{"2026-01-02/made"}) {
		t.Errorf("removed are %v, %v", removed, err)
	}
}

// A run in progress is not removed, by nobody.
func TestStore_RunInProgressIsNotRemoved(t *testing.T) {
	store := openStore(t)
	keep(t, store, nil, during(t, func() error {
		run, err := store.Last()
		if err != nil {
			return err
		}
		if err := store.Remove(store.Folder(run)); !errors.Is(err, record.ErrRunning) {
			return fmt.Errorf("Remove: %v", err)
		}
		if removed, err := store.Prune(record.Retention{MaxBytes: 1}, time.Now()); err != nil || len(removed) > 0 {
			return fmt.Errorf("Prune removed %v, %v", removed, err)
		}
		return nil
	}), agenttest.Done(""))
}

// The journal has each change once. A line that was cut off spoils no other, and one of something else is left out.
func TestStore_Changes(t *testing.T) {
	store := openStore(t)
	run := keep(t, store, nil, agenttest.Done(""))
	folder := store.Folder(run)
	journal := filepath.Join(store.Dir(), "journal")
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("\nremove 2026-01-01/../../x\n\nbegin 2026-11-1")
	if err := errors.Join(err, f.Close(), store.Remove(folder)); err != nil {
		t.Fatal(err)
	}
	changes, end, replaced, err := store.Changes(0)
	want := []record.Change{{Run: folder, What: "begin"}, {Run: folder, What: "end"}, {Run: folder, What: "remove"}}
	if err != nil || replaced || !slices.Equal(changes, want) {
		t.Errorf("got %v, %v, %v, want %v", changes, replaced, err, want)
	}
	if more, at, _, err := store.Changes(end); err != nil || len(more) != 0 || at != end {
		t.Errorf("behind the end are %v, %v", more, err)
	}
	if _, _, replaced, err := store.Changes(end + 1); err != nil || !replaced {
		t.Errorf("a shorter journal is not another one: %v, %v", replaced, err)
	}
}

func TestStore_FindRefusals(t *testing.T) {
	store := openStore(t)
	for range 40 { // two of them begin alike
		keep(t, store, nil, agenttest.Done(""))
	}
	for ref, want := range map[string]string{"../x": "is not the id of a run", "": "is not the id of a run", "zz": "there is no run zz", strings.Repeat("a", 200): "is not the id of a run"} {
		if _, err := store.Find(ref); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", ref, err, want)
		}
	}
	if _, err := store.Find("zz"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	many := 0
	for _, c := range "0123456789abcdef" {
		if _, err := store.Find(string(c)); err != nil && strings.Contains(err.Error(), "runs begin with") {
			many++
		}
	}
	if many == 0 {
		t.Error("no beginning of an id is that of several runs")
	}
}
