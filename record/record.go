// SPDX-License-Identifier: Apache-2.0

// Package record keeps runs in files, and finds them again.
//
// A [Store] is a folder of kept runs. A [Recorder], as [drover.Options] takes it, adds one for each evaluation: it follows the log of
// the session by position, so that nothing that an agent waits for waits for it. A [Run] is a kept run, in the folder or in a
// bundle: what began, every event, the transcript, the changed files, and the end.
//
// Secrets are replaced before anything is written: the values that the [RecorderOptions] name, and known forms of keys and
// tokens. A secret in another form, such as one that is split over two texts, cannot be recognised.
//
// The files are the truth. Package record/index makes a database of them, which can be made again at any time.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/session"
)

// Format is the version of the files of a run. Readers take all versions up to it.
const Format = 1

// The files of a run, in its folder and in a bundle.
const (
	infoFile       = "run.json"
	eventsFile     = "events.jsonl"
	transcriptFile = "transcript.jsonl"
	diffFile       = "workspace.diff"
	trafficFile    = "traffic.jsonl"
	endFile        = "end.json"
)

// Info is what is known of a run when it begins.
type Info struct {
	// Format is the version of the files.
	Format int `json:"droverRun"`
	// ID is the run's, and Session that of the session that has its events.
	ID      string    `json:"id"`
	Session string    `json:"session"`
	Began   time.Time `json:"began"`
	// Deadline is when the run had to be over; zero without a deadline.
	Deadline time.Time `json:"deadline,omitzero"`
	// Agent is the name of the adapter, and Prompt that of the prompt.
	Agent  string `json:"agent"`
	Prompt string `json:"prompt"`
	// Name is what the owner of the recorder calls the agent, as an agent file does; empty without a name.
	Name string `json:"name,omitzero"`
	// Folder is where the run belongs: the current folder of the command, the working directory of a program's agent.
	Folder string `json:"folder"`
	Model  string `json:"model,omitzero"`
	// Resumes is the token of the conversation that it continues.
	Resumes string `json:"resumes,omitzero"`
	// Versions are those of drover and of the system. The agent's is in its init event.
	Versions map[string]string `json:"versions,omitempty"`
	// Settings are those of the agent, as JSON. Command is the command line, where there is one.
	Settings json.RawMessage `json:"settings,omitempty"`
	Command  []string        `json:"command,omitempty"`
	// Imported is the file that the run was taken from.
	Imported string `json:"imported,omitzero"`
}

// End is how a run ended.
type End struct {
	Ended  time.Time        `json:"ended"`
	Status event.DoneStatus `json:"status"`
	// Text and Output are the answer.
	Text   string          `json:"text,omitzero"`
	Output json.RawMessage `json:"output,omitempty"`
	// Error is why it failed, Kind the kind of failure, and Advice what to do.
	Error  string `json:"error,omitzero"`
	Kind   string `json:"kind,omitzero"`
	Advice string `json:"advice,omitzero"`

	Usage       event.Usage   `json:"usage"`
	Duration    time.Duration `json:"duration"`
	APIDuration time.Duration `json:"apiDuration,omitzero"`
	Turns       int           `json:"turns"`
	// ResumeToken continues the conversation, if it could be stored.
	ResumeToken string       `json:"resumeToken,omitzero"`
	Stats       drover.Stats `json:"stats"`
	// Entries is the number of entries of the log.
	Entries int64 `json:"entries"`
	// Problem is why the record is not complete. Empty means that it is.
	Problem string `json:"problem,omitzero"`
}

// A State is what is known of the end of a run.
type State string

// The states of a run.
const (
	Running State = "running" // its program is at work
	Ended   State = "ended"
	Lost    State = "lost" // its program is gone without an end
)

// A Run is one kept run.
type Run struct {
	Info
	// End is nil unless the State is Ended.
	End   *End
	State State
	// Path is the folder, or the bundle.
	Path string

	files  fs.FS
	closer io.Closer // of a bundle
	damage []string
}

// maxInfo bounds the two small files of a run.
const maxInfo = 64 << 20

// maxDiff bounds the patch of a run. Tests lower it.
var maxDiff int64 = 256 << 20

// maxTranscript bounds a line of the transcript: the longest line of an agent, and what is written about it.
const maxTranscript = lines.DefaultLimit + 1<<20

// openRun reads a run from its files. locked reports whether a program has it open.
func openRun(files fs.FS, path string, locked bool) (*Run, error) {
	r := &Run{Path: path, files: files, State: Running}
	if err := readJSON(files, infoFile, &r.Info); err != nil {
		return nil, fmt.Errorf("record: reading %s: %w", path, err)
	}
	if r.Format > Format {
		return nil, advice.Wrap(fmt.Errorf("record: %s has format %d, this program reads up to %d", path, r.Format, Format), "use a newer version of Drover")
	}
	if r.Format < 1 || r.ID == "" {
		return nil, fmt.Errorf("record: reading %s: %s is not of a run", path, infoFile)
	}
	var end End
	switch err := readJSON(files, endFile, &end); {
	case err == nil:
		r.End, r.State = &end, Ended
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("record: reading %s: %w", path, err)
	case !locked:
		r.State = Lost
	}
	return r, nil
}

func readJSON(files fs.FS, name string, v any) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxInfo+1))
	switch {
	case err != nil:
	case len(text) > maxInfo:
		err = fmt.Errorf("it has more than %d bytes", maxInfo)
	default:
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Entries yields the entries of the log in order. An error is the last pair; the entries before it are good. The last line of a run
// that is not at its end may be a part of one: it is left out.
func (r *Run) Entries() iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		f, err := r.files.Open(eventsFile)
		if err != nil {
			yield(session.Entry{}, fmt.Errorf("record: %s: %w", r.Path, err))
			return
		}
		defer func() { _ = f.Close() }()
		log, err := session.NewEntryReader(f)
		for err == nil {
			var entry session.Entry
			if entry, err = log.Next(); err == nil && !yield(entry, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) && (r.State == Ended || !errors.Is(err, session.ErrTorn)) {
			yield(session.Entry{}, fmt.Errorf("record: %s: %s: %w", r.Path, eventsFile, err))
		}
	}
}

// Transcript yields what the agent wrote down. An error is the last pair.
func (r *Run) Transcript() iter.Seq2[drover.TranscriptEntry, error] {
	return func(yield func(drover.TranscriptEntry, error) bool) {
		f, err := r.files.Open(transcriptFile)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(drover.TranscriptEntry{}, fmt.Errorf("record: %s: %w", r.Path, err))
			return
		}
		defer func() { _ = f.Close() }()
		for entries := lines.NewReader(f, maxTranscript); ; {
			entry, err := r.transcriptEntry(entries)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(entry, fmt.Errorf("record: %s: %s: %w", r.Path, transcriptFile, err))
				return
			}
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// transcriptEntry reads a line of the transcript, or io.EOF. The last line of a run without an end may be a part of one.
func (r *Run) transcriptEntry(from *lines.Reader) (entry drover.TranscriptEntry, err error) {
	line, err := from.Next()
	if err == nil && from.Last() {
		if _, err := from.Next(); !errors.Is(err, io.EOF) {
			return entry, err
		}
		if r.State != Ended && !json.Valid(line) {
			return entry, io.EOF
		}
	}
	if err == nil {
		err = json.Unmarshal(line, &entry)
	}
	if entry.Detail == nil { // it is the whole line
		entry.Detail = entry.Raw
	}
	return entry, err
}

// Diff is the patch of what the run changed in its workspace, empty without one. With an error, it has the lines that could
// be read.
func (r *Run) Diff() ([]byte, error) {
	f, err := r.files.Open(diffFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record: %s: %w", r.Path, err)
	}
	defer func() { _ = f.Close() }()
	text, err := plainfile.ReadAll(f, maxDiff)
	if err != nil {
		return text[:bytes.LastIndexByte(text, '\n')+1], fmt.Errorf("record: %s: %w", r.Path, err)
	}
	return text, nil
}
