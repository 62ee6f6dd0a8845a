// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"sync"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// A Catalogue is what is known of the tools that an agent has by itself. The agent's adapter hands it over. Code that
// judges, records, undoes or shows a call asks it. No other code knows the names of such tools or the fields of their
// inputs. Nil is the catalogue of an agent without tools. It must not change once it is in use.
type Catalogue struct {
	// Agent is the name of the agent.
	Agent string
	// Natives are its tools, each name once. They include tools of older versions.
	Natives []Native
	// Others is how the inputs of all other tools are read: of ours, and of those of MCP servers. A native tool
	// with neither Paths nor Scan has the Paths of Others.
	Others Fields
	// ReadRule, WriteRule and CommandRule are the names that a rule with an argument, as "Edit(/src/**)", may
	// have to be about every tool that reads or searches files, writes them, or runs commands.
	ReadRule, WriteRule, CommandRule string
	// AnswerTool is the tool with which the agent gives a structured answer, SkillTool the one with which it
	// reads a skill. Empty means that it needs none.
	AnswerTool, SkillTool string

	index  sync.Once
	byName map[string]*Native
}

// A Native is a tool of an agent.
type Native struct {
	Name  string
	Risk  Risk
	Needs Capability
	// More gives what a call needs, and the risk it has, beyond Risk and Needs because of its input. Nil means nothing.
	More func(input json.RawMessage) (Risk, Capability)

	// Files is what the tool does to the files that its input names.
	Files FileUse
	Fields
	// Shell is set if the command is in the language of a POSIX shell, so that rules about commands can judge it.
	Shell bool
	// Caller is set if the tool makes other calls, each of which is judged and undone by itself.
	Caller bool
	// Plumbing is set if the agent can use no tool, or give no answer, without this one, which does nothing
	// else. A list that does not name it does not deny it.
	Plumbing bool

	// Verb is what the tool does, for people: "write". Empty means that there is no short word for it.
	Verb string
	// Effect gives the event that follows from a call that has succeeded, such as a changed plan, or nil.
	Effect func(input, output json.RawMessage) event.Payload
}

// A FileUse is what a tool does to the files that its input names.
type FileUse uint8

// The uses of files. The zero value uses none.
const (
	NoFiles FileUse = iota
	ReadsFile
	WritesFile
	// ListsFiles is to read the names below a directory, and SearchesFiles to read contents there too. Both
	// mean the working directory where the input names none.
	ListsFiles
	SearchesFiles
)

// Fields are the fields of an input that say what a call is about.
type Fields struct {
	// Paths are the fields that hold the path of a file or directory.
	Paths []string
	// Glob holds a pattern of paths, which belongs to the directory that Paths name.
	Glob string
	// Command holds a command line, Host a host or an URL, and Subagent the kind of a subagent.
	Command, Host, Subagent string
	// New holds the text that a call puts into the file of Paths, Old the text there that it replaces, and All
	// whether it replaces every Old. A tool without Old writes the whole file.
	New, Old, All string
	// Edits holds a list of objects with the fields New, Old and All, which the input itself does not have then.
	Edits string
	// Scan finds the paths in an input that holds them otherwise: a patch names many. It reports false where
	// there may be others. Nil means that inputs have no other paths.
	Scan func(input json.RawMessage) (paths []string, ok bool)
}

// An Edit is what a call does to the text of a file: New replaces Old, every one if All is set. Without Old it
// replaces the whole text.
type Edit struct {
	Old, New string
	All      bool
}

// common is how an input is read without a catalogue.
var common = Fields{Paths: []string{"path"}}

// Native looks a tool up. Names are compared exactly.
func (c *Catalogue) Native(name string) (*Native, bool) {
	if c == nil {
		return nil, false
	}
	c.index.Do(func() {
		c.byName = make(map[string]*Native, len(c.Natives))
		for i := range c.Natives {
			n := &c.Natives[i]
			c.byName[n.Name] = n
			if n.Paths == nil && n.Scan == nil {
				n.Paths = c.Others.Paths
			}
		}
	})
	n, ok := c.byName[name]
	return n, ok
}

// Fields returns how the input of a tool is read, by the tool's bare name.
func (c *Catalogue) Fields(name string) *Fields {
	if n, ok := c.Native(name); ok {
		return &n.Fields
	}
	if c == nil {
		return &common
	}
	return &c.Others
}

// FilesOf returns what a tool does to the one file that its input names. Beside the tools of the agent it
// knows those that programs usually give to agents: read_file, write_file and edit_file.
func (c *Catalogue) FilesOf(name string) FileUse {
	if n, ok := c.Native(name); ok {
		return n.Files
	}
	switch name {
	case "read_file":
		return ReadsFile
	case "write_file", "edit_file":
		return WritesFile
	}
	return NoFiles
}

// Subject is what a call is about, for people: a file, relative to dir where it is below that, a command, an address; else its
// input on one line, which is empty for an input without fields. It may be long, and hold any characters.
func (c *Catalogue) Subject(name string, input json.RawMessage, dir string) string {
	var known struct{ Command, URL, Query, Pattern, Description string }
	_ = json.Unmarshal(input, &known) // an input of another form is shown as it is
	path := ""
	if use := c.FilesOf(name); use == ReadsFile || use == WritesFile {
		if paths, _ := c.Fields(name).PathsIn(input); len(paths) > 0 {
			path = paths[0]
		}
	}
	if rel, err := filepath.Rel(dir, path); err == nil && dir != "" && filepath.IsLocal(rel) {
		path = rel
	}
	return cmp.Or(path, known.Command, known.URL, known.Query, known.Pattern, known.Description, plainjson.OneLine(input))
}

// PathsIn returns the paths that an input names, as they are spelled. It reports false where there may be others.
func (f *Fields) PathsIn(input json.RawMessage) (paths []string, ok bool) {
	ok = true
	if f.Scan != nil {
		paths, ok = f.Scan(input)
	}
	for _, name := range f.Paths {
		if path := Field(input, name); path != "" {
			paths = append(paths, path)
		}
	}
	return paths, ok
}

// EditsIn returns the edits that an input asks for, in their order. It is empty unless all of them can be read.
func (f *Fields) EditsIn(input json.RawMessage) []Edit {
	if f.New == "" {
		return nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(input, &object) != nil {
		return nil
	}
	objects := []map[string]json.RawMessage{object}
	if f.Edits != "" && json.Unmarshal(object[f.Edits], &objects) != nil {
		return nil
	}
	edits := make([]Edit, len(objects))
	for i, object := range objects {
		e := &edits[i]
		if json.Unmarshal(object[f.New], &e.New) != nil || f.Old != "" && json.Unmarshal(object[f.Old], &e.Old) != nil {
			return nil
		}
		_ = json.Unmarshal(object[f.All], &e.All) // most calls leave it out
	}
	return edits
}

// Field returns a field of an input that is a string, or "".
func Field(input json.RawMessage, name string) string {
	var object map[string]json.RawMessage
	var text string
	if name == "" || json.Unmarshal(input, &object) != nil || json.Unmarshal(object[name], &text) != nil {
		return ""
	}
	return text
}
