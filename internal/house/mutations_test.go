// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var seedID = regexp.MustCompile(`\bS00[0-4]-\d{3}\b`)

// A mutation that shows a row of the seed map is noticed by a test that the row names, and at least a
// hundred rows have one.
func TestMutations_RowsOfTheSeedMap(t *testing.T) {
	tests := map[string][]string{}
	for _, cells := range table(read(t, "docs/seed-map.md")) {
		tests[cells[0]] = list(cells[3])
	}
	files, err := filepath.Glob(filepath.Join(root, "internal/mutate/mutations/*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var name string
		var shows []string
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "mutation":
				name, shows = value, nil
			case "shows":
				shows = seedID.FindAllString(value, -1)
			case "test":
				folder, test, _ := strings.Cut(value, " ")
				pkg := path.Base(folder)
				if folder == "." {
					pkg = path.Base(module)
				}
				for _, id := range shows {
					rows[id] = true
					if !slices.Contains(tests[id], pkg+"."+test) {
						t.Errorf("%s: mutation %s shows %s, whose row names the tests %q and not %s.%s", filepath.Base(file), name, id, tests[id], pkg, test)
					}
				}
			}
		}
	}
	if len(rows) < 100 {
		t.Errorf("%d rows of the seed map have a mutation, want at least 100", len(rows))
	}
}
