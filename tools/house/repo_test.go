// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/drover-agents/drover"

// root is the repository, seen from this package.
const root = "../.."

// committed lists the files of the repository, also those that are new and not ignored, with
// slashes and relative to root.
func committed(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return walk(t) // an archive without git
	}
	var files []string
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

func walk(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".drover", "bin", "dist"}, d.Name()) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			name, _ := filepath.Rel(root, path)
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// goFiles lists the committed Go files, without test data.
func goFiles(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(committed(t), func(name string) bool {
		return !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/")
	})
}

// parsed is one Go file.
type parsed struct {
	name string // relative to root
	file *ast.File
}

func (p parsed) isTest() bool { return strings.HasSuffix(p.name, "_test.go") }

// packages parses all Go files and groups them by directory.
func packages(t *testing.T) map[string][]parsed {
	t.Helper()
	dirs := map[string][]parsed{}
	for _, name := range goFiles(t) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		dirs[dir] = append(dirs[dir], parsed{name, file})
	}
	return dirs
}

func TestRepo_LicenceHeaders(t *testing.T) {
	const header = "// SPDX-License-Identifier: Apache-2.0\n"
	files := goFiles(t)
	if len(files) < 10 {
		t.Fatalf("only %d Go files found: the rule sees nothing", len(files))
	}
	for _, name := range files {
		if !strings.HasPrefix(read(t, name), header) {
			t.Errorf("%s: the first line is not %q", name, strings.TrimSpace(header))
		}
	}
}

func TestRepo_PackageComments(t *testing.T) {
	for dir, files := range packages(t) {
		var with []string
		for _, f := range files {
			if f.file.Doc == nil {
				continue
			}
			if f.isTest() {
				t.Errorf("%s: a test file has a package comment", f.name)
				continue
			}
			with = append(with, f.name)
		}
		if onlyTests := !slices.ContainsFunc(files, func(f parsed) bool { return !f.isTest() }); len(with) != 1 && !onlyTests {
			t.Errorf("%s: %d package comments %v, want exactly one", dir, len(with), with)
		}
	}
}
