// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"iter"
	"path/filepath"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// Workspace is the directory that the agent works in.
type Workspace struct {
	Root string `json:"root"`
}

// FileModified records that a tool has written a file.
type FileModified struct {
	Path string `json:"path"`
	// Tool is the tool that wrote it.
	Tool string `json:"tool"`
}

// ModifiedFiles are the files that tools have written, each once, in the order of their first change.
// It never changes; adding a file makes a new one that shares all of the old.
type ModifiedFiles struct {
	list persist.Vector[FileModified]
	at   persist.Map[string, int] // positions in list, by path
}

// All yields the last change of each file.
func (m ModifiedFiles) All() iter.Seq[FileModified] { return m.list.All() }

// Len is the number of files.
func (m ModifiedFiles) Len() int { return m.list.Len() }

// Get returns the last change of a file, and whether there was one.
func (m ModifiedFiles) Get(path string) (FileModified, bool) {
	i, ok := m.at.Get(path)
	if !ok {
		return FileModified{}, false
	}
	return m.list.At(i), true
}

func (m ModifiedFiles) with(e FileModified) ModifiedFiles {
	if i, ok := m.at.Get(e.Path); ok {
		m.list = m.list.Set(i, e)
		return m
	}
	m.at = m.at.Set(e.Path, m.list.Len())
	m.list = m.list.Append(e)
	return m
}

type modifiedFilesWire struct {
	Files []FileModified `json:"files"`
}

// MarshalJSON gives the files as a list.
func (m ModifiedFiles) MarshalJSON() ([]byte, error) {
	files := make([]FileModified, 0, m.Len())
	for f := range m.All() {
		files = append(files, f)
	}
	return plainjson.Marshal(modifiedFilesWire{files})
}

// UnmarshalJSON reads what MarshalJSON gives.
func (m *ModifiedFiles) UnmarshalJSON(data []byte) error {
	var w modifiedFilesWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*m = ModifiedFiles{}
	for _, f := range w.Files {
		*m = m.with(f)
	}
	return nil
}

// filesOf returns the files that the input of a call names, as clean absolute paths. If several fields can name the
// one file of a call, the first counts. Relative paths belong to dir.
func filesOf(fields *tool.Fields, input json.RawMessage, dir string) []string {
	var files []string
	paths, _ := fields.PathsIn(input)
	for _, name := range paths {
		if !filepath.IsAbs(name) {
			if !filepath.IsAbs(dir) {
				continue
			}
			name = filepath.Join(dir, name)
		}
		if files = append(files, filepath.Clean(name)); fields.Scan == nil {
			break
		}
	}
	return files
}

// EventKind implements [event.Payload].
func (Workspace) EventKind() event.Kind { return "workspace:set" }

// EventKind implements [event.Payload].
func (FileModified) EventKind() event.Kind { return "file:modified" }

// EventKind implements [event.Payload].
func (ModifiedFiles) EventKind() event.Kind { return "file:modified_all" }
