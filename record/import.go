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
	"github.com/drover-agents/drover/internal/plainfile"
)

// OpenFile opens a run in a file: a bundle, a log of a session, a recording of model traffic, or the folder of an earlier demo. The
// values of secrets are for a log, as in [OpenLog]; the others had theirs replaced when they were written.
func OpenFile(path string, secrets ...string) (*Run, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, infoFile)); err == nil {
			return openFolder(path)
		}
		return OpenLog(path, secrets...)
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
	return OpenLog(path, secrets...)
}

// Import copies a run into the store, without the values of secrets, and returns the copy. A run that is in the store already is an
// error that wraps [fs.ErrExist].
func (s *Store) Import(r *Run, secrets []string) (*Run, error) {
	folder, err := NewRecorder(s, &RecorderOptions{Secrets: secrets}).importRun(r)
	if err != nil {
		return nil, fmt.Errorf("record: importing %s: %w", r.Path, err)
	}
	return s.Run(folder)
}

func (r *Recorder) importRun(run *Run) (folder string, err error) {
	if run.State == Running {
		return "", ErrRunning
	}
	if validID(run.ID) {
		if _, err := r.store.Find(run.ID); err == nil {
			return "", advice.Wrap(fmt.Errorf("run %s: %w", run.ID, fs.ErrExist), "drover runs show %s shows it", run.ID)
		}
	}
	k, err := r.open(run.ID, run.Began, run.Session, nil)
	if err != nil {
		return "", err
	}
	if err = k.copyRun(run); err == nil {
		err = r.store.report(ChangeEnd, k.folder)
	}
	if err = errors.Join(err, k.close()); err != nil {
		return "", errors.Join(err, os.RemoveAll(k.dir))
	}
	return k.folder, nil
}

// copyRun copies the files of a run. The last one is that without which there is no run.
func (k *keptRun) copyRun(run *Run) error {
	for entry, err := range run.Entries() {
		if err == nil {
			err = k.entry(entry)
		}
		if err != nil {
			return err
		}
	}
	for entry, err := range run.Transcript() {
		if err == nil {
			err = k.writeLine(entry)
		}
		if err != nil {
			return err
		}
	}
	diff, err := run.Diff()
	if err = errors.Join(err, k.text.Flush(), k.diff(diff)); err != nil {
		return err
	}
	if run.End != nil {
		if err := k.write(endFile, run.End); err != nil {
			return err
		}
	}
	info := run.Info
	info.Imported = run.Path
	return k.write(infoFile, info)
}
