// SPDX-License-Identifier: Apache-2.0

package house

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSeedMap checks that whatever docs/seed-map.md names exists.
func TestSeedMap(t *testing.T) {
	names := collect(packages(t))
	for _, target := range makeTargets(read(t, "Makefile")) {
		names.things["make "+target] = true
	}
	for _, problem := range checkSeedMap(read(t, "docs/seed-map.md"), names) {
		t.Errorf("docs/seed-map.md: %s", problem)
	}
}

// TestSeedNames checks that the Go names of docs/seed-names.md exist, and that each name has one.
func TestSeedNames(t *testing.T) {
	names := collect(packages(t))
	rows := table(read(t, "docs/seed-names.md"))
	for _, cells := range rows {
		if len(cells) != 3 || cells[0] == "" {
			t.Errorf("docs/seed-names.md: %q is no row of name, Go and words", cells)
			continue
		}
		for _, name := range list(cells[1]) {
			if !names.things[name] {
				t.Errorf("docs/seed-names.md: %s: there is no %q", cells[0], name)
			}
		}
	}
	if len(rows) < 50 {
		t.Errorf("only %d rows found: the rule sees nothing", len(rows))
	}
}

var seedID = regexp.MustCompile(`^S00[0-4]-\d{3}$`)

// Rows are found by their ids, so the ids are real ones and in order.
func TestSeedMapIDs(t *testing.T) {
	last := ""
	for _, cells := range table(read(t, "docs/seed-map.md")) {
		if id := cells[0]; !seedID.MatchString(id) || id <= last {
			t.Errorf("docs/seed-map.md: %q is no id, or out of order after %q", id, last)
		}
		last = cells[0]
	}
	if last == "" {
		t.Error("docs/seed-map.md has no rows")
	}
}

// checkSeedMap reads rows "| id | words | identifier | test |". Both of the last two may name
// several, with commas. An identifier is pkg.Name or pkg.Type.Member, a make target ("make demo"), or
// a file of the repository; a test is pkg.TestName, with a sub-test behind a slash if need be.
func checkSeedMap(text string, names names) []string {
	var problems []string
	seen := map[string]bool{}
	for _, cells := range table(text) {
		if len(cells) != 4 {
			problems = append(problems, fmt.Sprintf("%q has %d cells, want 4", strings.Join(cells, " | "), len(cells)))
			continue
		}
		id := cells[0]
		if id == "" || seen[id] {
			problems = append(problems, fmt.Sprintf("id %q is empty or there twice", id))
		}
		seen[id] = true
		for _, name := range list(cells[2]) {
			if !names.things[name] && !isFile(name) {
				problems = append(problems, fmt.Sprintf("%s: identifier %q does not exist", id, name))
			}
		}
		for _, name := range list(cells[3]) {
			test, _, _ := strings.Cut(name, "/")
			if !names.tests[test] {
				problems = append(problems, fmt.Sprintf("%s: test %q does not exist", id, name))
			}
		}
	}
	return problems
}

// list splits a cell; an empty cell is a list of one empty name, which nothing is called.
func list(cell string) []string {
	var names []string
	for name := range strings.SplitSeq(cell, ",") {
		names = append(names, strings.Trim(strings.TrimSpace(name), "`"))
	}
	return names
}

func isFile(name string) bool {
	if name == "" || !filepath.IsLocal(name) || !strings.ContainsAny(name, "/.") {
		return false
	}
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.Mode().IsRegular()
}

var target = regexp.MustCompile(`(?m)^([a-z][a-z-]*):([^=]|$)`)

func makeTargets(makefile string) []string {
	var names []string
	for _, match := range target.FindAllStringSubmatch(makefile, -1) {
		names = append(names, match[1])
	}
	return names
}

// names are the identifiers and tests there are, by the name of the package's directory.
type names struct{ things, tests map[string]bool }

func collect(dirs map[string][]parsed) names {
	n := names{map[string]bool{}, map[string]bool{}}
	for dir, files := range dirs {
		pkg := path.Base(dir)
		for _, f := range files {
			for _, decl := range f.file.Decls {
				if f.isTest() {
					n.addTest(pkg, decl)
				} else {
					n.addThing(pkg, decl)
				}
			}
		}
	}
	return n
}

var testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)

func (n names) addTest(pkg string, decl ast.Decl) {
	if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
		n.tests[pkg+"."+f.Name.Name] = true
	}
}

func (n names) addThing(pkg string, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		name := pkg + "."
		if d.Recv != nil {
			name += receiverName(d.Recv.List[0].Type) + "."
		}
		n.things[name+d.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			n.addSpec(pkg, spec)
		}
	}
}

func (n names) addSpec(pkg string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			n.things[pkg+"."+name.Name] = true
		}
	case *ast.TypeSpec:
		name := pkg + "." + s.Name.Name
		n.things[name] = true
		switch t := s.Type.(type) {
		case *ast.StructType:
			n.addMembers(name, t.Fields)
		case *ast.InterfaceType:
			n.addMembers(name, t.Methods)
		}
	}
}

func (n names) addMembers(of string, list *ast.FieldList) {
	for _, field := range list.List {
		for _, name := range field.Names {
			n.things[of+"."+name.Name] = true
		}
	}
}

func receiverName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestCheckSeedMap(t *testing.T) {
	n := collect(packages(t))
	n.things["make demo"] = true
	row := func(id, thing, test string) string {
		return "| id | words | identifier | test |\n|---|---|---|---|\n| " + id + " | w | " + thing + " | " + test + " |\n"
	}
	cases := []struct {
		name, text string
		problems   int
	}{
		{"good", row("a", "`claude.HostSpawner.Spawn`, claude.FindOptions.Path, make demo, docs/dependencies.md", "`claude.TestFindOrder/x`, house.TestCheckSeedMap"), 0},
		{"interface method", row("a", "claude.Process.Kill", "claude.TestFindOrder"), 0},
		{"no such identifier", row("a", "claude.Nothing", "claude.TestFindOrder"), 1},
		{"no such test", row("a", "claude.Find", "claude.TestNothing"), 1},
		{"empty cells", row("", "", ""), 3},
		{"outside", row("a", "../../etc/passwd", "claude.TestFindOrder"), 1},
		{"twice", row("a", "claude.Find", "claude.TestFindOrder") + "| a | w | claude.Find | claude.TestFindOrder |\n", 1},
		{"cells missing", "|a|b|\n|---|---|\n| x | y |\n", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := checkSeedMap(c.text, n); len(got) != c.problems {
				t.Errorf("problems: got %q, want %d", got, c.problems)
			}
		})
	}
}

func TestMakeTargets(t *testing.T) {
	got := makeTargets("A := b\n.PHONY: x\ndemo: setup\n\tcmd\nfmt:\n\tcmd\n$(X):\n")
	if want := "demo fmt"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
