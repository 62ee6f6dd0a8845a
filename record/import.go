// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
)

// OpenLog opens a log that [session.OpenFile] has made as a run: what there is to know of it is in its events. A folder is one
// with such a log and a transcript, as earlier versions of drover demo have left it.
func OpenLog(path string) (*Run, error) {
	files, transcript := fs.FS(oldFiles{log: path}), ""
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		files, transcript = oldFiles{filepath.Join(path, "session.jsonl"), filepath.Join(path, "transcript.jsonl")}, path
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
			Entries: entry.Pos,
		}
	}
}

// oldFiles are files under the names of those of a run.
type oldFiles struct{ log, transcript string }

func (f oldFiles) Open(name string) (fs.File, error) {
	path := map[string]string{eventsFile: f.log, transcriptFile: f.transcript}[name]
	if path == "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return plainfile.Open(path)
}

// Import takes a copy of a run into the store, without the values of secrets. It returns the copy. A run that is in the store
// already is an error that wraps [fs.ErrExist].
func (s *Store) Import(r *Run, secrets []string) (*Run, error) {
	run, err := s.take(r, newMasker(secrets))
	if err != nil {
		return nil, fmt.Errorf("record: taking %s in: %w", r.Path, err)
	}
	return s.Run(run)
}

func (s *Store) take(r *Run, mask *masker) (run string, err error) {
	if r.State == Running {
		return "", ErrRunning
	}
	if !validID(r.ID) {
		return "", fmt.Errorf("its id %q cannot name a folder", r.ID)
	}
	if _, err := s.Find(r.ID); err == nil {
		return "", advice.Wrap(fmt.Errorf("run %s: %w", r.ID, fs.ErrExist), "drover runs show %s shows it", r.ID)
	}
	run = r.Began.UTC().Format(dayForm) + "/" + r.ID
	k := &keptRun{folder: run, dir: filepath.Join(s.dir, filepath.FromSlash(run)), Recorder: &Recorder{store: s, mask: mask}}
	if err := os.MkdirAll(filepath.Dir(k.dir), 0o700); err != nil {
		return "", err
	}
	if err := os.Mkdir(k.dir, 0o700); err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, k.close())
		if err != nil {
			err = errors.Join(err, os.RemoveAll(k.dir))
		}
	}()
	if k.lock, err = os.OpenFile(filepath.Join(k.dir, lockFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return "", err
	}
	if _, err := filelock.Try(k.lock); err != nil {
		return "", err
	}
	if err := k.copyEvents(r); err != nil {
		return "", err
	}
	if err := k.copyTranscript(r); err != nil {
		return "", err
	}
	diff, err := r.Diff()
	if err == nil {
		err = k.diff(diff)
	}
	if err == nil && r.End != nil {
		err = k.write(endFile, r.End)
	}
	if err == nil {
		info := r.Info
		info.Imported = r.Path
		err = k.write(infoFile, info)
	}
	if err == nil {
		err = s.report(ChangeEnd, run)
	}
	return run, err
}

func (k *keptRun) copyEvents(r *Run) (err error) {
	if k.log, err = session.OpenFile(filepath.Join(k.dir, eventsFile), &session.FileOptions{Sync: session.SyncInterval}); err != nil {
		return err
	}
	if err := k.log.Init(session.Head{Version: session.EncodingVersion, ID: r.Session, Created: r.Began}); err != nil {
		return err
	}
	for entry, err := range r.Entries() {
		if err != nil {
			return err
		}
		if err := k.entry(entry); err != nil {
			return err
		}
	}
	return nil
}

func (k *keptRun) copyTranscript(r *Run) error {
	var text bytes.Buffer
	for entry, err := range r.Transcript() {
		if err != nil {
			return err
		}
		line, err := plainjson.Marshal(entry)
		if err != nil {
			return err
		}
		text.Write(append(k.mask.json(line), '\n'))
	}
	return os.WriteFile(filepath.Join(k.dir, transcriptFile), text.Bytes(), 0o600)
}
