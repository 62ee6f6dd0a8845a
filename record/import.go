// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
)

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
