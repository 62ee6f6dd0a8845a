// SPDX-License-Identifier: Apache-2.0

package house

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSeedMap_NamesExist checks that whatever spec/seed-map.md names exists.
func TestSeedMap_NamesExist(t *testing.T) {
	names := collect(packages(t))
	for _, target := range makeTargets(read(t, "Makefile")) {
		names.things["make "+target] = true
	}
	for _, problem := range checkSeedMap(read(t, "spec/seed-map.md"), names) {
		t.Errorf("spec/seed-map.md: %s", problem)
	}
}

// TestSeedNames_EachHasAGoName checks that the Go names of spec/seed-names.md exist, and that each name has one.
func TestSeedNames_EachHasAGoName(t *testing.T) {
	names := collect(packages(t))
	rows := table(read(t, "spec/seed-names.md"))
	for _, cells := range rows {
		if len(cells) != 3 || cells[0] == "" {
			t.Errorf("spec/seed-names.md: %q is no row of name, Go and words", cells)
			continue
		}
		for _, name := range list(cells[1]) {
			if !names.things[name] {
				t.Errorf("spec/seed-names.md: %s: there is no %q", cells[0], name)
			}
		}
	}
	if len(rows) < 50 {
		t.Errorf("only %d rows found: the rule sees nothing", len(rows))
	}
}

// seedRows is how many requirements each seed has. Their numbers begin with 1 and have no gaps.
var seedRows = []int{282, 372, 46, 183, 83}

// Every requirement has one row, in the order of its number.
func TestSeedMap_EveryRequirementHasOneRow(t *testing.T) {
	var want, got []string
	for seed, rows := range seedRows {
		for n := range rows {
			want = append(want, fmt.Sprintf("S%03d-%03d", seed, n+1))
		}
	}
	for _, cells := range table(read(t, "spec/seed-map.md")) {
		got = append(got, cells[0])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the rows of spec/seed-map.md (-want +got):\n%s", diff)
	}
}

// seedSamples are the requirements that are samples of code. Each is a Go program or an example that runs.
var seedSamples = []string{
	"S000-026", "S000-083", "S000-175", "S000-177", "S000-178", "S000-179", "S000-188", "S000-224",
	"S001-179", "S001-188", "S001-338", "S001-341", "S001-348",
	"S003-143", "S003-146", "S003-149", "S003-156", "S003-157",
	"S004-019", "S004-026", "S004-040", "S004-055", "S004-073",
}

func TestSeedMap_SamplesAreProgramsOrExamples(t *testing.T) {
	found := 0
	for _, cells := range table(read(t, "spec/seed-map.md")) {
		if !slices.Contains(seedSamples, cells[0]) {
			continue
		}
		found++
		if !slices.ContainsFunc(list(cells[2]), isProgram) && !slices.ContainsFunc(list(cells[3]), isExample) {
			t.Errorf("spec/seed-map.md: %s is a sample and names neither a program under examples nor an example that is tested", cells[0])
		}
	}
	if found != len(seedSamples) {
		t.Errorf("spec/seed-map.md has %d samples, want %d", found, len(seedSamples))
	}
}

func isProgram(name string) bool {
	return strings.HasPrefix(name, "examples/") && strings.HasSuffix(name, ".go")
}

func isExample(test string) bool {
	_, name, _ := strings.Cut(test, ".")
	return strings.HasPrefix(name, "Example")
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
		state, problem := stateOf(cells)
		if problem != "" {
			problems = append(problems, id+": "+problem)
		}
		if state == "not built" || isInformative(cells) {
			continue
		}
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

var pointsOn = regexp.MustCompile(`superseded by S00[0-4]-\d{3}`)

// isInformative reports rows that ask for nothing: they inform, or another row has taken their place.
func isInformative(cells []string) bool {
	return cells[2] == "-" && cells[3] == "-" && (strings.HasPrefix(cells[1], "informative: ") || pointsOn.MatchString(cells[1]))
}

// seedState is how the words of a row end that is not whole: the state, and the text about it.
var seedState = regexp.MustCompile(`; (in part|not built|refused): *(.*)$`)

// stateOf returns the state of a row, "" for one that is whole, and what is wrong with it. An "in part" row
// says what is open. A "not built" row says why, and names nothing. A "refused" row says by what, and its
// first test is that of the refusal.
func stateOf(cells []string) (state, problem string) {
	words := cells[1]
	match := seedState.FindStringSubmatch(words)
	if match == nil {
		for _, state := range []string{"in part", "not built"} {
			if strings.Contains(strings.ToLower(words), state) {
				return "", fmt.Sprintf("the words have %q and do not end with \"; %s: ...\"", state, state)
			}
		}
		return "", ""
	}
	state, about := match[1], match[2]
	switch _, test, _ := strings.Cut(list(cells[3])[0], "."); {
	case about == "":
		return state, fmt.Sprintf("no text follows %q", state)
	case seedState.MatchString("; " + about):
		return state, "there are two states"
	case state == "not built" && (cells[2] != "-" || cells[3] != "-"):
		return state, "what is not built has no identifier and no test"
	case state == "refused" && !strings.HasPrefix(about, "by "):
		return state, fmt.Sprintf("%q does not begin with what refuses it, as \"by ...\"", about)
	case state == "refused" && !strings.Contains(test, "Refuse"):
		return state, fmt.Sprintf("the first test %q is not that of a refusal", test)
	}
	return state, ""
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
		if dir == "." {
			pkg = path.Base(module)
		}
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

func TestCheckSeedMap_FindsProblems(t *testing.T) {
	n := collect(packages(t))
	n.things["make demo"] = true
	row := func(id, thing, test string) string {
		return "| id | words | identifier | test |\n|---|---|---|---|\n| " + id + " | w | " + thing + " | " + test + " |\n"
	}
	cases := []struct {
		name, text string
		problems   int
	}{
		{"good", row("a", "`launch.HostSpawner.Spawn`, claude.FindOptions.Path, make demo, docs/dependencies.md", "`claude.TestFind_Order/x`, house.TestCheckSeedMap_FindsProblems"), 0},
		{"interface method", row("a", "launch.Process.Kill", "claude.TestFind_Order"), 0},
		{"no such identifier", row("a", "claude.Nothing", "claude.TestFind_Order"), 1},
		{"no such test", row("a", "claude.Find", "claude.TestNothing"), 1},
		{"empty cells", row("", "", ""), 3},
		{"outside", row("a", "../../etc/passwd", "claude.TestFind_Order"), 1},
		{"twice", row("a", "claude.Find", "claude.TestFind_Order") + "| a | w | claude.Find | claude.TestFind_Order |\n", 1},
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

func TestSeedMap_States(t *testing.T) {
	cases := map[string]struct{ words, thing, test, state, problem string }{
		"whole":                 {words: "a mode", thing: "a.B", test: "a.TestB"},
		"in part":               {words: "a mode; in part: not on Windows", thing: "a.B", test: "a.TestB", state: "in part"},
		"nothing open":          {words: "a mode; in part:", thing: "a.B", test: "a.TestB", state: "in part", problem: "no text follows"},
		"a state in the middle": {words: "in part a mode", problem: "do not end with"},
		"capitals":              {words: "Not built", problem: "do not end with"},
		"not built":             {words: "a mode; not built: the CLI has none", thing: "-", test: "-", state: "not built"},
		"not built, with test":  {words: "a mode; not built: the CLI has none", thing: "-", test: "a.TestB", state: "not built", problem: "no identifier and no test"},
		"refused":               {words: "a mode; refused: by the cell", thing: "a.B", test: "`a.TestIsRefused`, a.TestB", state: "refused"},
		"refused by nothing":    {words: "a mode; refused: it is unsafe", thing: "a.B", test: "a.TestIsRefused", state: "refused", problem: "what refuses it"},
		"no refusal shown":      {words: "a mode; refused: by the cell", thing: "a.B", test: "a.TestB, a.TestIsRefused", state: "refused", problem: "not that of a refusal"},
		"two states":            {words: "a mode; in part: x; refused: by the cell", thing: "a.B", test: "a.TestIsRefused", state: "in part", problem: "two states"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			state, problem := stateOf([]string{"id", c.words, c.thing, c.test})
			if state != c.state || (c.problem == "") != (problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("got %q with problem %q, want %q with %q", state, problem, c.state, c.problem)
			}
		})
	}
}

func TestMakeTargets_Cases(t *testing.T) {
	got := makeTargets("A := b\n.PHONY: x\ndemo: setup\n\tcmd\nfmt:\n\tcmd\n$(X):\n")
	if want := "demo fmt"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
