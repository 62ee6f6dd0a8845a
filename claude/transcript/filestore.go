// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/filelock"
)

// lockPoll is how often another process's lock is tried again. It is held for one write, so the first try mostly succeeds.
const lockPoll = 2 * time.Millisecond

// A FileStore is a [Store] in a directory, laid out as the CLI lays out its own: one file of lines
// per transcript, <project>/<session>.jsonl and <project>/<session>/<subpath>.jsonl. Files can be
// read by their owner alone. It has all optional methods.
//
// Several processes may use one directory: an append holds an exclusive lock on its file (advisory, so network file systems
// without locks are not supported). An append that fails leaves no entries. An append that a crash cuts off leaves at most
// whole entries from its start; Load ignores the torn rest, and the next Append removes it. Data is written without fsync:
// it survives the death of the process, not the loss of power.
type FileStore struct {
	dir *projects
}

// NewFileStore returns a store in dir, which is created if need be. Close releases it.
func NewFileStore(dir string) (*FileStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("transcript: creating store: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("transcript: opening store: %w", err)
	}
	return &FileStore{&projects{root, dir}}, nil
}

// Close releases the directory. The store cannot be used afterwards.
func (s *FileStore) Close() error { return s.dir.Close() }

func (k Key) file() string { return path.Join(k.ProjectKey, k.SessionID, k.Subpath) + ".jsonl" }

// Append implements [Store].
func (s *FileStore) Append(ctx context.Context, key Key, entries []json.RawMessage) error {
	if err := checkEntries(key, entries); err != nil || len(entries) == 0 {
		return err
	}
	var text bytes.Buffer
	for _, e := range entries {
		if err := json.Compact(&text, e); err != nil { // one line each
			return fmt.Errorf("transcript: appending to %s: %w", key, err)
		}
		text.WriteByte('\n')
	}
	if err := s.append(ctx, key.file(), text.Bytes()); err != nil {
		return fmt.Errorf("transcript: appending to %s: %w", key, err)
	}
	return nil
}

func (s *FileStore) append(ctx context.Context, name string, text []byte) error {
	f, err := s.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := filelock.Lock(ctx, f, lockPoll); err != nil {
		return err
	}
	defer func() { _ = filelock.Unlock(f) }()
	end, err := repairEnd(f)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(text, end); err != nil {
		return errors.Join(err, f.Truncate(end))
	}
	return nil
}

// Lock implements [Locker]. The lock is a file beside that of the session, which exists only while it is held.
func (s *FileStore) Lock(ctx context.Context, key Key) (unlock func() error, err error) {
	if key.Subpath = ""; key.Validate() != nil {
		return nil, key.Validate()
	}
	name := path.Join(key.ProjectKey, key.SessionID) + ".lock"
	for {
		f, err := s.open(name)
		if err != nil {
			return nil, fmt.Errorf("transcript: locking %s: %w", key, err)
		}
		if held, err := s.holds(f, name); err != nil || !held {
			_ = f.Close()
			if err == nil && ctx.Err() == nil {
				continue // its holder has removed the file meanwhile
			}
			return nil, fmt.Errorf("transcript: locking %s: %w", key, cmp.Or(err, ctx.Err()))
		}
		return sync.OnceValue(func() error { return errors.Join(s.dir.Remove(name), filelock.Unlock(f), f.Close()) }), nil
	}
}

func (s *FileStore) open(name string) (*os.File, error) {
	if err := s.dir.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return s.dir.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
}

// holds takes the lock of f and reports whether f is still the file of this name.
func (s *FileStore) holds(f *os.File, name string) (bool, error) {
	got, err := filelock.Try(f)
	if err != nil {
		return false, err
	}
	if !got {
		return false, ErrInUse
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := s.dir.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// repairEnd makes a file end with a newline and returns its length. An unfinished last line that is
// whole JSON gets its newline; any other is the rest of a torn append and is cut off.
func repairEnd(f *os.File) (end int64, err error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return 0, err
	}
	size := st.Size()
	last, err := readAt(f, size-1, 1)
	if err != nil || len(last) == 1 && last[0] == '\n' {
		return size, err
	}
	torn, err := lastLine(f, size)
	if err != nil {
		return 0, err
	}
	if json.Valid(torn) {
		_, err = f.WriteAt([]byte{'\n'}, size)
		return size + 1, err
	}
	end = size - int64(len(torn))
	return end, f.Truncate(end)
}

// lastLine returns what follows the last newline.
func lastLine(f io.ReaderAt, size int64) ([]byte, error) {
	for n := int64(window); ; n *= 4 {
		n = min(n, size)
		tail, err := readAt(f, size-n, n)
		if err != nil {
			return nil, err
		}
		if i := bytes.LastIndexByte(tail, '\n'); i >= 0 {
			return tail[i+1:], nil
		}
		if n == size {
			return tail, nil
		}
	}
}

// Load implements [Store]. A line that is not JSON, other than a torn last one, is an error with its line number.
func (s *FileStore) Load(ctx context.Context, key Key) ([]json.RawMessage, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	data, err := s.dir.readAll(ctx, key.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("transcript: loading %s: %w", key, err)
	}
	var entries []json.RawMessage
	number := 0
	for line := range bytes.Lines(data) {
		number++
		whole := line[len(line)-1] == '\n'
		if line = bytes.TrimSpace(line); json.Valid(line) {
			entries = append(entries, line)
		} else if whole && len(line) > 0 {
			return nil, fmt.Errorf("transcript: loading %s: line %d of %s is not JSON; remove the line to load the rest",
				key, number, key.file())
		}
	}
	return entries, nil
}

// ListSessions implements [SessionLister].
func (s *FileStore) ListSessions(ctx context.Context, projectKey string) ([]StoredSession, error) {
	var list []StoredSession
	for _, found := range s.sessions(projectKey) {
		list = append(list, StoredSession{found.id, found.modified})
	}
	return list, ctx.Err()
}

func (s *FileStore) sessions(projectKey string) []session {
	if !safePath(projectKey) {
		return nil
	}
	return s.dir.sessions([]string{projectKey}, "")
}

// ListSummaries implements [SummaryLister]. It reads the two ends of each session.
func (s *FileStore) ListSummaries(ctx context.Context, projectKey string) ([]Summary, error) {
	var list []Summary
	for _, found := range s.sessions(projectKey) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := s.dir.Open(found.file())
		if err != nil {
			continue // deleted since it was seen
		}
		sum := Summary{SessionID: found.id, Modified: found.modified}
		err = sum.foldEnds(f, found.size)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("transcript: reading %s: %w", found.file(), err)
		}
		list = append(list, sum)
	}
	return list, nil
}

// Delete implements [Deleter].
func (s *FileStore) Delete(ctx context.Context, key Key) error {
	if err := key.Validate(); err != nil {
		return err
	}
	err := s.dir.Remove(key.file())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if key.Subpath == "" {
		err = errors.Join(err, s.dir.RemoveAll(path.Join(key.ProjectKey, key.SessionID)))
	}
	if err != nil {
		return fmt.Errorf("transcript: deleting %s: %w", key, err)
	}
	return ctx.Err()
}

// ListSubkeys implements [SubkeyLister].
func (s *FileStore) ListSubkeys(ctx context.Context, key Key) ([]string, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	dir := path.Join(key.ProjectKey, key.SessionID)
	var list []string
	err := s.dir.walkJSONL(ctx, dir, 0, func(name string) {
		list = append(list, strings.TrimPrefix(name, dir+"/"))
	})
	return list, err
}
