// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile and maxNesting bound what a file can make the parser do.
const (
	maxFile    = 1 << 20
	maxNesting = 100
)

// Load reads an agent from a file. Its paths are relative to the folder of the file.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("agentfile: %w\n  next: give the path of a file that describes an agent", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("agentfile: %w\n  next: give the path of a file that describes an agent", err)
	}
	return Parse(data, path)
}

// Parse reads an agent: YAML, of which JSON is a part. name is the path of its file, which need not exist;
// nothing but data is read. The error joins values of type [*Problem], one for each thing that is wrong.
func Parse(data []byte, name string) (*File, error) {
	body, problem := document(data)
	if problem != nil {
		problem.File = name
		return nil, problem
	}
	t, wrong := grow(name, body)
	found := &problems{file: name, tree: t, all: wrong}
	f := &File{path: name, tree: t}
	if f.decode(found); len(found.all) > 0 {
		return nil, found.join()
	}
	f.fill()
	f.check(found)
	if err := found.join(); err != nil {
		return nil, err
	}
	return f, nil
}

// decode checks the tree against the schema and reads it.
func (f *File) decode(found *problems) {
	validate(f.tree, found)
	if len(found.all) > 0 {
		return
	}
	measure(f.tree, found)
	if len(found.all) > 0 {
		return
	}
	if err := json.Unmarshal(f.tree.json, f); err != nil {
		found.fail("", err)
	}
}

// fill sets what a file may leave out.
func (f *File) fill() {
	base := strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path))
	f.Namespace = cmp.Or(f.Namespace, "agent")
	f.Key = cmp.Or(f.Key, strings.ToLower(base))
}

// document parses the one document of a file.
func document(data []byte) (body ast.Node, problem *Problem) {
	// A file that the parser itself cannot bear is a bad file, not a crash of the program.
	defer func() {
		if p := recover(); p != nil {
			body, problem = nil, &Problem{Line: 1, Column: 1, Reason: fmt.Sprintf("the file cannot be parsed: %v", p)}
		}
	}()
	if problem := checkSize(data); problem != nil {
		return nil, problem
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, positioned(err)
	}
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
			continue
		case body != nil:
			return nil, &Problem{Line: doc.Body.GetToken().Position.Line, Column: 1, Reason: "a file has one agent, and a second document begins here", Next: "put it into a file of its own"}
		}
		body = doc.Body
	}
	if body == nil {
		return nil, errEmpty()
	}
	return body, nil
}

func errEmpty() *Problem {
	return &Problem{Line: 1, Column: 1, Reason: "the file is empty", Next: "begin it with version: 1"}
}

func checkSize(data []byte) *Problem {
	switch {
	case len(data) > maxFile:
		return &Problem{Line: 1, Column: 1, Reason: fmt.Sprintf("the file is larger than %d bytes", maxFile), Next: "put long texts into files that are mounted"}
	case len(bytes.TrimSpace(data)) == 0:
		return errEmpty()
	}
	if line := tooDeep(data); line > 0 {
		return &Problem{Line: line, Column: 1, Reason: fmt.Sprintf("more than %d brackets or list markers are open at once", maxNesting), Next: "nest less"}
	}
	return nil
}

// tooDeep is the line in which too many brackets are open, or too many list markers stand, or zero. It
// counts those in texts too: the limit is far above what an agent needs.
func tooDeep(data []byte) int {
	depth, number := 0, 0
	for line := range bytes.Lines(data) {
		number++
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			if depth > maxNesting {
				return number
			}
		}
		if bytes.Count(line, []byte("- "))+bytes.Count(line, []byte("? ")) > maxNesting {
			return number
		}
	}
	return 0
}

// positioned is an error of the parser. Its text is not asked for: it shows the lines around the place, and
// takes minutes to do so if they are long.
func positioned(err error) *Problem {
	p := &Problem{Line: 1, Column: 1, Err: err, Next: "mend the YAML here"}
	var known yaml.Error
	if !errors.As(err, &known) {
		p.Reason = err.Error()
		return p
	}
	p.Reason = known.GetMessage()
	if tok := known.GetToken(); tok != nil && tok.Position != nil {
		p.Line, p.Column = max(tok.Position.Line, 1), max(tok.Position.Column, 1)
	}
	return p
}
