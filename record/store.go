// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/plainfile"
)

// A Store is a folder of kept runs. It may be used by many processes at a time. Nobody but its owner may read it.
//
// A run is in <folder>/<day>/<id>. The journal beside the days has a line for each run that begins, ends or is removed, so that
// a reader that knows an earlier state reads what has changed since.
type Store struct{ dir string }

// journalFile is the file in which changes are reported.
const journalFile = "journal"

// Open opens the store in a folder, and makes it if it is missing.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("record: the folder of kept runs: %w", err), "name a folder that can be written to")
	}
	return &Store{dir}, nil
}

// Dir is the folder of the store.
func (s *Store) Dir() string { return s.dir }

// dayForm is the name of the folder of a day, in UTC.
const dayForm = "2006-01-02"

// lockFile is locked for as long as the program of the run is at work.
const lockFile = "lock"

// A Change is a line of the journal.
type Change struct {
	// Run is the run's folder below that of the store, with slashes.
	Run string
	// What is "begin", "end" or "remove".
	What string
}

// The changes of a run.
const (
	ChangeBegin  = "begin"
	ChangeEnd    = "end"
	ChangeRemove = "remove"
)

// report adds a line to the journal and has it on the disk. Each line begins with a newline too: one that a full disk cut off
// spoils no other.
func (s *Store) report(what, run string) error {
	f, err := plainfile.OpenReal(filepath.Join(s.dir, journalFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + what + " " + run + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// Changes returns the lines of the journal behind an offset, and the offset behind them. A journal that is shorter than the
// offset has been replaced: replaced is true, and the lines are all that it has.
func (s *Store) Changes(after int64) (changes []Change, end int64, replaced bool, err error) {
	f, err := plainfile.OpenReal(filepath.Join(s.dir, journalFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, after > 0, nil
	}
	if err != nil {
		return nil, 0, false, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, false, err
	}
	if info.Size() < after {
		after, replaced = 0, true
	}
	text := make([]byte, info.Size()-after)
	n, err := f.ReadAt(text, after)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, false, err
	}
	text = text[:bytes.LastIndexByte(text[:n], '\n')+1]
	for line := range strings.Lines(string(text)) {
		what, run, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if validRun(run) && slices.Contains([]string{ChangeBegin, ChangeEnd, ChangeRemove}, what) {
			changes = append(changes, Change{run, what})
		}
	}
	return changes, after + int64(len(text)), replaced, nil
}

// Follow yields the lines of the journal behind an offset, as [Store.Changes] does, and then those that are added, until ctx ends. An
// error comes without lines; the next change is waited for all the same.
func (s *Store) Follow(ctx context.Context, after int64) iter.Seq2[[]Change, error] {
	return func(yield func([]Change, error) bool) {
		w := plainfile.NewWatch(s.dir, journalFile)
		defer w.Close()
		for ctx.Err() == nil {
			changes, end, _, err := s.Changes(after)
			if err == nil {
				after = end
			}
			if (len(changes) > 0 || err != nil) && !yield(changes, err) {
				return
			}
			select {
			case <-w.Changed():
			case <-ctx.Done():
			}
		}
	}
}

// validRun reports whether a text is <day>/<id>.
func validRun(run string) bool {
	day, id, ok := strings.Cut(run, "/")
	_, err := time.Parse(dayForm, day)
	return ok && err == nil && validID(id)
}

// validID reports whether a text may be the id of a run, which names a folder.
func validID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return id != "" && len(id) <= 128 && strings.Trim(id, letters) == "" && strings.Trim(id, ".") != ""
}

// Run opens a run by its folder below that of the store, as a [Change] has it.
func (s *Store) Run(run string) (*Run, error) {
	dir, err := s.runDir(run)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return openFolder(dir)
}

// runDir is the folder of a run. A link on the way to it is refused: it leads out of the store.
func (s *Store) runDir(run string) (dir string, err error) {
	if !validRun(run) {
		return "", fmt.Errorf("%q is not the folder of a run", run)
	}
	dir = filepath.Join(s.dir, filepath.FromSlash(run))
	for _, path := range []string{filepath.Dir(dir), dir} {
		info, err := os.Lstat(path)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a link or a file, and not a folder")}
		}
		if err != nil {
			return "", err
		}
	}
	return dir, nil
}

// openFolder opens the run in a folder.
func openFolder(dir string) (*Run, error) {
	locked, err := isLocked(dir)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return openRun(folder(dir), dir, locked)
}

// A folder has the files of a run. Links in it are refused: they may lead anywhere.
type folder string

// Open implements [fs.FS].
func (f folder) Open(name string) (fs.File, error) {
	file, err := plainfile.OpenReal(filepath.Join(string(f), name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// makeFolder makes the folder of a new run, and has it on the disk. Another program may remove the folder of the day at that moment,
// because it has removed the last run in it.
func (s *Store) makeFolder(dir string) (err error) {
	day := filepath.Dir(dir)
	for range 10 {
		if err = os.MkdirAll(day, 0o700); err == nil {
			err = os.Mkdir(dir, 0o700)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(plainfile.SyncDir(day), plainfile.SyncDir(s.dir))
}

// isLocked reports whether a program has a run open.
func isLocked(dir string) (bool, error) {
	f, err := plainfile.OpenReal(filepath.Join(dir, lockFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	free, err := filelock.Free(f)
	return !free, err
}

// folders yields the folders of the runs, those of the latest days first, and in no order within a day.
func (s *Store) folders() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		days, err := os.ReadDir(s.dir)
		if err != nil {
			yield("", err)
			return
		}
		for _, day := range slices.Backward(days) {
			if _, err := time.Parse(dayForm, day.Name()); err != nil || !day.IsDir() {
				continue
			}
			runs, err := os.ReadDir(filepath.Join(s.dir, day.Name()))
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield("", err) {
				return
			}
			for _, run := range runs {
				if validID(run.Name()) && run.IsDir() && !yield(day.Name()+"/"+run.Name(), nil) {
					return
				}
			}
		}
	}
}

// Folders lists all runs as [Store.Run] takes them. A run that the journal does not have, because its program was killed when it
// began, is reported in it, if the store can be written to.
func (s *Store) Folders() ([]string, error) {
	changes, _, _, err := s.Changes(0)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, c := range changes {
		known[c.Run] = c.What != ChangeRemove
	}
	var found []string
	for run, err := range s.folders() {
		if err != nil {
			return nil, err
		}
		if _, err := os.Lstat(filepath.Join(s.dir, filepath.FromSlash(run), infoFile)); err != nil {
			continue
		}
		if !known[run] {
			_ = s.report(ChangeBegin, run) // a store that cannot be written to is listed all the same
		}
		found = append(found, run)
	}
	return found, nil
}

// A missing run is an [fs.ErrNotExist], whose text would not help.
type missing string

func (m missing) Error() string      { return string(m) }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// Find opens the run of an id or of the beginning of one, which must be that of one run only.
func (s *Store) Find(id string) (*Run, error) {
	if !validID(id) {
		return nil, advice.Wrap(fmt.Errorf("record: %q is not the id of a run", id), "drover runs lists them")
	}
	var found []string
	for run, err := range s.folders() {
		if err != nil {
			return nil, err
		}
		_, name, _ := strings.Cut(run, "/")
		if name == id {
			return s.Run(run)
		}
		if strings.HasPrefix(name, id) {
			found = append(found, run)
		}
	}
	switch len(found) {
	case 1:
		return s.Run(found[0])
	case 0:
		return nil, advice.Wrap(missing("record: there is no run "+id), "drover runs lists them")
	}
	return nil, advice.Wrap(fmt.Errorf("record: %d runs begin with %s", len(found), id), "give more of the id")
}

// ErrRunning is wrapped where a run is to be removed whose program is at work.
var ErrRunning = errors.New("the run is in progress")

// Remove removes a run. One that is in progress is not removed.
func (s *Store) Remove(run string) error {
	dir, err := s.runDir(run)
	if errors.Is(err, fs.ErrNotExist) {
		return s.report(ChangeRemove, run)
	}
	locked := false
	if err == nil {
		locked, err = isLocked(dir)
	}
	if err == nil && !locked {
		locked, err = isBeingMade(dir)
	}
	if err != nil {
		return fmt.Errorf("record: removing a run: %w", err)
	}
	if locked {
		return fmt.Errorf("record: %s: %w", run, ErrRunning)
	}
	// Without it there is no run, whatever happens to the rest.
	if err := os.Remove(filepath.Join(dir, infoFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record: removing a run: %w", err)
	}
	if err := errors.Join(s.report(ChangeRemove, run), os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("record: removing a run: %w", err)
	}
	_ = os.Remove(filepath.Dir(dir)) // of a day without other runs
	return nil
}

// isBeingMade reports whether a folder may be one that a program makes at this moment, or removes: it has no run.json, and has
// changed lately.
func isBeingMade(dir string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(dir, infoFile)); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && time.Since(info.ModTime()) < time.Minute, err
}

// Folder is the run's folder below that of the store, as [Store.Run] takes it, or empty for a run that is elsewhere.
func (s *Store) Folder(r *Run) string {
	rel, err := filepath.Rel(s.dir, r.Path)
	if rel = filepath.ToSlash(rel); err != nil || !validRun(rel) {
		return ""
	}
	return rel
}

// Retention bounds what a store keeps. Zero fields are the defaults, negative ones no limit.
type Retention struct {
	// MaxRuns is how many runs are kept. The default is 2,000.
	MaxRuns int
	// MaxAge is how long. The default is 90 days.
	MaxAge time.Duration
	// MaxBytes is how large they may be together. The default is 4 GiB.
	MaxBytes int64
}

// The defaults of a Retention.
const (
	defaultRuns  = 2000
	defaultAge   = 90 * 24 * time.Hour
	defaultBytes = 4 << 30
)

// Prune removes the oldest runs until the others are within the limits. It leaves runs in progress. It returns those that were removed.
func (s *Store) Prune(keep Retention, now time.Time) (removed []string, err error) {
	keep = Retention{cmp.Or(keep.MaxRuns, defaultRuns), cmp.Or(keep.MaxAge, defaultAge), cmp.Or(keep.MaxBytes, defaultBytes)}
	type kept struct {
		run   string
		began time.Time
		size  int64
	}
	var all []kept
	for run, err := range s.folders() {
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(s.dir, filepath.FromSlash(run))
		info, err := os.Lstat(dir)
		if err != nil {
			continue // another program removes it
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		k := kept{run: run, began: info.ModTime()} // while another program makes it
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				k.size += info.Size()
				if f.Name() == infoFile {
					k.began = info.ModTime() // it is written once
				}
			}
		}
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(b.began.Compare(a.began), strings.Compare(a.run, b.run)) })
	var size int64
	for i, k := range all {
		size += k.size
		old := keep.MaxAge > 0 && now.Sub(k.began) > keep.MaxAge
		if !old && (keep.MaxRuns < 0 || i < keep.MaxRuns) && (keep.MaxBytes < 0 || size <= keep.MaxBytes) {
			continue
		}
		switch err := s.Remove(k.run); {
		case errors.Is(err, ErrRunning):
		case err != nil:
			return removed, err
		default:
			removed = append(removed, k.run)
		}
	}
	return removed, nil
}

// Last opens the run that began last. Its error wraps [fs.ErrNotExist] if the store is empty.
func (s *Store) Last() (*Run, error) {
	var last *Run
	day := ""
	for folder, err := range s.folders() {
		if err != nil {
			return nil, err
		}
		of, _, _ := strings.Cut(folder, "/")
		if last != nil && of != day { // runs of earlier days began earlier
			break
		}
		r, err := s.Run(folder)
		if err != nil {
			continue // it is being made or removed, or is damaged: Find says so
		}
		if last == nil || r.Began.After(last.Began) {
			last, day = r, of
		}
	}
	if last == nil {
		return nil, advice.Wrap(missing("record: there is no run"), "drover run keeps each run")
	}
	return last, nil
}
