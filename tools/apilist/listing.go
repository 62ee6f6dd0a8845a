// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// listing returns the exported declarations of the package in dir, one per line and sorted, without
// bodies and comments. A field or interface method has a line of its own, after its type's name.
// Files for all platforms count: the API is the union.
func listing(dir string) (string, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	l := lister{fset: token.NewFileSet()}
	for _, entry := range names {
		if entry.IsDir() || !isSource(entry.Name()) {
			continue
		}
		file, err := parser.ParseFile(l.fset, filepath.Join(dir, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		if file.Name.Name == "main" {
			return "", nil
		}
		for _, decl := range file.Decls {
			l.declaration(decl)
		}
	}
	slices.Sort(l.lines)
	l.lines = slices.Compact(l.lines)
	if len(l.lines) == 0 {
		return "", nil
	}
	return strings.Join(l.lines, "\n") + "\n", nil
}

type lister struct {
	fset  *token.FileSet
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

var spaces = regexp.MustCompile(`\s+`)

// source prints a node on one line. The empty file set hides where the node's own line breaks were.
func (l *lister) source(node any) string {
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), node); err != nil {
		return "?"
	}
	return strings.TrimSpace(spaces.ReplaceAllString(b.String(), " "))
}

func (l *lister) declaration(decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		l.function(d)
	case *ast.GenDecl:
		for i, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				l.typeSpec(s)
			case *ast.ValueSpec:
				l.values(d.Tok, s, lastType(d, i))
			}
		}
	}
}

func (l *lister) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d.Recv.List[0].Type)) {
		return
	}
	l.add("%s", l.source(&ast.FuncDecl{Recv: unnamed(d.Recv), Name: d.Name, Type: d.Type}))
}

// unnamed drops the receiver's name, which is not part of the API.
func unnamed(recv *ast.FieldList) *ast.FieldList {
	if recv == nil {
		return nil
	}
	return &ast.FieldList{List: []*ast.Field{{Type: recv.List[0].Type}}}
}

func receiver(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func (l *lister) typeSpec(s *ast.TypeSpec) {
	if !s.Name.IsExported() {
		return
	}
	head := s.Name.Name
	if s.TypeParams != nil {
		head += "[" + l.fields(s.TypeParams) + "]"
	}
	if s.Assign.IsValid() {
		head += " ="
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.add("type %s struct", head)
		l.members(s.Name.Name, t.Fields, "field")
	case *ast.InterfaceType:
		l.add("type %s interface", head)
		l.members(s.Name.Name, t.Methods, "method")
	default:
		l.add("type %s %s", head, l.source(s.Type))
	}
}

func (l *lister) fields(list *ast.FieldList) string {
	var parts []string
	for _, f := range list.List {
		var names []string
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
		parts = append(parts, strings.Join(names, ", ")+" "+l.source(f.Type))
	}
	return strings.Join(parts, ", ")
}

// members lists the exported parts of a struct or interface. An unexported method is listed as a
// seal, because it decides who can implement the interface.
func (l *lister) members(name string, list *ast.FieldList, kind string) {
	for _, f := range list.List {
		if len(f.Names) == 0 {
			l.add("type %s, embeds %s", name, l.source(f.Type))
		}
		for _, n := range f.Names {
			switch {
			case n.IsExported() && kind == "method":
				l.add("type %s, method %s%s", name, n.Name, strings.TrimPrefix(l.source(f.Type), "func"))
			case n.IsExported():
				l.add("type %s, field %s %s%s", name, n.Name, l.source(f.Type), tag(f))
			case kind == "method":
				l.add("type %s, sealed", name)
			}
		}
	}
}

func tag(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	return " " + f.Tag.Value
}

// values lists constants with their values, which are API, and variables without.
func (l *lister) values(tok token.Token, s *ast.ValueSpec, typ ast.Expr) {
	for i, n := range s.Names {
		if !n.IsExported() {
			continue
		}
		line := tok.String() + " " + n.Name
		if typ != nil {
			line += " " + l.source(typ)
		}
		if tok == token.CONST && i < len(s.Values) {
			line += " = " + l.source(s.Values[i])
		}
		l.add("%s", line)
	}
}

// lastType gives a constant in an iota list the type it inherits from the lines above it.
func lastType(d *ast.GenDecl, i int) ast.Expr {
	for ; i >= 0; i-- {
		s := d.Specs[i].(*ast.ValueSpec)
		if s.Type != nil || len(s.Values) > 0 || d.Tok != token.CONST {
			return s.Type
		}
	}
	return nil
}
