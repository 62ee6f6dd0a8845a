// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/session"
)

// OpenLog opens a log that [session.OpenFile] has made as a run: what there is to know of it is in its events. A folder is one
// with such a log and a transcript, as earlier versions of drover demo have left it. The files may have secrets, which are replaced in
// what is read: the values of secrets, and known forms.
func OpenLog(path string, secrets ...string) (*Run, error) {
	mask := newMasker(secrets)
	files, transcript := fs.FS(oldFiles{log: path, mask: mask}), ""
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		files, transcript = oldFiles{log: filepath.Join(path, "session.jsonl"), transcript: filepath.Join(path, "transcript.jsonl"), mask: mask}, path
	}
	r := &Run{Path: path, files: files, State: Lost}
	f, err := files.Open(eventsFile)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	defer func() { _ = f.Close() }()
	log, err := session.NewEntryReader(f)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("record: %s: %w", path, err), "give a log of a session, a recording of --record, or a bundle")
	}
	head := log.Head()
	r.Info = Info{Format: Format, ID: head.ID, Session: head.ID, Began: head.Created}
	if transcript != "" { // people know it by the name of its folder
		r.ID = filepath.Base(path)
	}
	for entry, err := range r.Entries() {
		if err != nil {
			break // Entries reports it to who reads them
		}
		r.note(entry)
	}
	return r, nil
}

// note takes what an entry tells about the run. The last end of a log counts: it may have several runs.
func (r *Run) note(entry session.Entry) {
	e := entry.Event
	r.Agent = cmp.Or(r.Agent, e.Agent)
	switch p := e.Payload.(type) {
	case event.Init:
		r.Folder, r.Model = cmp.Or(r.Folder, p.Dir), cmp.Or(r.Model, p.Model)
	case session.PromptExecuted:
		r.Prompt = p.Name
		if r.End != nil {
			r.End.Duration, r.End.APIDuration, r.End.Turns, r.End.Error = p.Duration, p.APIDuration, p.Turns, p.Error
		}
	case event.Done:
		r.State = Ended
		r.End = &End{
			Ended: e.Time, Status: p.Status, Text: p.Result, Output: p.Output, Usage: p.Usage, Duration: p.Duration, ResumeToken: p.ResumeToken,
		}
	}
	if r.End != nil {
		r.End.Entries = entry.Pos
	}
}

// oldFiles are files under the names of those of a run. The lines of the log and of the transcript are masked.
type oldFiles struct {
	log, transcript, traffic string
	mask                     *masker
}

func (f oldFiles) Open(name string) (fs.File, error) {
	path := map[string]string{eventsFile: f.log, transcriptFile: f.transcript, trafficFile: f.traffic}[name]
	if path == "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	open := plainfile.Open
	if f.transcript != "" { // files of a folder that a user has named, and not these
		open = func(path string) (*os.File, error) { return plainfile.OpenReal(path, os.O_RDONLY, 0) }
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	if name == trafficFile { // it was masked when it was written
		return file, nil
	}
	return &maskedFile{file, lines.NewReader(file, maxTranscript), f.mask, nil}, nil
}

// A maskedFile has lines of JSON without secrets.
type maskedFile struct {
	fs.File
	lines *lines.Reader
	mask  *masker
	rest  []byte // of a line that is read
}

func (f *maskedFile) Read(p []byte) (n int, err error) {
	for len(f.rest) == 0 {
		line, err := f.lines.Next()
		if err != nil {
			return 0, err
		}
		if f.rest = f.mask.json(line); !f.lines.Last() {
			f.rest = append(f.rest, '\n')
		}
	}
	n = copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
