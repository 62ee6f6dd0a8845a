// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainjson"
)

// TranscriptOptions configure the transcript of an agent. Nil and the zero value keep it in memory; see [Summary].
// It does not depend on a logger or a log level.
type TranscriptOptions struct {
	// Disabled keeps no transcript at all.
	Disabled bool
	// NoRaw omits the lines themselves, and keeps the details of the entries.
	NoRaw bool
	// File is where the entries are written while the agent works, as [Transcript.WriteTo] writes them. They
	// are added to what is there. Several evaluations may share a file. Empty means none.
	File string
	// Entry is called with every entry, one after the other. It must not block. Nil means none.
	Entry func(TranscriptEntry)
	// MaxBytes is how much is kept in memory. Where it does not suffice the oldest entries are forgotten,
	// but not in File, and [Transcript.Forgotten] counts them. Zero means 32 MiB.
	MaxBytes int
}

const defaultTranscriptBytes = 32 << 20

// A TranscriptEntry is one thing that an agent wrote down: a message, a call, a result.
type TranscriptEntry struct {
	PromptName string               `json:"prompt_name"`
	Adapter    string               `json:"adapter"`
	RunID      string               `json:"run_id"`
	Type       agent.TranscriptType `json:"entry_type"`
	// Sequence numbers the entries of each source from 1, without gaps.
	Sequence int64 `json:"sequence_number"`
	// Source is [agent.MainSource], or [agent.SubagentSource] and the id of the subagent.
	Source    string    `json:"source"`
	Time      time.Time `json:"timestamp"`
	SessionID string    `json:"session_id,omitempty"`
	// LineID is the agent's own name of the line. The entries that were made of one line share it.
	LineID string `json:"line_id,omitempty"`
	// Detail is what the entry is about, byte for byte as the agent wrote it: a text, a block of a message,
	// the tokens of a model call; for other types the whole line.
	Detail json.RawMessage `json:"detail,omitempty"`
	// Raw is the whole line. Of several entries that were made of one line the first has it.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// A Transcript is what an agent wrote down during an evaluation, or in a conversation. It may be read while the agent works.
type Transcript struct {
	opts       TranscriptOptions
	promptName string
	adapter    string

	mu        sync.Mutex
	runID     string
	entries   []keptEntry
	bytes     int
	forgotten int
	last      map[string]int64 // the number of the last entry of each source
	file      *os.File
	recorded  RunRecord // of the run under way, or nil
	err       error
}

type keptEntry struct {
	TranscriptEntry
	size int
}

// transcribe has the transcript go on with the run that begins.
func (e *evaluation) transcribe() (err error) {
	if e.record == nil {
		if e.record, err = newTranscript(e.opts.Transcript, e.prompt.Name(), e.adapter.Agent()); err != nil {
			return err
		}
	}
	e.record.begin(e.run.RunID)
	e.summary.Transcript = e.record
	return nil
}

// newTranscript makes a transcript, or none if it is not wanted.
func newTranscript(o *TranscriptOptions, promptName, adapter string) (*Transcript, error) {
	t := &Transcript{promptName: promptName, adapter: adapter, last: map[string]int64{}}
	if o != nil {
		t.opts = *o
	}
	if t.opts.Disabled {
		return nil, nil
	}
	t.opts.MaxBytes = cmp.Or(t.opts.MaxBytes, defaultTranscriptBytes)
	if t.opts.File == "" {
		return t, nil
	}
	var err error
	if t.file, err = openTranscript(t.opts.File); err != nil {
		return nil, err
	}
	return t, nil
}

// openTranscript opens a file to add to. A line that a crash tore ends before ours begins.
func openTranscript(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("drover: the file of the transcript: %w", err),
			"set TranscriptOptions.File to a file that can be written")
	}
	last := make([]byte, 1)
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if _, err = file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			_, err = file.Write([]byte("\n"))
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("drover: the file of the transcript: %w", err), file.Close())
	}
	return file, nil
}

// begin sets the run of the next lines.
func (t *Transcript) begin(runID string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runID = runID
}

// recordTo sets the record that receives each entry from here on. Nil means none.
func (t *Transcript) recordTo(record RunRecord) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorded = record
}

// receiver takes lines of the agent. It is nil for a disabled transcript.
func (t *Transcript) receiver() func(agent.TranscriptLine) {
	if t == nil {
		return nil
	}
	return t.take
}

func (t *Transcript) take(line agent.TranscriptLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parts := line.Parts
	if len(parts) == 0 {
		parts = []agent.TranscriptPart{{Type: agent.TranscriptUnknown, Detail: line.Raw}}
	}
	for i, part := range parts {
		t.last[line.Source]++
		e := TranscriptEntry{
			PromptName: t.promptName, Adapter: t.adapter, RunID: t.runID, Type: part.Type, Sequence: t.last[line.Source],
			Source: line.Source, Time: line.Time.Round(0).UTC(), SessionID: line.SessionID, LineID: line.ID, Detail: part.Detail,
		}
		size := len(part.Detail)
		if i == 0 && !t.opts.NoRaw {
			e.Raw, size = line.Raw, len(line.Raw)
		}
		t.addLocked(keptEntry{e, size + entryOverhead})
	}
}

// entryOverhead is about what an entry costs beside what it holds.
const entryOverhead = 256

func (t *Transcript) addLocked(e keptEntry) {
	t.writeLocked(e.TranscriptEntry)
	t.tellLocked(e.TranscriptEntry)
	t.entries = append(t.entries, e)
	t.bytes += e.size
	over := 0
	for t.bytes > t.opts.MaxBytes && over < len(t.entries) {
		t.bytes -= t.entries[over].size
		over++
	}
	clear(t.entries[:over])
	t.entries = t.entries[over:]
	t.forgotten += over
}

func (t *Transcript) writeLocked(e TranscriptEntry) {
	if t.file == nil {
		return
	}
	line, err := e.line()
	if err == nil {
		_, err = t.file.Write(line) // in one piece: others may write there too
	}
	if err != nil {
		t.failLocked(fmt.Errorf("drover: the transcript lacks entries in %s: %w", t.opts.File, err))
	}
}

func (t *Transcript) tellLocked(e TranscriptEntry) {
	if t.recorded != nil {
		t.recorded.Transcript(e)
	}
	if t.opts.Entry == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			t.failLocked(fmt.Errorf("drover: TranscriptOptions.Entry panicked: %v", p))
		}
	}()
	t.opts.Entry(e)
}

func (t *Transcript) failLocked(err error) {
	if t.err == nil {
		t.err = err
	}
}

// Entries yields the entries so far, in the order in which they were received.
func (t *Transcript) Entries() iter.Seq[TranscriptEntry] {
	return func(yield func(TranscriptEntry) bool) {
		for _, e := range t.kept() {
			if !yield(e.TranscriptEntry) {
				return
			}
		}
	}
}

func (t *Transcript) kept() []keptEntry {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.entries)
}

// Forgotten is how many of the first entries are not in memory any more.
func (t *Transcript) Forgotten() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forgotten
}

// Err is the first thing that went wrong with File or Entry. It does not end an evaluation.
func (t *Transcript) Err() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// WriteTo writes the entries that are in memory, each as a line of JSON.
func (t *Transcript) WriteTo(w io.Writer) (n int64, err error) {
	for e := range t.Entries() {
		line, err := e.line()
		if err != nil {
			return n, err
		}
		k, err := w.Write(line)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (t *Transcript) close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

// line is the entry as a line of JSON. It contains the agent's line byte for byte, but for spaces between
// tokens. A detail that is the whole line is not written twice.
func (e TranscriptEntry) line() ([]byte, error) {
	if bytes.Equal(e.Detail, e.Raw) {
		e.Detail = nil
	}
	line, err := plainjson.Marshal(e)
	return append(line, '\n'), err
}

// ReadTranscript yields the entries that [Transcript.WriteTo], or [TranscriptOptions].File, has written. A
// line that is not an entry yields an error, and reading continues after it; the error of r is the last pair.
func ReadTranscript(r io.Reader) iter.Seq2[TranscriptEntry, error] {
	return func(yield func(TranscriptEntry, error) bool) {
		in := lines.NewReader(r, 0)
		for {
			line, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			tooLong, skipped := errors.AsType[*lines.TooLongError](err)
			switch {
			case skipped:
				err = tooLong
			case err == nil && len(bytes.TrimSpace(line)) == 0:
				continue
			}
			var e TranscriptEntry
			if err == nil {
				e, err = parseEntry(line)
				skipped = err != nil
			}
			if err != nil {
				err = fmt.Errorf("drover: line %d of the transcript: %w", in.Number(), err)
			}
			if !yield(e, err) || err != nil && !skipped {
				return
			}
		}
	}
}

var errNoEntry = errors.New("not an entry")

func parseEntry(line []byte) (TranscriptEntry, error) {
	var e TranscriptEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return TranscriptEntry{}, err
	}
	if e.Type == "" || e.Sequence < 1 {
		return TranscriptEntry{}, errNoEntry
	}
	if e.Detail == nil {
		e.Detail = e.Raw
	}
	return e, nil
}
