// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainfile"
)

// How much of one file is read, and the longest line of it.
const (
	maxTranscriptFile = 1 << 30
	maxTranscriptLine = 256 << 20
)

// transcriptFiles are the files in which a CLI keeps conversations. The agent may be able to write there, so
// their content is not trusted: no link leads out of the folder, and only plain files are opened. Folders that
// exist when the CLI begins are opened then, before links can replace them.
type transcriptFiles struct {
	dir              string
	config, projects *os.Root         // nil while they are not there
	before           map[string]int64 // what was there when the CLI began, and how long
}

// newTranscriptFiles notes what is in a configuration folder already. That belongs to earlier runs.
func newTranscriptFiles(config string) *transcriptFiles {
	f := &transcriptFiles{dir: config, before: map[string]int64{}}
	if !filepath.IsAbs(config) {
		return f
	}
	f.config, _ = os.OpenRoot(config) // it may not be there yet
	f.projects, _ = os.OpenRoot(filepath.Join(config, "projects"))
	if f.projects == nil {
		return f
	}
	_ = fs.WalkDir(f.projects.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(name, ".jsonl") {
			if info, err := e.Info(); err == nil {
				f.before[name] = info.Size()
			}
		}
		return nil
	})
	return f
}

// open opens the folders that were not there when the CLI began.
func (f *transcriptFiles) open() {
	if f.config == nil && filepath.IsAbs(f.dir) {
		f.config, _ = os.OpenRoot(f.dir) // there is nothing to read then
	}
	if f.projects == nil && f.config != nil {
		f.projects, _ = f.config.OpenRoot("projects")
	}
}

func (f *transcriptFiles) close() {
	if f == nil {
		return
	}
	for _, root := range []*os.Root{f.config, f.projects} {
		if root != nil {
			_ = root.Close() // nothing was written
		}
	}
}

// read calls each with every line that the sessions have got since the CLI began, file by file, the main
// conversation first. A file that cannot be read has none, and neither has a line that a crash tore.
func (f *transcriptFiles) read(sessions map[string]bool, each func(name string, line []byte)) {
	if f == nil {
		return
	}
	if f.open(); f.projects == nil {
		return
	}
	projects, _ := fs.ReadDir(f.projects.FS(), ".")
	for _, project := range projects {
		for _, session := range slices.Sorted(maps.Keys(sessions)) {
			if project.IsDir() && ident.ValidUUID(session) {
				f.readSession(path.Join(project.Name(), session), each)
			}
		}
	}
}

func (f *transcriptFiles) readSession(session string, each func(name string, line []byte)) {
	names := []string{}
	_ = fs.WalkDir(f.projects.FS(), session+"/subagents", func(name string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".jsonl") {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	for _, name := range slices.Insert(names, 0, session+".jsonl") {
		f.readFile(name, func(line []byte) { each(name, line) })
	}
}

func (f *transcriptFiles) readFile(name string, each func(line []byte)) {
	if info, err := f.projects.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return
	}
	file, err := plainfile.OpenIn(f.projects, name)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return
	}
	if old := f.before[name]; old <= info.Size() {
		_, _ = file.Seek(old, io.SeekStart)
	}
	reader := lines.NewReader(io.LimitReader(file, maxTranscriptFile), maxTranscriptLine)
	for {
		line, err := reader.Next()
		if tooLong := new(lines.TooLongError); errors.As(err, &tooLong) {
			continue
		}
		if err != nil {
			return
		}
		if json.Valid(line) {
			each(line)
		}
	}
}
