// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/internal/plainfile"
)

// A CorruptError is damage in a log that records follow. It matches [ErrCorrupt].
type CorruptError struct {
	Path string
	// Line and Offset are where the damage begins, from 1 and from 0.
	Line, Offset int64
	// Good is the number of records before it.
	Good int64
	// Reason is what is wrong with the line.
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: line %d of %s (byte %d) is damaged: %s; the %d records before it are good",
		ErrCorrupt, e.Line, e.Path, e.Offset, e.Reason, e.Good)
}

// Advice implements [advice.Adviser].
func (e *CorruptError) Advice() string {
	return fmt.Sprintf("session.Salvage(%q) keeps those and moves the rest aside; or repair the line by hand", e.Path)
}

// Is reports whether target is [ErrCorrupt].
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// corruptAt describes the fault of a scan. The header is line 1, so record n is on line n+1.
func corruptAt(path string, scan logScan) *CorruptError {
	return &CorruptError{path, scan.good.pos + 2, scan.good.offset, scan.good.pos, scan.fault.Error()}
}

const (
	// maxTornFiles is how many torn ends are kept beside a log. Further ones replace the last.
	maxTornFiles = 10
	// maxTorn is how much is kept of one.
	maxTorn = maxRecord
)

type tornTail struct {
	size    int64
	savedAs string
}

// repair cuts off what follows the last good record, after it was saved.
func (s *FileStore) repair(size int64) error {
	end := s.logEnd.offset
	torn := io.NewSectionReader(s.f, end, min(size-end, maxTorn))
	savedAs, err := saveBeside(s.path+".torn", maxTornFiles, s.opts.Perm, torn, s.opts.Sync)
	if err != nil {
		return fmt.Errorf("session: %s has a torn last line, which could not be saved: %w", s.path, err)
	}
	if err := s.f.Truncate(end); err != nil {
		return fmt.Errorf("session: cutting off the torn last line of %s: %w", s.path, err)
	}
	s.repaired = tornTail{size - end, savedAs}
	s.opts.Logger.Warn("session log had a torn last line, which was cut off",
		"path", s.path, "bytes", size-end, "after", s.logEnd.pos, "saved_as", savedAs)
	return nil
}

// saveBeside copies to the first free name of name, <name>.2 and so on; number most, unless zero, is replaced.
func saveBeside(name string, most int, perm fs.FileMode, in io.Reader, policy SyncPolicy) (string, error) {
	for n := 1; ; n++ {
		free := name
		if n > 1 {
			free = fmt.Sprintf("%s.%d", name, n)
		}
		out, err := os.OpenFile(free, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) {
			if n != most {
				continue
			}
			out, err = replaceFile(free, perm)
		}
		if err != nil {
			return "", err
		}
		return free, copyTo(out, in, policy)
	}
}

// copyTo fills a file and closes it, or deletes it.
func copyTo(out *os.File, in io.Reader, policy SyncPolicy) error {
	_, err := io.Copy(out, in)
	if err == nil && policy != SyncNever {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(out.Name()) // a partial copy is useless
	}
	return err
}

// Salvage makes a damaged log usable: it keeps the records before the damage and moves everything from there on to a file
// beside the log, which it names. It looks at every line, and does nothing to a log that has no damage, other than to cut
// off a torn end in the same way. It fails with [ErrLocked] while the log is open for writing.
func Salvage(path string) (kept int64, movedTo string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, "", fmt.Errorf("session: salvaging: %w", err)
	}
	f, size, err := openLog(path, FileOptions{Perm: info.Mode().Perm()})
	if err != nil {
		return 0, "", err
	}
	kept, movedTo, err = salvage(path, f, size, info.Mode().Perm())
	return kept, movedTo, errors.Join(err, f.Close())
}

func salvage(path string, f logFile, size int64, perm fs.FileMode) (kept int64, movedTo string, err error) {
	good, err := goodPart(path, f, size)
	if err != nil || good.offset == size {
		return good.pos, "", err
	}
	rest := io.NewSectionReader(f, good.offset, size-good.offset)
	movedTo, err = saveBeside(path+".damaged", 0, perm, rest, SyncAlways)
	if err == nil {
		err = plainfile.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return 0, "", fmt.Errorf("session: salvaging %s: %w", path, err)
	}
	// A checkpoint may belong to the part that is cut off. It is only a cache, so it is removed.
	if err := os.Remove(path + checkpointSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, movedTo, fmt.Errorf("session: salvaging %s: %w", path, err)
	}
	if err := errors.Join(f.Truncate(good.offset), f.Sync()); err != nil {
		return 0, movedTo, fmt.Errorf("session: salvaging %s: %w", path, err)
	}
	return good.pos, movedTo, nil
}

// goodPart is where the good records end. A log with a damaged header has no good records.
func goodPart(path string, f io.ReaderAt, size int64) (logPosition, error) {
	_, line, err := readHead(path, f, size)
	if errors.Is(err, ErrCorrupt) || err == nil && len(line) == 0 {
		return logPosition{}, nil
	}
	if err != nil {
		return logPosition{}, err
	}
	scan, err := scanLog(f, logPosition{0, int64(len(line))}, size)
	if err != nil {
		return logPosition{}, fmt.Errorf("session: reading %s: %w", path, err)
	}
	return scan.good, nil
}
