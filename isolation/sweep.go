// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/internal/filelock"
)

const (
	// markerSuffix ends the name of the file beside a home that says that the home is ours. The lock
	// on it says that the program which made it lives. It is beside the home, where the agent does
	// not reach it.
	markerSuffix = ".lock"
	markerText   = "The folder of this name without .lock is the private home of a run of Drover.\nBoth are removed when the run ends, or by a later run when the program was killed.\n"
)

// errMarkerLost is when a sweeper took a new marker for one whose program is gone.
var errMarkerLost = errors.New("the marker of a new home was removed by somebody else")

// marker is the locked file beside a home.
type marker struct{ file *os.File }

func newMarker(home string) (*marker, error) {
	file, err := os.OpenFile(home+markerSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	m := &marker{file}
	if err := m.hold(); err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

// hold locks the file and sees to it that it is still the one that others find.
func (m *marker) hold() error {
	if _, err := m.file.WriteString(markerText); err != nil {
		return err
	}
	locked, err := filelock.Try(m.file)
	if err != nil {
		return err
	}
	mine, err := m.file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Lstat(m.file.Name()); err != nil || !locked || !os.SameFile(mine, there) {
		return errMarkerLost
	}
	return nil
}

// release lets go of the marker, which others may then take for one whose program is gone.
func (m *marker) release() {
	_ = filelock.Unlock(m.file) // closing releases it too
	_ = m.file.Close()
}

// remove releases the marker and removes it.
func (m *marker) remove() {
	m.release()
	_ = os.Remove(m.file.Name()) // a sweeper may have been faster
}

// SweepHomes removes the homes in the folder parent (empty means [os.TempDir]) whose programs were
// killed before they could, and returns their paths. It leaves alone what is not surely such a home:
// links, folders without a marker of Drover, what belongs to other users, and homes of living programs.
func SweepHomes(parent string) (removed []string, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return nil, fmt.Errorf("isolation: looking for homes of ended programs: %w\n  next: let this user list the folder, or set Isolation.TempDir to another", err)
	}
	defer func() { _ = root.Close() }()
	marked, err := markedHomes(root)
	var problems []error
	if err != nil {
		problems = append(problems, fmt.Errorf("isolation: looking for homes of ended programs: %w\n  next: let this user list the folder, or set Isolation.TempDir to another", err))
	}
	for _, name := range marked {
		gone, err := sweepHome(root, name)
		if err != nil {
			problems = append(problems, fmt.Errorf("isolation: the home %s of an ended program: %w\n  next: remove it by hand", filepath.Join(parent, name), err))
		}
		if gone {
			removed = append(removed, filepath.Join(parent, name))
		}
	}
	return removed, errors.Join(problems...)
}

// markedHomes are the names of the homes that have a marker. The folder may be full of other things, so
// it is read by names alone.
func markedHomes(root *os.Root) (homes []string, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	for err == nil {
		var names []string
		names, err = dir.Readdirnames(1024)
		for _, name := range names {
			if home, marked := strings.CutSuffix(name, markerSuffix); marked && strings.HasPrefix(home, HomePrefix) {
				homes = append(homes, home)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return homes, err
}

// sweepHome removes a home whose program is gone, and its marker. It reports whether there was a home.
func sweepHome(root *os.Root, name string) (bool, error) {
	abandoned := abandonedMarker(root, name+markerSuffix)
	if abandoned == nil {
		return false, nil
	}
	home, err := root.Lstat(name)
	ours := err == nil && home.IsDir() && ownFile(home)
	if ours {
		if err := removeTree(root, name); err != nil {
			abandoned.release()
			return false, err
		}
	}
	_ = root.Remove(name + markerSuffix) // while it is locked, so that nobody takes the name
	abandoned.release()
	return ours, nil
}

// abandonedMarker is the marker if its program is gone, and nil otherwise. It is locked, so that no
// other sweeper works on the same home.
func abandonedMarker(root *os.Root, name string) *marker {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !ownFile(info) {
		return nil
	}
	file, err := root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if opened, err := file.Stat(); err == nil && os.SameFile(info, opened) && isMarker(file) {
		if locked, err := filelock.Try(file); locked && err == nil {
			return &marker{file}
		}
	}
	_ = file.Close()
	return nil
}

// isMarker also accepts an empty file, which a program leaves that is killed at the worst moment.
func isMarker(file *os.File) bool {
	text := make([]byte, len(markerText)+1)
	n, _ := file.ReadAt(text, 0)
	return n == 0 || string(text[:n]) == markerText
}
