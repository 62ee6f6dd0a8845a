// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A side is what one of the three has at a path: what was mounted, the workspace, or the host. Nil is nothing.
type side struct {
	filetree.Entry
	hash string
	file *File // of the workspace
}

func sideOf(f *File) *side {
	if f == nil {
		return nil
	}
	e := filetree.Entry{Path: f.Path, Kind: filetree.KindOf(f.Mode), Perm: f.Mode & (fs.ModePerm | setID | fs.ModeSticky), Size: f.Size, ModTime: f.ModTime.UnixNano(), Target: f.Target}
	return &side{e, f.Hash, f}
}

const setID = fs.ModeSetuid | fs.ModeSetgid

// same reports whether two sides are the same but for permissions and times.
func (s *side) same(other *side) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.Kind == other.Kind && s.hash == other.hash && s.Target == other.Target
}

// differs reports a change that is more than one of times.
func differs(before, after *side) bool {
	if !before.same(after) {
		return true
	}
	return before != nil && before.Kind != filetree.Link && before.Perm != after.Perm
}

// errBehind means that a path of the host cannot be reached, because an entry above it is not a folder.
var errBehind = errors.New("is behind a link or a file on the host")

// look returns what the host has at a path, with the hash of its content.
func (t *target) look(rel string) (*side, error) {
	if t.root == nil {
		return nil, nil
	}
	e, err := t.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, filetree.ErrLink), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return nil, errBehind
	case err != nil:
		return nil, fmt.Errorf("workspace: looking at %q: %w", t.host(rel), err)
	case e.Kind != filetree.File:
		return &side{Entry: e}, nil
	}
	return t.lookAtFile(rel)
}

// lookAtFile reads a file again until it did not change meanwhile.
func (t *target) lookAtFile(rel string) (*side, error) {
	var hash string
	var seen filetree.Stamp
	var since time.Time
	for range 50 {
		looked := time.Now()
		f, e, err := t.root.OpenFile(rel)
		if err != nil {
			return nil, advice.Wrap(fmt.Errorf("workspace: reading %q, to see whether it is what was mounted: %w", t.host(rel), err),
				"look at its permissions")
		}
		hash, err = hashOf(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("workspace: reading %q: %w", t.host(rel), err)
		}
		// OpenFile looks without extended attributes, which have to be kept.
		later, err := t.root.Lstat(rel)
		if err == nil && later.Stamp == e.Stamp && later.Size == e.Size {
			if seen != e.Stamp {
				seen, since = e.Stamp, looked
			}
			// Where clocks differ, its time may be in the future for long: then it is enough that it stays.
			if !filetree.Racy(e, looked) || looked.Sub(since) > 50*time.Millisecond {
				return &side{Entry: later, hash: hash}, nil
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, advice.Wrap(fmt.Errorf("workspace: %q is being written to all the time", t.host(rel)), "end the program that does it")
}

func hashOf(r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
