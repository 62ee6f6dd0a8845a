// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// registryHosts are names of package registries and their mirrors. Where packages come from is the
// business of each machine's own configuration. The names are put together here so that this file
// does not hold them.
var registryHosts = []string{
	join("registry", "npm"+"js", "org"), join("npm"+"js", "com"), join("registry", "yarn"+"pkg", "com"),
	join("proxy", "golang", "org"), join("sum", "golang", "org"), join("goproxy", "io"), join("goproxy", "cn"),
	join("py"+"pi", "org"), join("files", "python"+"hosted", "org"), join("rubygems", "org"), join("crates", "io"),
	join("deb", "debian", "org"), join("archive", "ubuntu", "com"),
}

func join(parts ...string) string { return strings.Join(parts, ".") }

// registryAddress finds registries that the list does not know.
var registryAddress = regexp.MustCompile(`https?:/` + `/[\w.-]*(registry|goproxy|artifactory|verdaccio|nexus)[\w.-]*`)

func TestRepo_NamesNoRegistry(t *testing.T) {
	for _, name := range committed(t) {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range registriesIn(data) {
			t.Errorf("%s: names the package registry %s", name, problem)
		}
	}
}

func registriesIn(data []byte) []string {
	var found []string
	lower := bytes.ToLower(data)
	for _, host := range registryHosts {
		if bytes.Contains(lower, []byte(host)) {
			found = append(found, host)
		}
	}
	for _, address := range registryAddress.FindAll(lower, -1) {
		found = append(found, string(address))
	}
	return found
}

func TestRegistriesIn_Cases(t *testing.T) {
	bad := "see https:/" + "/npm-registry.example.com/x and " + strings.ToUpper(registryHosts[0])
	if got := registriesIn([]byte(bad)); len(got) != 2 {
		t.Errorf("got %q, want both", got)
	}
	if got := registriesIn([]byte("a registry of hooks; see https:/" + "/example.com/registry")); len(got) != 0 {
		t.Errorf("got %q, want none", got)
	}
}

// Lock files hold versions and checksums, and no address to load from.
func TestRepo_LockFilesHaveNoAddress(t *testing.T) {
	var seen int
	for _, name := range committed(t) {
		if path.Base(name) != "package-lock.json" {
			continue
		}
		seen++
		text := read(t, name)
		for _, word := range []string{`"resolved"`, ":/" + "/"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: holds %s", name, word)
			}
		}
	}
	if seen == 0 {
		t.Error("no lock file found: the rule sees nothing")
	}
}

// Every direct requirement has a row with reason and licence.
func TestDocs_DependenciesAreExplained(t *testing.T) {
	rows := map[string][]string{}
	for _, cells := range table(read(t, "docs/dependencies.md")) {
		rows[strings.Trim(cells[0], "`")] = cells
	}
	for _, name := range directRequirements(read(t, "go.mod")) {
		cells, ok := rows[name]
		if !ok {
			t.Errorf("docs/dependencies.md has no row for %s", name)
			continue
		}
		if len(cells) != 4 || cells[2] == "" || cells[3] == "" {
			t.Errorf("docs/dependencies.md: the row for %s lacks its reason or licence: %q", name, cells)
		}
	}
}

// directRequirements lists the modules that go.mod requires and does not mark as indirect.
func directRequirements(mod string) []string {
	var names []string
	inside := false
	for line := range strings.Lines(mod) {
		line = strings.TrimSpace(line)
		one, single := strings.CutPrefix(line, "require ")
		switch {
		case line == "require (":
			inside = true
			continue
		case line == ")":
			inside = false
		case single:
			line = one
		}
		if words := strings.Fields(line); (inside || single) && len(words) >= 2 && !strings.HasSuffix(line, "// indirect") {
			names = append(names, words[0])
		}
	}
	return names
}

func TestDirectRequirements_Cases(t *testing.T) {
	got := directRequirements("module x\n\nrequire a.b/c v1.0.0\n\nrequire (\n\td.e/f v1.0.0\n\tg.h/i v1.0.0 // indirect\n)\n")
	if want := "a.b/c d.e/f"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// table returns the rows of the Markdown tables in text, cell by cell, without their headings.
func table(text string) [][]string {
	var rows [][]string
	inBody := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inBody = false
		case strings.Trim(line, "|-: ") == "":
			inBody = true
		case inBody:
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}
