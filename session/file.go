// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/safelog"
)

// FileOptions configures [OpenFile]. The zero value is ready to use.
type FileOptions struct {
	// Sync is when records are forced to the disk. The default is [SyncAlways].
	Sync SyncPolicy
	// Interval is how long [SyncInterval] waits after the log grew. Zero means one second.
	Interval time.Duration
	// Perm is the mode of the files that are created. Zero means 0600: sessions contain conversations.
	Perm fs.FileMode
	// ReadOnly opens a log without locking it, also while another process writes it, and changes nothing: a torn last line
	// is left where it is. The store has the records that were there when it was opened.
	ReadOnly bool
	// Logger receives repairs, and checkpoints that were not used. Nil discards them.
	Logger *slog.Logger
}

// A FileStore is a [Store] in a file of JSON lines: a header that identifies the log, and then one record per line.
//
// It promises:
//
//   - A record that Append has acknowledged survives the death of the process, however sudden, and the loss of power
//     as far as the [SyncPolicy] allows. After a crash during an Append, some whole records from its start are left,
//     or none.
//   - An incomplete line at the end is cut off when the log is opened again. Its bytes are kept beside the log, and
//     [FileStore.Repaired] and the Logger report it.
//   - Records are cut off only if no record follows. Damage in the middle of a log is a [CorruptError], and the file
//     is left as it is; see [Salvage]. A file system that writes the parts of one large Append in any order can make
//     a loss of power look like that; nothing acknowledged is lost then either.
//   - An Append that fails leaves the file as it was. If that is impossible, or the disk has refused to confirm a
//     write, the store accepts no more records: the content of the disk is unknown until the log is opened again.
//     Reading still works.
//   - There is one writer at a time, on all systems that have file locks. The lock is on the log itself, ends with
//     the process that holds it, and keeps no reader out.
//
// Beside the log are <path>.checkpoint, which may be deleted at any time, and, after a repair, <path>.torn.
//
// Opening a log checks it. With a checkpoint that belongs to the log, opening checks only the records after it. The
// others are checked when they are read: Records never yields a damaged record, nor one out of order.
//
// All methods may be called by several goroutines.
type FileStore struct {
	path string
	opts FileOptions
	f    logFile

	// writing is held for as long as the file changes.
	writing  sync.Mutex
	buffer   []byte // of Append, kept for the next
	syncer   *syncer
	repaired tornTail

	mu       sync.Mutex
	head     Head
	headLine []byte // with its newline; empty before Init
	logEnd   logPosition
	broken   error
	closed   bool
}

// A logFile is what a FileStore needs of an *os.File.
type logFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// OpenFile opens the log at path, or begins a new one in a file that is missing or empty; a missing directory is created.
// The error wraps [ErrLocked] if the log is open for writing already, in this process or another, [ErrCorrupt] if a record
// in its middle is damaged and [ErrVersion] if a newer version of this package wrote it. An error leaves the file as it is.
func OpenFile(path string, opts *FileOptions) (*FileStore, error) {
	if absolute, err := filepath.Abs(path); err == nil { // the working directory may be another later on
		path = absolute
	}
	s := &FileStore{path: path}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Interval = cmp.Or(s.opts.Interval, time.Second)
	s.opts.Perm = cmp.Or(s.opts.Perm, 0o600)
	s.opts.Logger = safelog.Logger(s.opts.Logger)
	if int(s.opts.Sync) >= len(syncNames) {
		return nil, fmt.Errorf("session: opening %s: unknown sync policy %v", path, s.opts.Sync)
	}
	f, size, err := openLog(path, s.opts)
	if err != nil {
		return nil, err
	}
	s.f = f
	if err := s.load(size); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	if s.opts.Sync == SyncInterval && !s.opts.ReadOnly {
		s.syncer = startSyncer(s.opts.Interval, s.syncNow)
	}
	return s, nil
}

// openLog opens the file and, to write, locks it. It returns its length too.
func openLog(path string, opts FileOptions) (logFile, int64, error) {
	// A pipe or a device would block, or swallow what it is given.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("session: %s is not a regular file", path)
	}
	flags := os.O_RDWR | os.O_CREATE
	if opts.ReadOnly {
		flags = os.O_RDONLY
	} else if err := makeDir(filepath.Dir(path), opts.Sync); err != nil {
		return nil, 0, fmt.Errorf("session: creating the directory of a log: %w", err)
	}
	f, err := os.OpenFile(path, flags, opts.Perm)
	if err != nil {
		return nil, 0, fmt.Errorf("session: opening a log: %w", err)
	}
	if !opts.ReadOnly {
		err = lockLog(f)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, 0, err
	}
	if opts.ReadOnly {
		return f, info.Size(), nil
	}
	return lockedFile{f}, info.Size(), nil
}

// load reads what the file has, and repairs its end.
func (s *FileStore) load(size int64) (err error) {
	if s.head, s.headLine, err = readHead(s.path, s.f, size); err != nil {
		return err
	}
	s.logEnd = logPosition{0, int64(len(s.headLine))}
	if len(s.headLine) > 0 {
		scan, err := s.scan(size)
		if err != nil {
			return err
		}
		s.logEnd = scan.good
	}
	if s.opts.ReadOnly || size == 0 {
		return nil
	}
	if s.logEnd.offset < size {
		if err := s.repair(size); err != nil {
			return err
		}
	}
	if s.opts.Sync == SyncNever {
		return nil
	}
	// A process that was killed may have left records in the system's memory alone. They count from now on.
	if err := s.f.Sync(); err != nil {
		return fmt.Errorf("session: opening %s: %w", s.path, err)
	}
	return nil
}

// scan checks the records, those up to a checkpoint left out.
func (s *FileStore) scan(size int64) (logScan, error) {
	from := s.checkedUpTo(size)
	scan, err := scanLog(s.f, from, size)
	if err != nil {
		return scan, fmt.Errorf("session: reading %s: %w", s.path, err)
	}
	if scan.corrupt {
		return scan, corruptAt(s.path, scan)
	}
	return scan, nil
}

// Head implements [Store].
func (s *FileStore) Head() (Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Head{}, s.errClosed()
	}
	head := s.head
	head.Tags = maps.Clone(head.Tags)
	return head, nil
}

// Last implements [Store].
func (s *FileStore) Last() int64 { return s.kept().pos }

// kept is where the log ends.
func (s *FileStore) kept() logPosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logEnd
}

// Repaired returns the length of the torn end that was cut off when the log was opened, and the file with its first
// 64 MB. Zero means that the log had no torn end.
func (s *FileStore) Repaired() (bytes int64, savedAs string) {
	return s.repaired.size, s.repaired.savedAs
}

// Close forces the log to the disk, unless the policy is [SyncNever], and releases it. Its error is about
// records that were acknowledged: they may not be on the disk, or the file was deleted meanwhile.
func (s *FileStore) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	if s.syncer != nil {
		s.syncer.stop()
		s.syncNow()
	}
	if err := errors.Join(s.failure(), s.checkThere(), s.f.Close()); err != nil {
		return fmt.Errorf("session: closing %s: %w", s.path, err)
	}
	return nil
}

func (s *FileStore) errClosed() error { return fmt.Errorf("%w: %s", ErrClosed, s.path) }
