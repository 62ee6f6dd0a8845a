// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
)

// Those who look whether a run is in progress do not take each other for its program, nor keep a new run from its lock.
func TestStore_ManyLookAtOnce(t *testing.T) {
	store := openStore(t)
	ended := keep(t, store, nil, agenttest.Done(""))
	if err := os.Remove(filepath.Join(ended.Path, "end.json")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				if run, err := store.Find(ended.ID); err != nil || run.State != record.Lost {
					t.Errorf("the run is %+v, %v, want it lost", run, err)
					return
				}
			}
		})
	}
	all.Go(func() {
		for range 20 {
			keep(t, store, nil, during(t, func() error {
				run, err := store.Last()
				if err == nil && run.State != record.Running {
					err = fmt.Errorf("a run in progress is %s", run.State)
				}
				return err
			}), agenttest.Done(""))
		}
	})
	all.Wait()
}

// A link in the store is not followed: to a day, to a run, to a file of a run or of the store. Where one leads stays as it is.
func TestStore_FollowsNoLink(t *testing.T) {
	outside := openStore(t)
	kept := keep(t, outside, nil, agenttest.Emit(event.Text{Content: "I am outside."}), agenttest.Done(""))
	day, id := filepath.Dir(kept.Path), kept.ID
	files := func() string {
		var all []string
		err := filepath.WalkDir(outside.Dir(), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				var text []byte
				text, err = os.ReadFile(path)
				all = append(all, path+" "+string(text))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, "\n")
	}
	before := files()
	long := time.Now().Add(1000 * 24 * time.Hour)
	everything := record.Retention{MaxRuns: 1, MaxBytes: 1, MaxAge: time.Nanosecond}
	for name, plant := range map[string]func(dir string) (run string, err error){
		"day": func(dir string) (string, error) {
			return "2026-01-02/" + id, os.Symlink(day, filepath.Join(dir, "2026-01-02"))
		},
		"run": func(dir string) (string, error) {
			return "2026-01-02/" + id, errors.Join(os.Mkdir(filepath.Join(dir, "2026-01-02"), 0o700), os.Symlink(kept.Path, filepath.Join(dir, "2026-01-02", id)))
		},
		"file of a run": func(dir string) (string, error) {
			run := filepath.Join(dir, "2026-01-02", id)
			return "2026-01-02/" + id, errors.Join(os.MkdirAll(run, 0o700), os.Symlink(filepath.Join(kept.Path, "run.json"), filepath.Join(run, "run.json")))
		},
		"lock": func(dir string) (string, error) {
			run := filepath.Join(dir, "2026-01-02", id)
			return "2026-01-02/" + id, errors.Join(os.MkdirAll(run, 0o700), os.WriteFile(filepath.Join(run, "run.json"), []byte(`{"droverRun":1,"id":"x"}`), 0o600),
				os.Symlink(filepath.Join(kept.Path, "run.json"), filepath.Join(run, "lock")))
		},
	} {
		store := openStore(t)
		run, err := plant(store.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.Run(run); err == nil {
			t.Errorf("%s: %+v is opened through a link", name, got.Info)
		}
		if err := store.Remove(run); err == nil && name != "file of a run" {
			t.Errorf("%s: it is removed", name)
		}
		_, _ = store.Prune(everything, long) // it may refuse
		if after := files(); after != before {
			t.Fatalf("%s: where the link leads there was\n%s\nand is\n%s", name, before, after)
		}
	}
	for _, name := range []string{"journal", "pruned"} {
		store := openStore(t)
		target := filepath.Join(t.TempDir(), "file")
		if err := errors.Join(os.WriteFile(target, []byte("mine\n"), 0o600), os.Symlink(target, filepath.Join(store.Dir(), name))); err != nil {
			t.Fatal(err)
		}
		ago := time.Now().Add(-time.Hour)
		if err := os.Chtimes(target, ago, ago); err != nil {
			t.Fatal(err)
		}
		_, _ = drover.Evaluate(t.Context(), agenttest.New(agenttest.Done("")), ask(t, "Look."), &drover.Options{Recorder: record.NewRecorder(store, nil)})
		if info, err := os.Stat(target); err != nil || info.Size() != 5 || !info.ModTime().Equal(ago.Truncate(0)) {
			t.Errorf("%s: the file is %v, %v", name, info, err)
		}
	}
}

// A folder from elsewhere with a link or a pipe for a file of the run is refused, and nothing that it leads to is taken in.
func TestOpenFile_FolderWithLinks(t *testing.T) {
	private := filepath.Join(t.TempDir(), "private")
	if err := os.WriteFile(private, []byte("+private\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run.json", "end.json", "events.jsonl", "transcript.jsonl", "workspace.diff", "lock"} {
		for kind, plant := range map[string]func(path string) error{
			"link": func(path string) error { return os.Symlink(private, path) },
			"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		} {
			from, to := openStore(t), openStore(t)
			kept := keep(t, from, nil, agenttest.Done(""))
			path := filepath.Join(kept.Path, name)
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if err := plant(path); err != nil {
				t.Fatal(err)
			}
			run, err := record.OpenFile(kept.Path)
			if err == nil {
				_, err = to.Import(run, nil)
			}
			if !errors.Is(err, plainfile.ErrNotPlain) {
				t.Errorf("%s: a %s gives %v", name, kind, err)
			}
			checkEmpty(t, to)
		}
	}
}

func checkEmpty(t *testing.T, store *record.Store) {
	t.Helper()
	err := filepath.WalkDir(store.Dir(), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A line of a recording and a patch have a limit, wherever they come from.
func TestOpenFile_LongLines(t *testing.T) {
	record.LowerLimits(t, 1000)
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	head := `{"drover_recording":1,"wire":"anthropic","date":"2026-01-02T03:04:05Z"}` + "\n"
	for size, want := range map[int]string{900: "", 2000: "more than 1000 bytes"} {
		line := `{"seq":1,"request":{"method":"POST","path":"/` + strings.Repeat("x", size) + `"}}` + "\n"
		if err := os.WriteFile(path, []byte(head+line), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := record.OpenFile(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "line 2") {
			t.Errorf("a line of %d bytes: %v", len(line), err)
		}
	}
	store := openStore(t)
	kept := keep(t, store, nil, agenttest.Done(""))
	if err := os.WriteFile(filepath.Join(kept.Path, "workspace.diff"), []byte(strings.Repeat("+x\n", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Diff(); !errors.Is(err, plainfile.ErrTooLarge) {
		t.Errorf("a long patch: %v", err)
	}
	traffic := filepath.Join(t.TempDir(), "traffic.jsonl")
	if err := os.WriteFile(traffic, []byte(head+strings.Repeat("x", 2000)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if kept := keep(t, store, &record.RecorderOptions{Traffic: traffic}, agenttest.Done("")); kept.End == nil || !strings.Contains(kept.End.Problem, "1000 bytes") {
		t.Errorf("traffic with a long line: %+v", kept.End)
	}
}

// An answer in many pieces is read in a time that grows with its size only, and so are calls that match none.
func TestOpenFile_ManyPieces(t *testing.T) {
	const pieces = 50_000
	var answer strings.Builder
	answer.WriteString(`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n")
	for range pieces {
		answer.WriteString("event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}` + "\n\n")
	}
	chunk, err := json.Marshal(answer.String())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	text := `{"drover_recording":1,"wire":"anthropic","date":"2026-01-02T03:04:05Z"}` + "\n" +
		`{"seq":1,"request":{"method":"POST","path":"/v1/messages","body":{"json":{"model":"m","messages":[{"role":"user","content":"Hello"}]}}},` +
		`"response":{"status":200,"headers":{"Content-Type":"text/event-stream"},"chunks":[{"ms":1,"text":` + string(chunk) + `}]}}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run, err := record.OpenFile(path)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := run.Details(); err != nil || len(d.Texts) != 1 || len(d.Texts[0]) != pieces {
		t.Errorf("the texts are %.100q, %v", d.Texts, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 500<<20 {
		t.Errorf("%d pieces of a byte take %d MB of memory", pieces, used>>20)
	}
	c := (&record.Run{}).Collector()
	began := time.Now()
	for i := range 2 * pieces {
		id := fmt.Sprint(i)
		called := event.ToolCall{ID: event.CallID("a" + id), Name: "Bash", Input: json.RawMessage(`{"command":"` + id + `"}`)}
		c.Add(session.Entry{Pos: int64(2*i + 1), Event: event.New(called)})
		c.Add(session.Entry{Pos: int64(2*i + 2), Event: event.New(session.ToolInvoked{CallID: event.CallID("b" + id), Name: "Bash", Params: json.RawMessage(`{}`), Status: event.ToolSuccess})})
	}
	if n := len(c.Details().Calls); n != 4*pieces || time.Since(began) > 15*time.Second {
		t.Errorf("%d calls are read in %v", n, time.Since(began))
	}
}

// Logs from elsewhere that are not whole, or whose id cannot name a folder, are refused, and nothing of them is left.
func TestStore_ImportsNoHostileLog(t *testing.T) {
	from := openStore(t)
	kept := keep(t, from, nil, agenttest.Emit(event.Text{Content: "One."}, event.Text{Content: "Two."}), agenttest.Done(""))
	log, err := os.ReadFile(filepath.Join(kept.Path, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(log), "\n")
	head := func(id string) string {
		return `{"drover":"session-log","version":` + fmt.Sprint(session.EncodingVersion) + `,"id":` + id + `,"created":"2026-01-02T03:04:05Z"}` + "\n" + strings.Join(lines[1:], "")
	}
	for name, text := range map[string]string{
		"id that leaves the folder": head(`"../../x"`),
		"id of dots":                head(`".."`),
		"empty id":                  head(`""`),
		"id with control bytes":     head(`"a\u001b[31mb"`),
		"long id":                   head(`"` + strings.Repeat("x", 10_000) + `"`),
		"day of another form":       strings.Replace(head(`"x"`), "2026-01-02T", "99999-01-02T", 1),
		"entry that is missing":     lines[0] + strings.Join(lines[2:], ""),
		"entry twice":               lines[0] + lines[1] + strings.Join(lines[1:], ""),
		"no JSON":                   lines[0] + lines[1] + "x\n" + strings.Join(lines[2:], ""),
		"deep JSON":                 lines[0] + `{"pos":1,"event":` + strings.Repeat("[", 1_000_000) + "\n" + strings.Join(lines[1:], ""),
		"zeros":                     lines[0] + strings.Repeat("\x00", 1<<20) + "\n" + strings.Join(lines[1:], ""),
	} {
		store, path := openStore(t), filepath.Join(t.TempDir(), "log.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run, err := record.OpenFile(path)
		if err == nil {
			run, err = store.Import(run, nil)
		}
		if err == nil {
			t.Errorf("%s: it is taken in as %+v", name, run.Info)
		}
		checkEmpty(t, store)
	}
	if names, err := os.ReadDir(filepath.Dir(from.Dir())); err != nil || slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() != filepath.Base(from.Dir()) }) {
		t.Errorf("beside the store are %v, %v", names, err)
	}
}
