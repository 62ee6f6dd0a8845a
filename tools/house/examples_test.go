// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unisolated is the one example that runs its agent without isolation.
const unisolated = "development"

// Every example but one runs its agent in a cell: by the adapter, or by opening one.
func TestExamples_RunInACell(t *testing.T) {
	programs, err := filepath.Glob("../../examples/*/main.go")
	if err != nil || len(programs) < 9 {
		t.Fatalf("found %d examples (%v)", len(programs), err)
	}
	for _, path := range programs {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(source)
		opened := strings.Contains(text, "claudecell.Open(")
		if !opened && !strings.Contains(text, "claudecode.New(") && !strings.Contains(text, "claudecode.FromConfig(") {
			t.Errorf("%s starts a CLI without a cell", path)
		}
		if filepath.Base(filepath.Dir(path)) == unisolated {
			if !strings.Contains(text, "with NO ISOLATION") || !strings.Contains(text, "-no-isolation") {
				t.Errorf("%s has no prominent warning that the agent is not isolated", path)
			}
			continue
		}
		if strings.Contains(text, "Spawner") || strings.Contains(text, "LevelHost") || strings.Contains(text, "isolation.Development") {
			t.Errorf("%s disables isolation", path)
		}
	}
}

// Every example is in the list of docs/examples.md, and has a test.
func TestExamples_AreListedAndTested(t *testing.T) {
	programs, err := filepath.Glob("../../examples/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	list := read(t, "docs/examples.md")
	for _, path := range programs {
		name := filepath.Base(filepath.Dir(path))
		if !strings.Contains(list, "| [`"+name+"`](../examples/"+name+") |") {
			t.Errorf("docs/examples.md does not list examples/%s", name)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "main_test.go")); err != nil {
			t.Errorf("examples/%s has no test: %v", name, err)
		}
	}
}
