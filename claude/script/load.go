// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile and maxNesting bound what a file can make the parser do.
const (
	maxFile    = 4 << 20
	maxNesting = 200
)

// A FileError is one thing that is wrong in a YAML script.
type FileError struct {
	// File is the name of the file, empty if it was read from a reader.
	File string
	// Line and Column count from 1; they are 0 where the place is not known.
	Line, Column int
	Reason       string
}

func (e *FileError) Error() string {
	name := e.File
	if name == "" {
		name = "script"
	}
	if e.Line == 0 {
		return name + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d:%d: %s", name, e.Line, e.Column, e.Reason)
}

// Load reads a YAML script from a file. The error joins values of type [*FileError], one for each
// thing that is wrong.
func Load(path string) (Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return Script{}, fmt.Errorf("script: %w", err)
	}
	defer f.Close()
	return read(f, path)
}

// Read reads a YAML script. The error is as in [Load].
func Read(r io.Reader) (Script, error) { return read(r, "") }

func read(r io.Reader, name string) (Script, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return Script{}, fmt.Errorf("script: reading %s: %w", name, err)
	}
	s, errs := parse(data)
	for _, e := range errs {
		e.File = name
	}
	return s, joinFileErrors(errs)
}

func parse(data []byte) (s Script, errs []*FileError) {
	// A script that the parser itself cannot bear is a bad script, not a crash of the program.
	defer func() {
		if p := recover(); p != nil {
			s, errs = Script{}, []*FileError{{Reason: fmt.Sprintf("the file cannot be parsed: %v", p)}}
		}
	}()
	if err := checkSize(data); err != nil {
		return Script{}, []*FileError{err}
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Script{}, []*FileError{positioned(err)}
	}
	if err := checkTree(tree); err != nil {
		return Script{}, []*FileError{err}
	}
	var f file
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&f); err != nil {
		return Script{}, []*FileError{positioned(err)}
	}
	s, ps := f.script()
	for _, p := range ps {
		line, column := locate(tree, p.Path)
		errs = append(errs, &FileError{Line: line, Column: column, Reason: p.Path + ": " + p.Err.Error()})
	}
	if errs != nil {
		return Script{}, errs
	}
	return s, nil
}

func checkSize(data []byte) *FileError {
	if len(data) > maxFile {
		return &FileError{Reason: fmt.Sprintf("the file is larger than %d bytes", maxFile)}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &FileError{Reason: "the file is empty; begin it with version: 1"}
	}
	if nesting(data) > maxNesting {
		return &FileError{Reason: fmt.Sprintf("more than %d brackets or list markers are open at once", maxNesting)}
	}
	return nil
}

// nesting is how many brackets are open at once, or list markers stand in one line, at most. It
// counts those in texts too: the limit is far above what a script needs.
func nesting(data []byte) int {
	deepest, depth := 0, 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		deepest = max(deepest, depth)
	}
	for line := range bytes.Lines(data) {
		markers := bytes.Count(line, []byte("- ")) + bytes.Count(line, []byte("? "))
		deepest = max(deepest, markers)
	}
	return deepest
}

// checkTree refuses what a script does not need and what can grow without bound when expanded.
func checkTree(tree *ast.File) *FileError {
	bodies := 0
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if bodies++; bodies > 1 {
			return at(doc.Body, "a script is one document; remove the second one")
		}
		v := &aliasFinder{}
		ast.Walk(v, doc.Body)
		if v.found != nil {
			return at(v.found, "anchors and aliases are not supported; write the value out")
		}
	}
	return nil
}

type aliasFinder struct{ found ast.Node }

// Visit implements ast.Visitor.
func (v *aliasFinder) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		if v.found == nil {
			v.found = n
		}
		return nil
	}
	return v
}

func at(n ast.Node, reason string) *FileError {
	e := &FileError{Reason: reason}
	if token := n.GetToken(); token != nil && token.Position != nil {
		e.Line, e.Column = token.Position.Line, token.Position.Column
	}
	return e
}

func positioned(err error) *FileError {
	e := &FileError{Reason: err.Error()}
	var ye yaml.Error
	if !errors.As(err, &ye) {
		return e
	}
	e.Reason = ye.GetMessage()
	if token := ye.GetToken(); token != nil && token.Position != nil {
		e.Line, e.Column = token.Position.Line, token.Position.Column
	}
	return e
}

// locate finds the place of a path such as "turns[2].fault.kind", or of the nearest part of it
// that is in the file.
func locate(tree *ast.File, path string) (line, column int) {
	for path != "" {
		if p, err := yaml.PathString("$." + path); err == nil {
			if n, err := p.FilterFile(tree); err == nil && n != nil {
				e := at(firstKey(n), "")
				return e.Line, e.Column
			}
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1, 1
}

// firstKey is where a reader sees a mapping begin; its own token is the first colon.
func firstKey(n ast.Node) ast.Node {
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 {
			return m.Values[0].Key
		}
	case *ast.MappingValueNode:
		return m.Key
	}
	return n
}

func joinFileErrors(errs []*FileError) error {
	joined := make([]error, 0, len(errs))
	for _, e := range errs {
		joined = append(joined, e)
	}
	return errors.Join(joined...)
}
