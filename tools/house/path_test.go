// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A step is a function that a path of the design names.
type step struct{ function, file string }

func (s step) name() string { return s.function[strings.LastIndex(s.function, ".")+1:] }
func (s step) dir() string  { return path.Dir(s.file) }

// The page of the design has five paths of few lines. Each line names functions and their files, in order.
func TestDesign_PathsFollowTheCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Five paths\n")
	section, _, _ = strings.Cut(section, "\n## ")
	paths := strings.Split(section, "\n### ")
	if !found || len(paths) != 6 {
		t.Fatalf("the page has %d paths, want 5", len(paths)-1)
	}
	deps := dependencies(t)
	for _, text := range paths[1:] {
		title, text, _ := strings.Cut(text, "\n")
		t.Run(title, func(t *testing.T) {
			steps := stepsOf(t, text)
			for i, s := range steps {
				checkDefined(t, s)
				if i > 0 {
					checkJoined(t, deps, steps[i-1], s)
				}
			}
		})
	}
}

func stepsOf(t *testing.T, text string) (steps []step) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^\d+\. `).Split(text, -1)[1:]
	if len(lines) < 5 || len(lines) > 10 {
		t.Errorf("the path has %d lines, want 5 to 10", len(lines))
	}
	named := regexp.MustCompile("((?:`[A-Za-z.]+`(?: and )?)+), ([a-z_/]+\\.go)")
	function := regexp.MustCompile("`([A-Za-z.]+)`")
	for i, line := range lines {
		found := named.FindAllStringSubmatch(line, -1)
		if len(found) == 0 {
			t.Errorf("line %d names no file: %q", i+1, line)
		}
		for _, f := range found {
			for _, name := range function.FindAllStringSubmatch(f[1], -1) {
				steps = append(steps, step{name[1], f[2]})
			}
		}
	}
	return steps
}

// checkDefined looks for the function in its file.
func checkDefined(t *testing.T, s step) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", s.file))
	receiver := `(\([^)]*\) )?`
	if owner, _, ok := strings.Cut(s.function, "."); ok {
		receiver = `\(\w+ \*?` + owner + `(\[\w+\])?\) `
	}
	if err != nil || !regexp.MustCompile(`(?m)^func `+receiver+s.name()+`\b`).Match(text) {
		t.Errorf("there is no function %s in %s", s.function, s.file)
	}
}

// checkJoined checks that two steps in a row have a way between them: one of their packages imports the other, itself or
// through others, or the second is used in the package of both.
func checkJoined(t *testing.T, deps map[string]map[string]bool, from, to step) {
	t.Helper()
	switch {
	case from.dir() != to.dir():
		if !deps[from.dir()][to.dir()] && !deps[to.dir()][from.dir()] {
			t.Errorf("neither of %s and %s imports the other", from.file, to.file)
		}
	case !ast.IsExported(to.name()) && !isUsed(t, to): // an exported one is called from elsewhere
		t.Errorf("%s, which follows %s, is used nowhere in its package", to.function, from.function)
	}
}

// isUsed reports whether a name is used in the package of a step, beside its definition.
func isUsed(t *testing.T, s step) (used bool) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join("../..", s.dir(), "*.go"))
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			body := ast.Node(d)
			if f, ok := d.(*ast.FuncDecl); ok {
				if f.Body == nil {
					continue
				}
				body = f.Body
			}
			ast.Inspect(body, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				used = used || ok && id.Name == s.name()
				return !used
			})
		}
	}
	return used
}

// dependencies has the packages of ours that each one imports, itself or through others.
func dependencies(t *testing.T) map[string]map[string]bool {
	t.Helper()
	direct := map[string][]string{}
	for _, arrow := range arrows(t, "linux") {
		direct[arrow[0]] = append(direct[arrow[0]], arrow[1])
	}
	all := map[string]map[string]bool{}
	var reach func(from, at string)
	reach = func(from, at string) {
		for _, to := range direct[at] {
			if to != "" && !all[from][to] {
				all[from][to] = true
				reach(from, to)
			}
		}
	}
	for from := range direct {
		all[from] = map[string]bool{}
		reach(from, from)
	}
	return all
}

// From the root down no chain of imports is longer than seven packages.
func TestLayers_ChainsAreShort(t *testing.T) {
	below := map[string][]string{}
	for _, arrow := range arrows(t, "linux") {
		below[arrow[0]] = append(below[arrow[0]], arrow[1])
	}
	longest := map[string][]string{"": nil}
	var chain func(string) []string
	chain = func(of string) []string {
		if found, ok := longest[of]; ok {
			return found
		}
		var rest []string
		for _, to := range below[of] {
			if c := chain(to); len(c) > len(rest) {
				rest = c
			}
		}
		longest[of] = append([]string{of}, rest...)
		return longest[of]
	}
	if c := chain("."); len(c) > 7 || len(c) < 5 {
		t.Errorf("the longest chain of imports has %d packages: %s", len(c), strings.Join(c, " -> "))
	}
}
