// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainfile"
)

// The limits of a file, beside those of its schema and of plainfile.ParseYAML.
const (
	maxFile = 1 << 20
	// maxDollars bounds the placeholders in the texts of all sections.
	maxDollars = 10_000
)

// Load reads an agent from a regular file. Its paths are relative to the folder of the file.
func Load(path string) (*File, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("agentfile: %w", err), "give the path of a file that describes an agent")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("agentfile: %w", err), "give the path of a file that describes an agent")
	}
	return Parse(data, path)
}

// Parse reads an agent: YAML, of which JSON is a part. name is the path of its file, which need not exist;
// nothing but data is read. The error joins values of type [*Problem], one for each problem.
func Parse(data []byte, name string) (*File, error) {
	body, problem := document(data)
	if problem != nil {
		problem.File = name
		return nil, problem
	}
	t, found := grow(name, body)
	f := &File{path: name, tree: t}
	if agentFormat.decode(t, found, f); len(found.all) > 0 {
		return nil, found.join()
	}
	f.fill()
	f.check(found)
	if err := found.join(); err != nil {
		return nil, err
	}
	return f, nil
}

// fill sets what a file may leave out.
func (f *File) fill() {
	base := strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path))
	f.Namespace = cmp.Or(f.Namespace, "agent")
	f.Key = cmp.Or(f.Key, strings.ToLower(base))
}

// document parses the one document of a file.
func document(data []byte) (ast.Node, *Problem) {
	switch {
	case len(data) > maxFile:
		return nil, &Problem{Line: 1, Column: 1, Reason: fmt.Sprintf("the file is larger than %d bytes", maxFile), Next: "put long texts into files that are mounted"}
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errEmpty()
	}
	tree, err := plainfile.ParseYAML(string(data), parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, unparsed(err)
	}
	var body ast.Node
	for _, doc := range tree.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
			continue
		case body != nil:
			return nil, &Problem{Line: doc.Body.GetToken().Position.Line, Column: 1, Reason: "a file has one document, and a second one begins here", Next: "put it into a file of its own"}
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

// unparsed is the problem of a file that is not YAML, or too large.
func unparsed(err error) *Problem {
	p := &Problem{Line: 1, Column: 1, Reason: err.Error(), Next: "fix the YAML here", Err: err}
	if known, ok := errors.AsType[*plainfile.YAMLError](err); ok {
		p.Line, p.Column, p.Reason = known.Line, known.Column, known.Reason
		if known.Excess {
			p.Next = "write a smaller file"
		}
	}
	return p
}
