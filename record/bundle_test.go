// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/session"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write testdata/bundle-v1.zip again")

// order is that of the files in a bundle.
var order = []string{"manifest.json", "run.json", "end.json", "events.jsonl", "workspace.diff", "transcript.jsonl", "traffic.jsonl"}

var began = time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)

// A kept is a run that a test writes by itself.
type kept struct {
	id         string
	texts      []string // one event each
	transcript []string // one entry each
	diff       string
	traffic    string
	end        *record.End
	torn       string // the beginning of a line at the end of each log
}

// write writes the run into a new store.
func (k kept) write(t testing.TB, dir string) (*record.Store, *record.Run) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	store, err := record.Open(dir)
	check(err)
	id := cmp.Or(k.id, "r1")
	folder := filepath.Join(dir, "2026-03-01", id)
	check(os.MkdirAll(folder, 0o700))
	put := func(name string, text []byte) {
		t.Helper()
		check(os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	asJSON := func(v any) []byte {
		t.Helper()
		text, err := json.Marshal(v)
		check(err)
		return append(text, '\n')
	}
	put("run.json", asJSON(record.Info{
		Format: record.Format, ID: id, Session: "s1", Began: began, Agent: "scripted", Prompt: "greet", Folder: "/src", Model: "big",
		Versions: map[string]string{"system": "plan9/mips"},
	}))
	log, err := session.OpenFile(filepath.Join(folder, "events.jsonl"), &session.FileOptions{Sync: session.SyncNever})
	check(err)
	check(log.Init(session.Head{Version: session.EncodingVersion, ID: "s1", Created: began}))
	for i, text := range k.texts {
		e := event.New(event.Text{Content: text})
		e.Agent, e.Time, e.RunID, e.Seq = "scripted", began.Add(time.Duration(i)*time.Second), id, int64(i+1)
		entry, err := session.Entry{Pos: int64(i + 1), Event: e}.Record()
		check(err)
		check(log.Append([]session.Record{entry}))
	}
	check(log.Close())
	var transcript []byte
	for i, text := range k.transcript {
		detail := bytes.TrimSpace(asJSON(text))
		transcript = append(transcript, asJSON(drover.TranscriptEntry{RunID: id, Sequence: int64(i + 1), Source: "main", Type: "user_message", Time: began, Detail: detail})...)
	}
	if k.torn != "" {
		events, err := os.ReadFile(filepath.Join(folder, "events.jsonl"))
		check(err)
		put("events.jsonl", append(events, k.torn...))
		transcript = append(transcript, k.torn...)
	}
	put("transcript.jsonl", transcript)
	if k.diff != "" {
		put("workspace.diff", []byte(k.diff))
	}
	if k.traffic != "" {
		put("traffic.jsonl", []byte(k.traffic))
	}
	if k.end != nil {
		put("end.json", asJSON(k.end))
	}
	put("lock", []byte("the lock"))
	put("notes.txt", []byte("foreign"))
	r, err := store.Run("2026-03-01/" + id)
	check(err)
	return store, r
}

func whole() kept {
	return kept{
		texts: []string{"Hello.", "The first step.", "The second step."}, transcript: []string{"a", "b <c>", "d\ne"},
		diff: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n", traffic: "{\"call\":1}\n{\"call\":2}\n",
		end: &record.End{Ended: began.Add(time.Minute), Status: event.DoneSuccess, Text: "Done.", Output: json.RawMessage(`{"n":1}`), Turns: 2, Entries: 3},
	}
}

func export(t testing.TB, r *record.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Export(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func openAt(text []byte) (*record.Run, error) {
	return record.OpenBundleAt(bytes.NewReader(text), int64(len(text)))
}

func mustOpen(t testing.TB, text []byte) *record.Run {
	t.Helper()
	r, err := openAt(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents is everything that can be read of a run.
type contents struct {
	info       record.Info
	end        *record.End
	entries    []session.Entry
	transcript []drover.TranscriptEntry
	diff       string
	errs       map[string]error // by file
}

func read(r *record.Run) contents {
	c := contents{info: r.Info, end: r.End, errs: map[string]error{}}
	for entry, err := range r.Entries() {
		if err != nil {
			c.errs["events.jsonl"] = err
			break
		}
		c.entries = append(c.entries, entry)
	}
	for entry, err := range r.Transcript() {
		if err != nil {
			c.errs["transcript.jsonl"] = err
			break
		}
		c.transcript = append(c.transcript, entry)
	}
	diff, err := r.Diff()
	if c.diff = string(diff); err != nil {
		c.errs["workspace.diff"] = err
	}
	return c
}

// isPart compares what was read with what was kept: it is the same, and what has an error is the beginning of it.
func isPart(got, want contents) error {
	switch {
	case !reflect.DeepEqual(got.info, want.info):
		return fmt.Errorf("the info is %+v, want %+v", got.info, want.info)
	case got.end != nil && !reflect.DeepEqual(got.end, want.end):
		return fmt.Errorf("the end is %+v, want %+v", got.end, want.end)
	}
	return errors.Join(
		isPrefix("events.jsonl", got.entries, want.entries, got.errs), isPrefix("transcript.jsonl", got.transcript, want.transcript, got.errs),
		isPrefix("workspace.diff", slices.Collect(strings.Lines(got.diff)), slices.Collect(strings.Lines(want.diff)), got.errs))
}

func isPrefix[T any](name string, got, want []T, errs map[string]error) error {
	if len(got) > len(want) || len(got) > 0 && !reflect.DeepEqual(got, want[:len(got)]) {
		return fmt.Errorf("%s: got %v, want %v", name, got, want)
	}
	if len(got) < len(want) && errs[name] == nil {
		return fmt.Errorf("%s: %d of %d are there, and no error", name, len(got), len(want))
	}
	return nil
}

func namesIn(t testing.TB, text []byte) (names []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if f.Flags&8 != 0 {
			t.Errorf("%s has a data descriptor", f.Name)
		}
		names = append(names, f.Name)
	}
	return names
}

func TestExport_OpensAsTheSameRun(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 0, 20)
		k := kept{
			id: rapid.StringMatching(`[a-z0-9]{1,12}`).Draw(rt, "id"), texts: texts.Draw(rt, "texts"), transcript: texts.Draw(rt, "transcript"),
			diff: rapid.String().Draw(rt, "diff"), traffic: rapid.String().Draw(rt, "traffic"),
		}
		if rapid.Bool().Draw(rt, "ended") {
			k.end = &record.End{Ended: began, Status: event.DoneSuccess, Text: rapid.String().Draw(rt, "answer"), Entries: int64(len(k.texts))}
		} else {
			k.torn = rapid.SampledFrom([]string{"", `{"pos":`, `{"pos":99,"kind":"te`}).Draw(rt, "torn")
		}
		n++
		_, r := k.write(t, filepath.Join(dir, fmt.Sprint(n)))
		text := export(t, r)
		bundle := mustOpen(t, text)
		got, want := read(bundle), read(r)
		if err := isPart(got, want); err != nil {
			rt.Error(err)
		}
		if len(got.errs)+len(want.errs) > 0 || (got.end == nil) != (k.end == nil) || bundle.State != r.State || len(bundle.Damage()) > 0 {
			rt.Errorf("the errors are %v and %v, the state %s, the damage %q", got.errs, want.errs, bundle.State, bundle.Damage())
		}
		traffic := k.traffic
		if k.end == nil {
			traffic = traffic[:strings.LastIndexByte(traffic, '\n')+1]
		}
		if have, err := record.ReadFile(bundle, "traffic.jsonl"); string(have) != traffic || (err != nil) != (k.traffic == "") {
			rt.Errorf("the traffic is %q (%v), want %q", have, err, traffic)
		}
		again := export(t, bundle)
		if err := isPart(read(mustOpen(t, again)), want); err != nil {
			rt.Errorf("the bundle of the bundle: %v", err)
		}
	})
}

func TestExport_HasTheFilesOfTheRunOnly(t *testing.T) {
	_, r := whole().write(t, t.TempDir())
	text := export(t, r)
	if got := namesIn(t, text); !slices.Equal(got, order) {
		t.Errorf("the bundle has %q, want %q", got, order)
	}
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		DroverBundle int
		Made         time.Time
		Run          string
		Files        []struct {
			Name, SHA256     string
			Size, Compressed uint64
		}
	}
	raw, err := fs.ReadFile(z, "manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.DroverBundle != 1 || manifest.Run != "r1" || time.Since(manifest.Made) > time.Hour || len(manifest.Files) != len(order)-1 {
		t.Errorf("the manifest is %s", raw)
	}
	for i, f := range manifest.Files {
		want, err := os.ReadFile(filepath.Join(r.Path, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(z, f.Name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q (%v), want %q", f.Name, got, err, want)
		}
		sum := sha256.Sum256(want)
		if entry := z.File[i+1]; f.SHA256 != hex.EncodeToString(sum[:]) || f.Size != entry.UncompressedSize64 || f.Compressed != entry.CompressedSize64 {
			t.Errorf("the manifest has %+v, the zip %+v", f, entry.FileHeader)
		}
	}
}

// A run that the recorder keeps is exported while its agent works, and when it has ended.
func TestExport_RunInProgress(t *testing.T) {
	store := openStore(t)
	var inProgress []byte
	emit := func(n int) agenttest.Step { return agenttest.Emit(event.Text{Content: fmt.Sprint("step ", n)}) }
	look := func(*agenttest.Run) {
		folders, err := store.Folders()
		if err != nil || len(folders) != 1 {
			t.Fatalf("the store has %q (%v)", folders, err)
		}
		run, err := store.Run(folders[0])
		if err != nil {
			t.Fatal(err)
		}
		if run.State != record.Running {
			t.Errorf("the run is %s", run.State)
		}
		inProgress = export(t, run)
	}
	resp, err := drover.Evaluate(t.Context(), agenttest.New(emit(1), look, emit(2), agenttest.Done("token-1")), ask(t, "Count"),
		&drover.Options{Recorder: record.NewRecorder(store, nil)})
	if err != nil {
		t.Fatal(err)
	}
	run, err := store.Find(resp.RunID)
	if err != nil {
		t.Fatal(err)
	}
	want := read(run)
	early := mustOpen(t, inProgress)
	got := read(early)
	if early.State != record.Lost || early.End != nil || len(got.errs) > 0 || len(got.entries) >= len(want.entries) {
		t.Errorf("in progress the bundle is %s, its errors %v, it has %d of %d entries", early.State, got.errs, len(got.entries), len(want.entries))
	}
	got.errs["events.jsonl"] = io.ErrUnexpectedEOF // there are less, as they should be
	if err := isPart(got, want); err != nil {
		t.Error(err)
	}
	if err := isPart(read(mustOpen(t, export(t, run))), want); err != nil {
		t.Error(err)
	}
}

// A log that grows while it is exported, and that ends within a line, is exported in whole lines.
func TestExport_LeavesOutAPartOfALine(t *testing.T) {
	k := whole()
	k.end, k.torn, k.traffic = nil, `{"pos":4,"kind":`, "{\"call\":1}\n{\"ca"
	_, r := k.write(t, t.TempDir())
	lock, err := os.OpenFile(filepath.Join(r.Path, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if ok, err := filelock.Try(lock); !ok {
		t.Fatal(err)
	}
	bundle := mustOpen(t, export(t, r))
	for name, want := range map[string]int{"events.jsonl": 4, "transcript.jsonl": 3, "traffic.jsonl": 1} {
		text, err := record.ReadFile(bundle, name)
		if err != nil || bytes.Count(text, []byte("\n")) != want || !bytes.HasSuffix(text, []byte("\n")) {
			t.Errorf("%s is %q (%v), want %d lines", name, text, err, want)
		}
	}
}

func TestExport_Fails(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, dir string) error
		want  string
	}{
		{"without run.json", func(_ *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "run.json")) }, "run.json"},
		{"a link", func(t *testing.T, dir string) error {
			other := filepath.Join(t.TempDir(), "other")
			return errors.Join(os.WriteFile(other, []byte("secret"), 0o600), os.Symlink(other, filepath.Join(dir, "traffic.jsonl")))
		}, "traffic.jsonl: it is not a regular file"},
		{"a folder", func(_ *testing.T, dir string) error { return os.Mkdir(filepath.Join(dir, "traffic.jsonl"), 0o700) }, "it is not a regular file"},
		{"a diff that is too large", func(_ *testing.T, dir string) error {
			return os.Truncate(filepath.Join(dir, "workspace.diff"), 256<<20+1)
		}, "workspace.diff has more than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := whole()
			k.traffic = ""
			_, r := k.write(t, t.TempDir())
			if err := test.spoil(t, r.Path); err != nil {
				t.Fatal(err)
			}
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			err := r.Export(io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), r.Path) || advice.Of(err) == "" {
				t.Errorf("the error is %v, its advice %q; want %q", err, advice.Of(err), test.want)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v (%v)", left, err)
			}
		})
	}
}

func TestExport_ReportsAWriterThatFails(t *testing.T) {
	_, r := whole().write(t, t.TempDir())
	full := len(export(t, r))
	for _, room := range []int{0, 100, full - 1} {
		if err := r.Export(&limitedWriter{room}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("with %d of %d bytes the error is %v", room, full, err)
		}
	}
}

type limitedWriter struct{ room int }

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// offsets has the offset of the header and of the end of each file of a bundle.
func offsets(t testing.TB, text []byte) (headers, ends map[string]int) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	headers, ends = map[string]int{}, map[string]int{}
	at := 0
	for _, f := range z.File {
		data, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		headers[f.Name], ends[f.Name] = at, int(data)+int(f.CompressedSize64)
		at = ends[f.Name]
	}
	return headers, ends
}

// words are texts that are compressed, but not to a few bytes.
func words(n int) (texts []string) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		var b strings.Builder
		for range 12 {
			fmt.Fprintf(&b, "%c%x ", 'a'+rune(r.IntN(26)), r.IntN(4096))
		}
		texts = append(texts, b.String())
	}
	return texts
}

// A bundle that ends at any byte has each file that is whole, the whole lines of the one that is cut off, and no other line.
func TestOpenBundle_CutOffAtEveryByte(t *testing.T) {
	k := whole()
	k.texts, k.transcript, k.diff = words(12), words(8), strings.Join(words(10), "\n")+"\n"
	_, r := k.write(t, t.TempDir())
	want, text := read(r), export(t, r)
	headers, ends := offsets(t, text)
	entries := map[int]int{} // by length
	for n := range len(text) {
		run, err := openAt(text[:n])
		if (err == nil) != (n >= ends["run.json"]) && (err != nil || n < ends["run.json"]-8) { // see below
			t.Fatalf("%d of %d bytes: the error is %v", n, len(text), err)
		}
		if err != nil {
			if advice.Of(err) == "" || !strings.Contains(err.Error(), "bundle.zip") {
				t.Errorf("%d bytes: the error %q has no advice or no path", n, err)
			}
			continue
		}
		got := read(run)
		if err := isPart(got, want); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if n >= ends["end.json"] && got.end == nil || n < ends["end.json"]-8 && got.end != nil || (run.State == record.Ended) != (got.end != nil) {
			t.Errorf("%d bytes: the run is %s", n, run.State)
		}
		damage := strings.Join(run.Damage(), "\n")
		for _, name := range order[3:6] {
			// The last bytes of compressed data may say no more than that it ends.
			if n >= ends[name] && got.errs[name] != nil || n < ends[name]-8 && (got.errs[name] == nil || !strings.Contains(got.errs[name].Error(), name)) {
				t.Errorf("%d bytes: %s, in %d to %d: %v", n, name, headers[name], ends[name], got.errs[name])
			}
			if (n < ends[name]) != strings.Contains(damage, name) {
				t.Errorf("%d bytes: %s, in %d to %d, and the damage is %q", n, name, headers[name], ends[name], damage)
			}
		}
		if damage == "" {
			t.Errorf("%d bytes: no damage is reported", n)
		}
		if entries[n] = len(got.entries); entries[n] < entries[n-1] {
			t.Errorf("%d bytes have %d entries, one less has %d", n, entries[n], entries[n-1])
		}
	}
	if cut := ends["events.jsonl"] - 16; entries[cut] < len(want.entries)-2 {
		t.Errorf("the log without its last 16 bytes has %d of %d entries", entries[cut], len(want.entries))
	}
	if got := entries[(headers["events.jsonl"]+ends["events.jsonl"])/2]; got == 0 {
		t.Error("the first half of the log has no entry")
	}
}

// Whatever bytes are changed, no wrong content is read without an error.
func TestOpenBundle_ChangedBytes(t *testing.T) {
	k := whole()
	k.texts, k.transcript = words(6), words(4)
	_, r := k.write(t, t.TempDir())
	want, text := read(r), export(t, r)
	headers, ends := offsets(t, text)
	opened, same := 0, 0
	check := func(t interface{ Errorf(string, ...any) }, changed []byte) {
		run, err := openAt(changed)
		if err != nil {
			if advice.Of(err) == "" {
				t.Errorf("the error %q has no advice", err)
			}
			return
		}
		opened++
		got := read(run)
		if !reflect.DeepEqual(got.info, want.info) {
			t.Errorf("the info is %+v", got.info)
		}
		if got.end == nil && !strings.Contains(strings.Join(run.Damage(), "\n"), "end.json") || got.end != nil && !reflect.DeepEqual(got.end, want.end) {
			t.Errorf("the end is %+v, the damage %q", got.end, run.Damage())
		}
		for name, equal := range map[string]bool{
			"events.jsonl": reflect.DeepEqual(got.entries, want.entries), "transcript.jsonl": reflect.DeepEqual(got.transcript, want.transcript), "workspace.diff": got.diff == want.diff,
		} {
			if !equal && got.errs[name] == nil {
				t.Errorf("%s is another one, and there is no error", name)
			}
			if equal {
				same++
			}
		}
	}
	for at := range text { // one byte each
		changed := bytes.Clone(text)
		changed[at] ^= 0x55
		check(t, changed)
	}
	if opened < len(text)/2 || same < opened*2 {
		t.Errorf("of %d bundles with a changed byte %d open, and have %d whole files", len(text), opened, same)
	}
	opened = 0
	rapid.Check(t, func(rt *rapid.T) {
		changed := bytes.Clone(text)
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			// Small offsets are drawn often: each file has its own.
			name := rapid.SampledFrom(append([]string{"directory"}, order...)).Draw(rt, "file")
			first, end := headers[name], ends[name]
			if name == "directory" {
				first, end = ends["traffic.jsonl"], len(text)
			}
			changed[rapid.IntRange(first, end-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		check(rt, changed)
	})
	if opened == 0 {
		t.Error("no bundle with several changed bytes opens")
	}
}

func TestOpenBundle_File(t *testing.T) {
	_, r := whole().write(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "bundle.zip")
	if err := os.WriteFile(path, export(t, r), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := record.OpenBundle(path)
	if err != nil {
		t.Fatal(err)
	}
	if run.Path != path || run.State != record.Ended || len(run.Damage()) > 0 {
		t.Errorf("the run is %s at %s, its damage %q", run.State, run.Path, run.Damage())
	}
	if err := isPart(read(run), read(r)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(run.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if _, err := run.Diff(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the diff of a closed bundle: %v", err)
	}
	if _, err := r.Diff(); err != nil {
		t.Errorf("the diff of a folder: %v", err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "missing.zip"), t.TempDir()} {
		if _, err := record.OpenBundle(path); err == nil || !strings.Contains(err.Error(), path) || advice.Of(err) == "" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

const golden = "testdata/bundle-v1.zip"

// A bundle of the first version opens for ever.
func TestOpenBundle_Version1(t *testing.T) {
	_, r := whole().write(t, t.TempDir())
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, export(t, r), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	run, err := record.OpenBundle(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	got := read(run)
	if err := isPart(got, read(r)); err != nil {
		t.Error(err)
	}
	if len(got.entries) != 3 || len(got.errs) > 0 || run.State != record.Ended || len(run.Damage()) > 0 {
		t.Errorf("it has %d entries, the errors %v, the state %s, the damage %q", len(got.entries), got.errs, run.State, run.Damage())
	}
}

// Events are listed without reading other files: the traffic can be large.
func TestOpenBundle_ReadsNoOtherFile(t *testing.T) {
	k := whole()
	random := make([]byte, 4<<20)
	for i := range random {
		random[i] = byte(rand.Uint32())
	}
	k.traffic = hex.EncodeToString(random)
	_, r := k.write(t, t.TempDir())
	text := export(t, r)
	src := &countedReader{src: bytes.NewReader(text)}
	run, err := record.OpenBundleAt(src, int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range run.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != len(k.texts) || src.read > 100<<10 {
		t.Errorf("for %d entries %d of %d bytes were read", n, src.read, len(text))
	}
}

type countedReader struct {
	src  io.ReaderAt
	read int
}

func (c *countedReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.src.ReadAt(p, at)
	c.read += n
	return n, err
}
