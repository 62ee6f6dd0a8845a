// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
)

func transcriptLine(source, raw string) agent.TranscriptLine {
	return agent.TranscriptLine{Source: source, Time: time.Unix(1, 0), Raw: json.RawMessage(raw)}
}

func TestTranscript_EntriesBeyondMaxBytesAreOnlyInTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.jsonl")
	var reported int
	tr, err := newTranscript(&TranscriptOptions{MaxBytes: 3000, File: file, Entry: func(TranscriptEntry) { reported++ }}, "p", "a")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		tr.take(transcriptLine("main", fmt.Sprintf(`{"n":%d}`, i)))
	}
	kept := slices.Collect(tr.Entries())
	if len(kept) == 0 || len(kept) > 12 || len(kept)+tr.Forgotten() != 100 || kept[len(kept)-1].Sequence != 100 || reported != 100 {
		t.Errorf("%d entries are kept, %d forgotten, %d reported, the last is %d; want the last ones of 100", len(kept), tr.Forgotten(), reported, kept[len(kept)-1].Sequence)
	}
	if err := tr.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openTranscript(file)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	var read int64
	for e, err := range ReadTranscript(again) {
		if read++; err != nil || e.Sequence != read {
			t.Errorf("entry %d has the number %d, %v", read, e.Sequence, err)
		}
	}
	if read != 100 {
		t.Errorf("the file has %d entries, want 100", read)
	}
}

func TestTranscript_NoRawOmitsTheLine(t *testing.T) {
	tr, err := newTranscript(&TranscriptOptions{NoRaw: true}, "p", "a")
	if err != nil {
		t.Fatal(err)
	}
	line := transcriptLine("main", `{"type":"user","text":"go"}`)
	line.Parts = []agent.TranscriptPart{{Type: agent.TranscriptUserMessage, Detail: json.RawMessage(`"go"`)}}
	tr.take(line)
	var text bytes.Buffer
	if _, err := tr.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); strings.Contains(got, "raw") || !strings.Contains(got, `"detail":"go"`) {
		t.Errorf("the entry is %s, want its detail without the line", got)
	}
}

func TestTranscript_PanicOfEntryIsAnError(t *testing.T) {
	tr, err := newTranscript(&TranscriptOptions{Entry: func(TranscriptEntry) { panic("oh") }}, "p", "a")
	if err != nil {
		t.Fatal(err)
	}
	tr.take(transcriptLine("main", `{}`))
	if err := tr.Err(); err == nil || !strings.Contains(advice.Text(err), "oh") || len(slices.Collect(tr.Entries())) != 1 {
		t.Errorf("the error is %v and %d entries are kept, want the panic and one", err, len(slices.Collect(tr.Entries())))
	}
}

// Many goroutines append at once, and another one reads meanwhile.
func TestTranscript_ConcurrentAppendsLeaveNoGapsInNumbers(t *testing.T) {
	tr, err := newTranscript(nil, "p", "a")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				tr.take(transcriptLine(fmt.Sprint("subagent:", i%2), `{}`))
				_, _ = tr.WriteTo(&bytes.Buffer{})
			}
		})
	}
	wg.Wait()
	last := map[string]int64{}
	for e := range tr.Entries() {
		if last[e.Source]++; e.Sequence != last[e.Source] {
			t.Fatalf("%s: the number %d follows %d", e.Source, e.Sequence, last[e.Source]-1)
		}
	}
	if diff := cmp.Diff(map[string]int64{"subagent:0": 200, "subagent:1": 200}, last); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// FuzzAnEntryIsReadAsItWasWritten has any JSON go through a file.
func FuzzAnEntryIsReadAsItWasWritten(f *testing.F) {
	f.Add([]byte(`{"a":"`+"\u2028"+`<&>"}`), []byte(`"x"`))
	f.Add([]byte("{\"bad\":\"\xff\xed\xa0\x80\"}"), []byte(`{"\ud800":1e400}`))
	f.Add([]byte("null"), []byte(" [1, 2]\n"))
	f.Fuzz(func(t *testing.T, raw, detail []byte) {
		if !json.Valid(raw) || !json.Valid(detail) {
			return
		}
		want := TranscriptEntry{Type: agent.TranscriptUnknown, Sequence: 1, Source: "main", Raw: compacted(raw), Detail: compacted(detail)}
		line, err := TranscriptEntry{Type: want.Type, Sequence: 1, Source: "main", Raw: raw, Detail: detail}.line()
		if err != nil || bytes.Count(line, []byte("\n")) != 1 {
			t.Fatalf("%q is no line: %v", line, err)
		}
		for got, err := range ReadTranscript(bytes.NewReader(line)) {
			if err != nil || !bytes.Equal(got.Raw, want.Raw) || !bytes.Equal(got.Detail, want.Detail) {
				t.Fatalf("read %q and %q, %v; want %q and %q", got.Raw, got.Detail, err, want.Raw, want.Detail)
			}
		}
	})
}

func compacted(raw []byte) json.RawMessage {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is valid
	return b.Bytes()
}
