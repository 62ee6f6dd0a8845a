// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
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
		files, transcript = oldFiles{log: filepath.Join(path, "session.jsonl"), transcript: filepath.Join(path, "transcript.jsonl")}, path
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

// recordingKind is the kind of the events that stand for the exchanges of a recording.
const recordingKind event.Kind = "gateway:exchange"

// openRecording opens a recording of [gateway.Record] as a run, with an event for each exchange.
func openRecording(path string) (_ *Run, err error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewReader(f)
	head, err := lines.ReadBytes('\n')
	var header struct {
		Version int             `json:"drover_recording"`
		Date    time.Time       `json:"date"`
		Folders gateway.Folders `json:"folders"`
	}
	if err == nil {
		err = json.Unmarshal(head, &header)
	}
	if err != nil {
		return nil, fmt.Errorf("record: %s: the header: %w", path, err)
	}
	if header.Version > 1 {
		return nil, advice.Wrap(fmt.Errorf("record: %s has version %d, this program reads up to 1", path, header.Version), "use a newer version of Drover")
	}
	r := &Run{Path: path, State: Lost}
	id := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	r.Info = Info{Format: Format, ID: id, Session: id, Began: header.Date, Prompt: "recording", Folder: header.Folders.Dir}
	var log bytes.Buffer
	fmt.Fprintf(&log, `{"drover":"session-log","version":%d,"id":%q,"created":%q}`+"\n", session.EncodingVersion, id, header.Date.Format(time.RFC3339Nano))
	for pos := int64(1); ; pos++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a last line without an end is of a program that was killed
			break
		}
		var x struct {
			Seq     int   `json:"seq"`
			AtMS    int64 `json:"at_ms"`
			Request struct {
				Method, Path string
				Body         struct {
					JSON struct{ Model string }
				}
			}
			Response struct {
				MS     int64
				Status int
				Error  string
			}
		}
		if err == nil {
			err = json.Unmarshal(line, &x)
		}
		if err != nil {
			return nil, fmt.Errorf("record: %s: line %d: %w", path, pos+1, err)
		}
		data, err := plainjson.Marshal(map[string]any{
			"seq": x.Seq, "method": x.Request.Method, "path": x.Request.Path, "model": x.Request.Body.JSON.Model,
			"status": x.Response.Status, "ms": x.Response.MS, "error": x.Response.Error,
		})
		if err != nil {
			return nil, err
		}
		e := event.New(event.Extension{Kind: recordingKind, Data: data})
		e.Time = header.Date.Add(time.Duration(x.AtMS) * time.Millisecond)
		record, err := session.Entry{Pos: pos, Event: e}.Record()
		if err != nil {
			return nil, err
		}
		log.Write(append(record.Data, '\n'))
	}
	r.files = recordedFiles{oldFiles{traffic: path}, log.Bytes()}
	return r, nil
}

// recordedFiles are those of a recording: the recording itself, and the log that was made of it.
type recordedFiles struct {
	oldFiles
	log []byte
}

func (f recordedFiles) Open(name string) (fs.File, error) {
	if name == eventsFile {
		return memoryFile{bytes.NewReader(f.log)}, nil
	}
	return f.oldFiles.Open(name)
}

// A memoryFile is a file that is read only.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (memoryFile) Close() error               { return nil }

// OpenFile opens a run in a file: a bundle, a log of a session, a recording of model traffic, or the folder of an earlier demo.
func OpenFile(path string) (*Run, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, infoFile)); err == nil {
			locked, err := isLocked(path)
			if err != nil {
				return nil, fmt.Errorf("record: %w", err)
			}
			return openRun(os.DirFS(path), path, locked)
		}
		return OpenLog(path)
	}
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	start := make([]byte, 64)
	n, err := io.ReadFull(f, start)
	if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("record: reading %s: %w", path, err)
	}
	switch start = start[:n]; {
	case bytes.HasPrefix(start, []byte("PK")):
		return OpenBundle(path)
	case bytes.Contains(start, []byte(`"drover_recording"`)):
		return openRecording(path)
	}
	return OpenLog(path)
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
type oldFiles struct{ log, transcript, traffic string }

func (f oldFiles) Open(name string) (fs.File, error) {
	path := map[string]string{eventsFile: f.log, transcriptFile: f.transcript, trafficFile: f.traffic}[name]
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
	if err := s.makeFolder(k.dir); err != nil {
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
