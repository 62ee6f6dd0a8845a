// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
)

const root = "../.."

const block = `# a comment

mutation: one
shows: S001-001, security/files
file: a/b.go
test: ./a TestOne
--- old
	old
--- new
	new
--- end
`

func TestParse_Blocks(t *testing.T) {
	found, err := parse("x.txt", block)
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v, %v", found, err)
	}
	m := found[0]
	if m.at != "x.txt:3" || m.name != "one" || strings.Join(m.shows, "|") != "S001-001|security/files" || m.file != "a/b.go" ||
		m.folder != "./a" || m.test != "TestOne" || m.before != "\told\n" || m.after != "\tnew\n" {
		t.Errorf("got %+v", m)
	}
}

func TestParse_Problems(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"no end":         {"--- end\n", "", "has no end"},
		"unknown field":  {"shows:", "show:", "unknown or repeated field"},
		"repeated field": {"file: a/b.go", "file: a/b.go\nfile: c.go", "unknown or repeated field"},
		"test file":      {"file: a/b.go", "file: a/b_test.go", "does not fit"},
		"outside":        {"file: a/b.go", "file: ../b.go", "does not fit"},
		"no package":     {"test: ./a TestOne", "test: TestOne", "does not fit"},
		"no change":      {"\tnew", "\told", "changes nothing"},
		"nothing":        {"\told\n", "", "no text to replace"},
		"no promise":     {"shows: S001-001, security/files\n", "", "needs the fields"},
		"no block":       {"mutation: one\n", "", "outside of a block"},
		"words":          {"# a", "a", "neither a field nor a mark"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(block, c.from, c.to, 1)
			if _, err := parse("x.txt", text); err == nil || !strings.Contains(advice.Text(err), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestApply_BlockMustMatchOnce(t *testing.T) {
	m := mutation{at: "x.txt:1", name: "one", file: "b.go", before: "\told\n", after: "\tnew\n"}
	for name, c := range map[string]struct{ text, want string }{
		"once":        {"a\n\told\nb\n", "a\n\tnew\nb\n"},
		"first line":  {"\told\nb\n", "\tnew\nb\n"},
		"twice":       {"\told\n\told\n", ""},
		"not at all":  {"\tnew\n", ""},
		"not a line":  {"a\told\n", ""},
		"longer line": {"\tolder\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "b.go"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := m.apply(dir)
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if err != nil && !strings.Contains(advice.Text(err), "no longer applies") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestReadResult_Cases(t *testing.T) {
	for name, c := range map[string]struct{ stdout, want string }{
		"failed":    {`{"Action":"fail","Test":"TestOne"}`, "the test ended with: fail"},
		"passed":    {`{"Action":"fail","Test":"TestOne/part"}` + "\n" + `{"Action":"pass","Test":"TestOne"}`, "the test ended with: pass"},
		"skipped":   {`{"Action":"skip","Test":"TestOne"}`, "the test ended with: skip"},
		"not built": {`{"Action":"build-fail"}` + "\n" + `{"Action":"fail","FailedBuild":"p"}`, "does not build"},
		"no test":   {`{"Action":"pass"}`, "the test did not run to its end"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readResult([]byte(c.stdout), "").verdict("TestOne"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A mutation of the repository applies to the code as it is, and its test exists. Whether the test
// notices is for make mutate.
func TestMutations_Apply(t *testing.T) {
	for _, m := range all(t) {
		if _, err := m.apply(root); err != nil {
			t.Error(err)
		}
		if err := m.declared(root); err != nil {
			t.Error(err)
		}
	}
}

// A mutation that shows a row of spec/seed-map.md is noticed by a test that the row names, and at least
// a hundred rows have one.
func TestMutations_RowsOfTheSeedMap(t *testing.T) {
	rows := rows(t, "spec/seed-map.md")
	shown := map[string]bool{}
	for _, m := range all(t) {
		for _, show := range m.shows {
			if !seedRow.MatchString(show) {
				continue
			}
			shown[show] = true
			if row, ok := rows[show]; !ok {
				t.Errorf("%s: mutation %q: spec/seed-map.md has no row %s", m.at, m.name, show)
			} else if !strings.Contains(row, m.quoted()) {
				t.Errorf("%s: mutation %q: row %s of spec/seed-map.md does not name %s", m.at, m.name, show, m.quoted())
			}
		}
	}
	if len(shown) < 100 {
		t.Errorf("%d rows of spec/seed-map.md have a mutation, want at least 100", len(shown))
	}
}

var seedRow = regexp.MustCompile(`^S\d{3}-\d{3}$`)

// Each row of these pages that names tests has a mutation that one of them notices. A mutation names the row by
// the beginning of its first cell, behind a word for the page.
func TestMutations_RowsOfThePagesOfPromises(t *testing.T) {
	for word, page := range map[string]string{"security/": "docs/security.md", "gateway/": "docs/gateway.md", "beside/": "SECURITY.md"} {
		broken := map[string]bool{}
		rows := rows(t, page)
		for _, m := range all(t) {
			for _, show := range m.shows {
				name, ok := strings.CutPrefix(show, word)
				if !ok {
					continue
				}
				if _, exact := rows[name]; !exact {
					for row := range rows {
						if strings.HasPrefix(row, name) {
							name = row
						}
					}
				}
				row, ok := rows[name]
				if !ok {
					t.Errorf("%s: mutation %q: %s has no row %q", m.at, m.name, page, name)
				}
				broken[name] = broken[name] || strings.Contains(row, m.quoted())
			}
		}
		for name, row := range rows {
			if strings.Contains(row, ".Test") && !broken[name] {
				t.Errorf("%s: no mutation breaks the row %q for a test that it names", page, name)
			}
		}
	}
}

// quoted is the test as pages name it.
func (m *mutation) quoted() string {
	name := path.Base(m.folder)
	if m.folder == "." {
		name = "drover"
	}
	return "`" + name + "." + m.test + "`"
}

func all(t *testing.T) []mutation {
	t.Helper()
	found, err := load(root)
	if err != nil {
		t.Error(err)
	}
	return found
}

// rows returns the rows of the tables of a page by their first cell.
func rows(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && cells[0] == "" {
			found[strings.TrimSpace(cells[1])] += line // a first cell may be in two tables
		}
	}
	return found
}
