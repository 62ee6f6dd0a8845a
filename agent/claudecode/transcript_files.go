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
	"syscall"

	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/uuid"
)

// maxTranscriptFile is how much of one file is read.
const maxTranscriptFile = 1 << 30

// transcriptFiles are the files in which a CLI keeps conversations. What is in them is as true as the agent
// lets it be, who may be able to write there: nothing is followed out of the folder, and nothing but plain
// files is opened.
type transcriptFiles struct {
	projects string
	before   map[string]int64 // what was there when the CLI began, and how long
}

// newTranscriptFiles notes what is in a configuration folder already. That belongs to earlier runs.
func newTranscriptFiles(config string) *transcriptFiles {
	f := &transcriptFiles{projects: filepath.Join(config, "projects"), before: map[string]int64{}}
	if root, err := f.open(); err == nil {
		defer root.Close()
		_ = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && strings.HasSuffix(name, ".jsonl") {
				if info, err := e.Info(); err == nil {
					f.before[name] = info.Size()
				}
			}
			return nil
		})
	}
	return f
}

var errNoFiles = errors.New("the CLI has no configuration folder")

func (f *transcriptFiles) open() (*os.Root, error) {
	if f == nil || !filepath.IsAbs(f.projects) {
		return nil, errNoFiles
	}
	return os.OpenRoot(f.projects)
}

// read calls each with every line that the sessions have got since the CLI began, file by file, the main
// conversation first. A file that cannot be read has none, and neither has a line that a crash tore.
func (f *transcriptFiles) read(sessions map[string]bool, each func(name string, line []byte)) {
	root, err := f.open()
	if err != nil {
		return
	}
	defer root.Close()
	projects, _ := fs.ReadDir(root.FS(), ".")
	for _, project := range projects {
		for _, session := range slices.Sorted(maps.Keys(sessions)) {
			if project.IsDir() && uuid.Valid(session) {
				f.readSession(root, path.Join(project.Name(), session), each)
			}
		}
	}
}

func (f *transcriptFiles) readSession(root *os.Root, session string, each func(name string, line []byte)) {
	names := []string{}
	_ = fs.WalkDir(root.FS(), session+"/subagents", func(name string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".jsonl") {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	for _, name := range slices.Insert(names, 0, session+".jsonl") {
		f.readFile(root, name, func(line []byte) { each(name, line) })
	}
}

func (f *transcriptFiles) readFile(root *os.Root, name string, each func(line []byte)) {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // should it have become a pipe
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if old := f.before[name]; old <= info.Size() {
		_, _ = file.Seek(old, io.SeekStart)
	}
	reader := lines.NewReader(io.LimitReader(file, maxTranscriptFile), maxHeard)
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
