// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/filelock"
)

// markerSuffix ends the name of the file beside a folder that identifies its owner. It is beside it,
// where programs that work in the folder do not reach it.
const markerSuffix = ".lock"

// errMarkerLost is when a sweeper took a new marker for one whose program is gone.
var errMarkerLost = errors.New("the marker of a new folder was removed by another process")

type marker struct{ file *os.File }

func (k Kind) newMarker(folder string) (*marker, error) {
	file, err := os.OpenFile(folder+markerSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	m := &marker{file}
	switch err := m.hold(k.Text); {
	case errors.Is(err, errMarkerLost):
		m.release() // the sweeper removes it
		return nil, err
	case err != nil:
		m.remove()
		return nil, err
	}
	return m, nil
}

// hold locks the file and sees to it that it is still the one that others find.
func (m *marker) hold(text string) error {
	if _, err := m.file.WriteString(text); err != nil {
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

func (m *marker) remove() {
	m.release()
	_ = os.Remove(m.file.Name()) // a sweeper may have been faster
}

// disown makes the marker one that no sweep knows, for the moment between its release and its removal.
func (m *marker) disown() error {
	_, err := m.file.WriteAt([]byte("kept: "), 0)
	return err
}

// abandonedMarker is nil unless the program is gone. It is locked, so that no other sweeper works on the same folder.
func (k Kind) abandonedMarker(root *os.Root, name string) *marker {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || !OwnFile(info) {
		return nil
	}
	file, err := root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if opened, err := file.Stat(); err == nil && os.SameFile(info, opened) && k.marks(file, name) {
		if locked, err := filelock.Try(file); locked && err == nil {
			return &marker{file}
		}
	}
	_ = file.Close()
	return nil
}

// marks reports whether the file is a marker of the kind. A program that is killed, or whose disk is full, may leave
// only the beginning of the text, or none: the name must then be one that Make has made up, not one of a user.
func (k Kind) marks(file *os.File, name string) bool {
	text := make([]byte, len(k.Text)+1)
	n, _ := file.ReadAt(text, 0)
	if string(text[:n]) == k.Text {
		return true
	}
	if !strings.HasPrefix(k.Text, string(text[:n])) {
		return false
	}
	return slices.ContainsFunc(append([]string{k.Prefix}, k.Former...), func(prefix string) bool {
		random, ok := strings.CutPrefix(strings.TrimSuffix(name, markerSuffix), prefix)
		return ok && len(random) == randomLength && strings.Trim(random, randomLetters) == ""
	})
}
