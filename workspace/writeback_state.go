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

	"github.com/drover-agents/drover/internal/applytree"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/filetree"
	"github.com/drover-agents/drover/internal/statefolder"
)

// A writeBackState is the folder of the journals. It has one folder for each write-back that is under way
// or was cut short, and those of what was put aside. Who has it open has the lock.
type writeBackState struct {
	dir  string
	lock *os.File // nil if there is no folder yet, and a dry run makes none
}

const (
	runPrefix     = "run-"   // a folder of a write-back that is not at its end
	asidePrefix   = "aside-" // a folder of what was put aside
	recordName    = "record.json"
	committedName = "committed"
)

// A writeBackRecord says which folders a write-back goes to. The journal for each is in the folder of its
// number.
type writeBackRecord struct {
	Targets [][]byte `json:"targets"` // bytes, because names need not be UTF-8
}

func openWriteBackState(ctx context.Context, dir string, dryRun bool) (*writeBackState, error) {
	if dir == "" {
		state, err := statefolder.Path()
		if err != nil {
			return nil, fmt.Errorf("workspace: the folder for the journal of a write-back: %w\n  next: set State", err)
		}
		dir = filepath.Join(state, "writeback")
	}
	s := &writeBackState{dir: dir}
	if _, err := os.Lstat(dir); dryRun && errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		s.dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		s.lock, err = os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil {
		err = filelock.Lock(ctx, s.lock, 20*time.Millisecond)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("workspace: the folder for the journal of a write-back: %w\n  next: set State to a folder that can be written to", err)
	}
	return s, nil
}

func (s *writeBackState) close() {
	if s.lock != nil {
		_ = filelock.Unlock(s.lock)
		_ = s.lock.Close()
	}
}

// outsideOf makes sure that nothing that is written can reach the journals.
func (s *writeBackState) outsideOf(dirs []string) error {
	absolute, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if holds(dir, absolute) || holds(absolute, dir) {
			return &SecurityError{Path: dir, Reason: fmt.Sprintf("has the folder %q in it, where write-backs keep their journals", absolute), Next: "set State to a folder elsewhere"}
		}
	}
	return nil
}

func holds(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// RecoverWriteBack brings every write-back to an end that a crash has cut short, and returns the folders
// that they went to. State is [WriteBackOptions].State. A write-back does that by itself for the folders
// it goes to.
func RecoverWriteBack(ctx context.Context, state string) ([]string, error) {
	s, err := openWriteBackState(ctx, state, true)
	if err != nil || s.lock == nil {
		return nil, err
	}
	defer s.close()
	return s.recover(nil, false)
}

// recover ends the write-backs that went to one of the folders, or all of them if there are none. A dry
// run only finds them.
func (s *writeBackState) recover(dirs []string, dryRun bool) ([]string, error) {
	runs, err := filepath.Glob(filepath.Join(globEscape(s.dir), runPrefix+"*"))
	if err != nil {
		return nil, err
	}
	var recovered []string
	for _, run := range runs {
		r, err := openWriteBackRun(run)
		if err != nil {
			return recovered, err
		}
		if dirs != nil && !slices.ContainsFunc(r.dirs, func(dir string) bool { return slices.Contains(dirs, dir) }) {
			continue
		}
		if !dryRun {
			if err := r.end(); err != nil {
				return recovered, fmt.Errorf("workspace: ending the write-back that was cut short, in %s: %w\n  next: nothing is lost; what is not in its place lies there", run, err)
			}
		}
		recovered = append(recovered, r.dirs...)
	}
	return recovered, nil
}

func globEscape(dir string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(dir)
}

// A writeBackRun is one write-back on the disk: all of it counts, or nothing, and what decides is whether
// the file "committed" is there.
type writeBackRun struct {
	folder string
	dirs   []string
	roots  []*filetree.Root // nil entries are opened by path
}

func (s *writeBackState) begin(ts []*target) (*writeBackRun, error) {
	folder, err := os.MkdirTemp(s.dir, "new-")
	if err != nil {
		return nil, err
	}
	r := &writeBackRun{folder: folder}
	var record writeBackRecord
	for _, t := range ts {
		record.Targets = append(record.Targets, []byte(t.dir))
		r.dirs, r.roots = append(r.dirs, t.dir), append(r.roots, t.root)
	}
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, recordName), text, 0o600); err != nil {
		return nil, err
	}
	r.folder = filepath.Join(s.dir, runPrefix+strings.TrimPrefix(filepath.Base(folder), "new-"))
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
	for _, dir := range record.Targets {
		r.dirs, r.roots = append(r.dirs, string(dir)), append(r.roots, nil)
	}
	return r, nil
}

func (r *writeBackRun) work(i int) string { return filepath.Join(r.folder, strconv.Itoa(i)) }

// apply carries out the steps for one folder after the other. None counts before commit.
func (r *writeBackRun) apply(ctx context.Context, steps [][]applytree.Step) (int, applytree.Result, error) {
	for i := range steps {
		result, err := applytree.Apply(ctx, r.roots[i], steps[i], applytree.Options{AllOrNothing: true, Hold: true, Work: r.work(i)})
		if err != nil {
			return i, result, errors.Join(err, r.end())
		}
	}
	return 0, applytree.Result{}, os.WriteFile(filepath.Join(r.folder, committedName), nil, 0o600)
}

// end finishes what was committed and undoes what was not, and removes the folder but for what was put
// aside and is not ours to remove.
func (r *writeBackRun) end() error {
	_, err := os.Lstat(filepath.Join(r.folder, committedName))
	committed := err == nil
	for i := range r.dirs {
		if err := r.endOne(i, committed); err != nil {
			return err
		}
	}
	return r.remove(committed)
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
