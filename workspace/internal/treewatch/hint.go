// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// A Hint is what may have happened to a path. Several bits may be set.
type Hint uint8

// The kinds of hints.
const (
	// Written: the content may differ, even if no time of the file does.
	Written Hint = 1 << iota
	// Touched: created, moved here, or given other attributes. A folder is touched also when a name in
	// it comes or goes, because its times change.
	Touched
	// Gone: removed or moved away, with everything below it. Something else may be there by now.
	Gone
	// Opened: a process opened the file, and may write it later without a further hint until it is closed. See [Unwritten].
	Opened
)

// String names the bits, as in "written+touched".
func (h Hint) String() string {
	var set []string
	for i, name := range []string{"written", "touched", "gone", "opened"} {
		if h&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return strings.Join(set, "+")
}

// Hints are what may have happened since they were taken last. The keys are paths relative to the watched
// folder, with slashes; "." is that folder itself.
type Hints struct {
	// Overflow means that something was missed: look at everything. All watches are gone then, but that
	// of the folder itself, so each folder has to be added again. Files is what is known all the same.
	Overflow bool
	Files    map[string]Hint
	// Dirs are folders that are new, or were moved here: add them, then read everything in them. They are among
	// Files too. A folder that does not exist any more can be forgotten.
	Dirs map[string]bool
}

func (h *Hints) add(path string, hint Hint) {
	if h.Files == nil {
		h.Files = make(map[string]Hint)
	}
	h.Files[path] |= hint
}

func (h *Hints) addDir(path string) {
	if h.Dirs == nil {
		h.Dirs = make(map[string]bool)
	}
	h.Dirs[path] = true
}

// Options configures [New]. Nil and the zero value are ready to use.
type Options struct {
	// MaxWatches bounds the folders and files that are watched, because all programs of a user share
	// what the system allows. Zero means no bound but that of the system.
	MaxWatches int
}

// A Reading is a file that the caller has opened for reading, and its path in the tree.
type Reading struct {
	Path string
	File *os.File
}

// Reasons why a tree cannot be watched, for errors.Is.
var (
	// ErrUnsupported: the operating system or the file system does not report every change.
	ErrUnsupported = errors.New("treewatch: cannot be watched here")
	// ErrMounted: something is mounted inside the tree.
	ErrMounted = errors.New("treewatch: something is mounted inside the tree")
	// ErrClosed: the watcher was closed, or failed before.
	ErrClosed = errors.New("treewatch: closed")
)

// A LimitError means that there is no room for a further watch.
type LimitError struct {
	// Setting is what sets the limit: a kernel setting, or MaxWatches.
	Setting string
	// Watches is how many this watcher had.
	Watches int
	// Err is the error of the system, if it was called.
	Err error
}

func (e *LimitError) Error() string {
	text := fmt.Sprintf("treewatch: no more watches after %d: the limit is %s", e.Watches, e.Setting)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Advice implements [advice.Adviser].
func (e *LimitError) Advice() string {
	if !strings.HasPrefix(e.Setting, "fs.") {
		return ""
	}
	return fmt.Sprintf("raise it (sysctl -w %s=...; it counts for all programs of the user), or close other watchers; without one every file is looked at each time", e.Setting)
}

func (e *LimitError) Unwrap() error { return e.Err }
