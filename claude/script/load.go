// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/safetext"
)

// The limits of a file, beside those of plainfile.ParseYAML.
const (
	maxFile     = 4 << 20
	maxProblems = 100 // that are reported
)

// A FileError is one fault of a YAML script.
type FileError struct {
	// File is the name of the file, empty if it was read from a reader.
	File string
	// Line and Column count from 1; they are 0 if the position is not known.
	Line, Column int
	Reason       string
}

func (e *FileError) Error() string {
	name := e.File
	if name == "" {
		name = "script"
	}
	if e.Line > 0 {
		name = fmt.Sprintf("%s:%d:%d", name, e.Line, e.Column)
	}
	return safetext.Line(name + ": " + e.Reason) // the file may have chosen both
}

// Load reads a YAML script from a regular file. The error joins values of type [*FileError], one for each fault.
func Load(path string) (Script, error) {
	f, err := plainfile.Open(path)
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
	// A panic of the decoder is an error of the script, not a crash of the program.
	defer func() {
		if p := recover(); p != nil {
			s, errs = Script{}, []*FileError{{Reason: fmt.Sprintf("the file cannot be parsed: %v", p)}}
		}
	}()
	if err := checkSize(data); err != nil {
		return Script{}, []*FileError{err}
	}
	tree, err := plainfile.ParseYAML(string(data))
	if err != nil {
		return Script{}, []*FileError{positioned(err)}
	}
	body, wrong := onlyBody(tree)
	if wrong != nil {
		return Script{}, []*FileError{wrong}
	}
	var f file
	if err := yaml.NodeToValue(body, &f, yaml.Strict()); err != nil {
		return Script{}, []*FileError{positioned(plainfile.PositionedYAMLError(err))}
	}
	s, ps := f.script()
	for i, p := range ps {
		if i == maxProblems { // to find where one is takes time
			errs = append(errs, &FileError{Reason: fmt.Sprintf("there are %d more problems", len(ps)-i)})
			break
		}
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
		return errEmpty()
	}
	return nil
}

func errEmpty() *FileError { return &FileError{Reason: "the file is empty; begin it with version: 1"} }

// onlyBody is the one document of a script. It refuses YAML that a script does not need or that grows without bound.
func onlyBody(tree *ast.File) (ast.Node, *FileError) {
	var body ast.Node
	for _, doc := range tree.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			return nil, at(doc.Body, "a script is one document; remove the second one")
		}
		body = doc.Body
		v := &aliasFinder{}
		ast.Walk(v, body)
		if v.found != nil {
			return nil, at(v.found, "anchors and aliases are not supported; write the value out")
		}
	}
	if body == nil {
		return nil, errEmpty()
	}
	return body, nil
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
	if known, ok := errors.AsType[*plainfile.YAMLError](err); ok {
		return &FileError{Line: known.Line, Column: known.Column, Reason: known.Reason}
	}
	return &FileError{Reason: err.Error()}
}

// locate finds the position of a path such as "turns[2].fault.kind", or of the nearest part of it that is in the file.
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
