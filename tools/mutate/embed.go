// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
)

// chosen is the variable that names the mutation of a run, in the environment of a test binary and in the packages of which it has
// mutated functions. chooser is the file that declares it there.
const (
	environment = "DROVER_MUTATION"
	chosen      = "droverMutation"
	chooser     = "drover_mutation.go"
)

// A span is a part of a text.
type span struct{ from, to int }

// A function is one of a file that has a body.
type function struct {
	body    span // between the braces
	results bool
	labels  bool
}

// A source is a Go file as text and as its declarations.
type source struct {
	text      string
	pkg       string
	decls     []span
	functions map[int]function // by the number of the declaration
}

func readSource(text string) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	s := &source{text: text, pkg: file.Name.Name, functions: map[int]function{}}
	for n, decl := range file.Decls {
		s.decls = append(s.decls, span{offset(decl.Pos()), offset(decl.End())})
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		found := function{body: span{offset(f.Body.Lbrace) + 1, offset(f.Body.Rbrace)}, results: f.Type.Results != nil}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			_, label := n.(*ast.LabeledStmt)
			found.labels = found.labels || label
			return true
		})
		s.functions[n] = found
	}
	return s, nil
}

func (s *source) part(p span) string { return s.text[p.from:p.to] }

// bodies returns the bodies of the functions in which the other file differs, by the number of the declaration. It returns false if
// the files differ elsewhere too, or in a function with labels, which its function cannot have twice.
func (s *source) bodies(other *source) (map[int]string, bool) {
	if len(s.decls) != len(other.decls) {
		return nil, false
	}
	found := map[int]string{}
	for n := range s.decls {
		if s.part(s.decls[n]) == other.part(other.decls[n]) {
			continue
		}
		f, ok := s.functions[n]
		g := other.functions[n]
		if !ok || f.labels || g.labels || s.part(span{s.decls[n].from, f.body.from}) != other.part(span{other.decls[n].from, g.body.from}) {
			return nil, false
		}
		found[n] = other.part(g.body)
	}
	return found, len(found) > 0
}

// embed returns files that have all mutations that are changes within functions: a mutated function begins with the body of each
// mutation, for a run that chooses it. The names are of those mutations; the others need a build of their own.
func embed(root string, all []mutation) (files map[string]string, names map[string]bool, err error) {
	files, names = map[string]string{}, map[string]bool{}
	byFile := map[string][]mutation{}
	for _, m := range all {
		if path.Ext(m.file) == ".go" { // a page has other files
			byFile[m.file] = append(byFile[m.file], m)
		}
	}
	for file, mutations := range byFile {
		text, err := os.ReadFile(path.Join(root, file))
		if err != nil {
			return nil, nil, err
		}
		original, err := readSource(string(text))
		if err != nil {
			return nil, nil, err
		}
		cases := map[int]string{}
		for _, m := range mutations {
			mutatedText, err := m.apply(root)
			if err != nil {
				return nil, nil, err
			}
			mutated, err := readSource(mutatedText)
			if err != nil {
				continue // the compiler says what is wrong
			}
			bodies, ok := original.bodies(mutated)
			if !ok {
				continue
			}
			names[m.name] = true
			for n, body := range bodies {
				if !original.functions[n].results {
					body += "\nreturn\n"
				}
				cases[n] += fmt.Sprintf("\nif %s == %q {%s}\n", chosen, m.name, body)
			}
		}
		if len(cases) > 0 {
			files[file] = original.with(cases)
			files[path.Join(path.Dir(file), chooser)] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n", original.pkg, chosen, environment)
		}
	}
	return files, names, nil
}

// with is the text in which functions begin with other statements.
func (s *source) with(statements map[int]string) string {
	var out bytes.Buffer
	copied := 0
	for n := range s.decls {
		if statements[n] != "" {
			out.WriteString(s.text[copied:s.functions[n].body.from] + statements[n])
			copied = s.functions[n].body.from
		}
	}
	return out.String() + s.text[copied:]
}
