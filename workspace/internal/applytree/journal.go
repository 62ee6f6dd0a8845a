// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A state is the name of the journal's file. The next state is a rename: atomic, and without need of disk space.
type state string

const (
	// none has no journal.
	none state = ""
	// staging names only the hidden folder in the tree. The tree has no other change.
	staging state = "journal.staging"
	// applying has changes under way.
	applying state = "journal"
	// undoing takes them back.
	undoing state = "journal.undoing"
	// applied and undone have the tree in its final state; only our own rubbish is left.
	applied state = "journal.applied"
	undone  state = "journal.undone"
)

// states are in the order in which they are looked for: the furthest first.
var states = []state{undone, applied, undoing, applying, staging}

const (
	journalHead = "drover applytree journal 1 "
	newJournal  = "journal.new"
	notesFile   = "notes"
)

// A journal is all that is needed to finish or to undo a plan. Strings in it are bytes, which JSON could not keep.
type journal struct {
	AllOrNothing bool
	// Root is the root of the tree as it was.
	Root filetree.Entry
	// Hidden is the folder in the tree that holds stage and aside, if the work folder cannot.
	Hidden string
	// Aside is the folder for displaced entries, relative to the work folder: "aside/7".
	Aside   string
	Ops     []*op
	Folders []folder
	// Notes are the surprises that were found before the first change.
	Notes []note
}

// A folder is one whose time we touch: it is set at the end.
type folder struct {
	// Before is nil if the folder is made by the plan; After if it goes.
	Before, After *filetree.Entry
}

func (f folder) path() string {
	if f.Before != nil {
		return f.Before.Path
	}
	return f.After.Path
}

// A note is a conflict as the work folder keeps it.
type note struct {
	Conflict
	// Failed means that the path is not as wanted.
	Failed bool
}

// write puts the journal into the work folder, whole or not at all.
func (j *journal) write(work string, as state) error {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(j); err != nil {
		return fmt.Errorf("applytree: journal: %w", err)
	}
	text := fmt.Appendf(nil, "%s%x\n", journalHead, sha256.Sum256(body.Bytes()))
	temporary := filepath.Join(work, newJournal)
	if err := os.WriteFile(temporary, append(text, body.Bytes()...), 0o600); err != nil {
		return fmt.Errorf("applytree: journal: %w", err)
	}
	return os.Rename(temporary, filepath.Join(work, string(as)))
}

// readJournal returns the journal of the work folder, and its state: none without a journal.
func readJournal(work string) (*journal, state, error) {
	for _, s := range states {
		text, err := os.ReadFile(filepath.Join(work, string(s)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, s, err
		}
		j, err := parseJournal(text)
		if err != nil {
			return nil, s, advice.Wrap(fmt.Errorf("applytree: %s: %w", filepath.Join(work, string(s)), err),
				"look at the files in %s, then remove that file", filepath.Join(work, "aside"))
		}
		return j, s, nil
	}
	return nil, none, nil
}

func parseJournal(text []byte) (*journal, error) {
	head, body, _ := bytes.Cut(text, []byte("\n"))
	if !bytes.HasPrefix(head, []byte(journalHead)) {
		return nil, errors.New("not a journal of this version")
	}
	if string(head) != fmt.Sprintf("%s%x", journalHead, sha256.Sum256(body)) {
		return nil, errors.New("the journal is damaged")
	}
	j := &journal{}
	return j, gob.NewDecoder(bytes.NewReader(body)).Decode(j)
}

// addNote keeps a note where recovery finds it.
func addNote(work string, n note) error {
	f, err := os.OpenFile(filepath.Join(work, notesFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	failed := 0
	if n.Failed {
		failed = 1
	}
	// Quoted text keeps every byte, and a line that a crash cut short cannot be read.
	_, err = fmt.Fprintf(f, "%d %q %q %q\n", failed, n.Path, n.Reason, n.Aside)
	return errors.Join(err, f.Close())
}

func readNotes(work string) []note {
	text, err := os.ReadFile(filepath.Join(work, notesFile))
	if err != nil {
		return nil
	}
	var notes []note
	for line := range bytes.Lines(text) {
		var n note
		var failed int
		if _, err := fmt.Sscanf(string(line), "%d %q %q %q\n", &failed, &n.Path, &n.Reason, &n.Aside); err == nil {
			n.Failed = failed == 1
			notes = append(notes, n)
		}
	}
	return notes
}
