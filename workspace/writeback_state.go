// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/workspace/internal/applytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A writeBackState is the folder of the journals. It has one folder for each write-back that is under way or was
// interrupted, and those of files that were put aside. It is locked while it is open.
type writeBackState struct {
	dir  string
	lock *os.File // nil if there is no folder yet, and a dry run makes none
}

const (
	newPrefix     = "new-"   // a folder of a write-back that has not begun
	runPrefix     = "run-"   // a folder of one that is not at its end
	donePrefix    = "done-"  // a folder that is being removed
	asidePrefix   = "aside-" // a folder of what was put aside
	recordName    = "record.json"
	committedName = "committed"
)

// A writeBackRecord lists the folders that a write-back writes to. The journal for each is in the folder of its number.
type writeBackRecord struct {
	Targets []recordedTarget `json:"targets"`
}

// A recordedTarget has bytes, because names need not be UTF-8.
type recordedTarget struct {
	Dir []byte `json:"dir"`
	// Keep are the paths of which the host's side is to be kept when it was put aside.
	Keep [][]byte `json:"keep,omitempty"`
}

// openWriteBackState opens the folder, and makes sure that nothing that is written to the targets can reach
// it. A dry run makes no folder.
func openWriteBackState(ctx context.Context, dir string, targets []string, dryRun bool) (*writeBackState, error) {
	dir, err := writeBackFolder(dir)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("workspace: the folder for the journal of a write-back: %w", err), "set State")
	}
	for _, target := range targets {
		if filetree.Holds(target, dir) || filetree.Holds(dir, target) {
			return nil, &SecurityError{Path: target, Reason: fmt.Sprintf("has the folder %q in it, where write-backs keep their journals", dir), Next: "set State to a folder elsewhere"}
		}
	}
	s := &writeBackState{dir: dir}
	if _, err := os.Lstat(dir); dryRun && errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err = s.openLock(dryRun); err == nil && s.lock != nil {
		err = filelock.Lock(ctx, s.lock, 20*time.Millisecond)
	}
	if errors.Is(err, ErrSecurity) {
		return nil, err
	}
	if err != nil {
		s.close()
		return nil, advice.Wrap(fmt.Errorf("workspace: the folder for the journal of a write-back: %w", err),
			"set State to a folder that can be written to")
	}
	return s, nil
}

// openLock opens the file with the lock. In a folder without one there never was a write-back, and a dry run leaves
// it so. Journals are obeyed, so no other user may be able to write any.
func (s *writeBackState) openLock(dryRun bool) (err error) {
	how := os.O_RDONLY
	if !dryRun {
		how = os.O_RDWR | os.O_CREATE
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
	}
	if err := onlyOurs(s.dir); err != nil {
		return err
	}
	s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), how, 0o600)
	if dryRun && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *writeBackState) close() {
	if s.lock != nil {
		_ = filelock.Unlock(s.lock)
		_ = s.lock.Close()
	}
}

// writeBackFolder is the absolute path of the folder without links.
func writeBackFolder(dir string) (string, error) {
	if dir == "" {
		state, err := leftover.StateFolder()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(state, "writeback")
	}
	resolved, missing, err := resolveMissing(dir)
	return filepath.Join(resolved, filepath.FromSlash(missing)), err
}

// RecoverWriteBack brings every write-back to an end that a crash has cut short, and returns the folders that they went to.
// State is [WriteBackOptions].State. A write-back does that by itself for the folders it goes to.
func RecoverWriteBack(ctx context.Context, state string) ([]string, error) {
	s, err := openWriteBackState(ctx, state, nil, true)
	if err != nil || s.lock == nil {
		return nil, err
	}
	defer s.close()
	return s.recover(nil, false)
}

// recover ends the write-backs that went to one of the folders, or above or below it. Without folders it ends
// all of them. A dry run only finds them.
func (s *writeBackState) recover(dirs []string, dryRun bool) ([]string, error) {
	if s.lock == nil {
		return nil, nil
	}
	folders, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var recovered []string
	for _, f := range folders {
		folder := filepath.Join(s.dir, f.Name())
		switch {
		case strings.HasPrefix(f.Name(), runPrefix):
			ended, err := recoverRun(folder, dirs, dryRun)
			if err != nil {
				return recovered, advice.Wrap(fmt.Errorf("workspace: ending the write-back that was cut short, in %s: %w", folder, err),
					"nothing is lost; files that are not at their path are there")
			}
			recovered = append(recovered, ended...)
		case !dryRun && (strings.HasPrefix(f.Name(), newPrefix) || strings.HasPrefix(f.Name(), donePrefix)):
			if err := removeTree(s.dir, f.Name()); err != nil {
				return recovered, err
			}
		}
	}
	return recovered, nil
}

func recoverRun(folder string, dirs []string, dryRun bool) ([]string, error) {
	r, err := openWriteBackRun(folder)
	if err != nil {
		return nil, err
	}
	concerned := func(dir string) bool {
		return slices.ContainsFunc(dirs, func(d string) bool { return filetree.Holds(d, dir) || filetree.Holds(dir, d) })
	}
	if dirs != nil && !slices.ContainsFunc(r.dirs, concerned) {
		return nil, nil
	}
	if dryRun {
		return r.dirs, nil
	}
	return r.dirs, r.end()
}

// A writeBackRun is one write-back on the disk. It counts as a whole if the file "committed" is there, and else not at all.
type writeBackRun struct {
	folder string
	dirs   []string
	keep   [][]string       // for each folder
	roots  []*filetree.Root // nil entries are opened by path
}

func (s *writeBackState) begin(ts []*target, keep [][]string) (*writeBackRun, error) {
	folder, err := os.MkdirTemp(s.dir, newPrefix)
	if err != nil {
		return nil, err
	}
	r := &writeBackRun{folder: folder, keep: keep}
	var record writeBackRecord
	for i, t := range ts {
		recorded := recordedTarget{Dir: []byte(t.dir)}
		for _, rel := range keep[i] {
			recorded.Keep = append(recorded.Keep, []byte(rel))
		}
		record.Targets = append(record.Targets, recorded)
		r.dirs, r.roots = append(r.dirs, t.dir), append(r.roots, t.writer)
	}
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, recordName), text, 0o600); err != nil {
		return nil, err
	}
	r.folder = filepath.Join(s.dir, runPrefix+strings.TrimPrefix(filepath.Base(folder), newPrefix))
	return r, os.Rename(folder, r.folder)
}

func openWriteBackRun(folder string) (*writeBackRun, error) {
	text, err := os.ReadFile(filepath.Join(folder, recordName))
	if err != nil {
		return nil, err
	}
	var record writeBackRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, fmt.Errorf("workspace: the record of a write-back, %s: %w", filepath.Join(folder, recordName), err)
	}
	r := &writeBackRun{folder: folder}
	for _, t := range record.Targets {
		var keep []string
		for _, rel := range t.Keep {
			keep = append(keep, string(rel))
		}
		r.dirs, r.keep, r.roots = append(r.dirs, string(t.Dir)), append(r.keep, keep), append(r.roots, nil)
	}
	return r, nil
}

func (r *writeBackRun) work(i int) string { return filepath.Join(r.folder, strconv.Itoa(i)) }

// testPoint, if a test sets it, receives the progress of a write-back, and may exit.
var testPoint = func(string) {}

// apply carries out the steps for one folder after the other. None counts before the file "committed" is there.
func (r *writeBackRun) apply(ctx context.Context, steps [][]applytree.Step) (int, applytree.Result, error) {
	for i := range steps {
		testPoint(fmt.Sprint("before ", i))
		result, err := applytree.Apply(ctx, r.roots[i], steps[i], applytree.Options{AllOrNothing: true, Hold: true, Work: r.work(i)})
		if err != nil {
			return i, result, errors.Join(err, r.end())
		}
	}
	testPoint("applied")
	if err := os.WriteFile(filepath.Join(r.folder, committedName), nil, 0o600); err != nil {
		return 0, applytree.Result{}, errors.Join(err, r.end())
	}
	testPoint("committed")
	return 0, applytree.Result{}, nil
}

// end finishes a committed write-back and undoes another. Then it removes the folder, but not files that were put
// aside and must be kept: then it is renamed.
func (r *writeBackRun) end() error {
	_, err := os.Lstat(filepath.Join(r.folder, committedName))
	committed := err == nil
	for i := range r.dirs {
		if err := r.endOne(i, committed); err != nil {
			return err
		}
		testPoint(fmt.Sprint("ended ", i))
		if committed {
			if err := r.dropReplaced(i); err != nil {
				return err
			}
		}
	}
	left, err := r.hasFiles()
	if err != nil {
		return err
	}
	if left {
		return r.rename(asidePrefix)
	}
	if err := r.rename(donePrefix); err != nil {
		return err
	}
	testPoint("done")
	return removeTree(filepath.Split(r.folder))
}

func (r *writeBackRun) rename(prefix string) error {
	dir, name := filepath.Split(r.folder)
	to := filepath.Join(dir, prefix+strings.TrimPrefix(name, runPrefix))
	if err := os.Rename(r.folder, to); err != nil {
		return err
	}
	r.folder = to
	return nil
}

// hasFiles reports whether anything but folders was put aside.
func (r *writeBackRun) hasFiles() (bool, error) {
	for i := range r.dirs {
		found := false
		err := filepath.WalkDir(filepath.Join(r.work(i), "aside"), func(_ string, e fs.DirEntry, err error) error {
			found = found || err == nil && !e.IsDir()
			return err
		})
		if found || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
	}
	return false, nil
}

func (r *writeBackRun) endOne(i int, committed bool) error {
	if _, err := os.Lstat(r.work(i)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	root := r.roots[i]
	if root == nil {
		var err error
		if root, err = filetree.Open(r.dirs[i]); err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
	}
	finish := applytree.Recover
	if committed {
		finish = applytree.Commit
	}
	_, _, err := finish(root, r.work(i))
	return err
}

func (r *writeBackRun) asidePath(i int, rel string) string {
	return filepath.Join(r.work(i), "aside", "1", filepath.FromSlash(rel))
}

// dropReplaced removes the files that were put aside and equal the mounted ones.
func (r *writeBackRun) dropReplaced(i int) error {
	aside, err := filetree.Open(filepath.Join(r.work(i), "aside", "1"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = aside.Close() }()
	entries, err := aside.Walk(context.Background(), nil)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(entries) {
		if slices.Contains(r.keep[i], e.Path) || strings.HasPrefix(e.Path, ".drover-conflict-") {
			continue
		}
		if err := aside.Remove(e.Path); err != nil && e.Kind != filetree.Dir { // folders may have what is kept
			return err
		}
	}
	return nil
}
