// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A sourceDir has the files of one folder for this system, parsed.
type sourceDir struct {
	rel                     string // "." for the root
	files, inTests, xtTests []*ast.File
}

func (d *sourceDir) path() string { return path.Join(module, d.rel) }

// isPublic reports whether other modules can import the package.
func (d *sourceDir) isPublic() bool {
	return len(d.files) > 0 && d.files[0].Name.Name != "main" && !slices.Contains(strings.Split(d.rel, "/"), "internal") && d.rel != "tools/house"
}

// A checker type-checks the packages of the repository from source. Packages of others come from their export data.
// All variants of a package share their parsed files, so that a position identifies a declaration.
type checker struct {
	fset   *token.FileSet
	dirs   map[string]*sourceDir // by import path
	others types.Importer
	done   map[string]*types.Package
	infos  map[string]*types.Info
	err    error // the first one in code that is not a test
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	c := &checker{fset: token.NewFileSet(), dirs: map[string]*sourceDir{}, done: map[string]*types.Package{}, infos: map[string]*types.Info{}}
	imports := map[string]bool{}
	modules := slices.DeleteFunc(committed(t), func(name string) bool { return path.Base(name) != "go.mod" || name == "go.mod" })
	for _, name := range goFiles(t) {
		if slices.ContainsFunc(modules, func(other string) bool { return strings.HasPrefix(name, path.Dir(other)+"/") }) {
			continue
		}
		folder, base := filepath.Split(filepath.Join(root, name))
		if match, err := build.Default.MatchFile(folder, base); err != nil || !match {
			continue
		}
		file, err := parser.ParseFile(c.fset, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		c.add(name, file)
		for _, spec := range file.Imports {
			imports[strings.Trim(spec.Path.Value, `"`)] = true
		}
	}
	c.others = importer.ForCompiler(c.fset, "gc", exportData(t, slices.DeleteFunc(slices.Sorted(maps.Keys(imports)), isOurs)))
	return c
}

func isOurs(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func (c *checker) add(name string, file *ast.File) {
	dir := &sourceDir{rel: path.Dir(name)}
	if known := c.dirs[dir.path()]; known != nil {
		dir = known
	}
	c.dirs[dir.path()] = dir
	switch {
	case !strings.HasSuffix(name, "_test.go"):
		dir.files = append(dir.files, file)
	case strings.HasSuffix(file.Name.Name, "_test"):
		dir.xtTests = append(dir.xtTests, file)
	default:
		dir.inTests = append(dir.inTests, file)
	}
}

// exportData returns a lookup of the export data of packages and of what they import.
func exportData(t *testing.T, paths []string) importer.Lookup {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, paths...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		data, err := os.ReadFile(files[path])
		return io.NopCloser(bytes.NewReader(data)), err
	}
}

// Import implements [types.Importer].
func (c *checker) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if !isOurs(path) {
		return c.others.Import(path)
	}
	if pkg := c.done[path]; pkg != nil {
		return pkg, nil
	}
	dir := c.dirs[path]
	if dir == nil || len(dir.files) == 0 {
		return nil, fmt.Errorf("no package %s", path)
	}
	info := newInfo()
	config := types.Config{Importer: c, Error: func(err error) {
		if c.err == nil {
			c.err = err
		}
	}}
	pkg, _ := config.Check(path, c.fset, dir.files, info)
	c.done[path], c.infos[path] = pkg, info
	return pkg, nil
}

func newInfo() *types.Info {
	return &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Defs: map[*ast.Ident]types.Object{}}
}

// tests type-checks the tests of a folder: those in the package, and those outside of it, which see the former. A
// package that imports the one under test has another variant of its types, so errors do not count here.
func (c *checker) tests(dir *sourceDir) []*types.Info {
	config := types.Config{Importer: c, Error: func(error) {}}
	var infos []*types.Info
	tested := c.done[dir.path()]
	if len(dir.inTests) > 0 {
		info := newInfo()
		tested, _ = config.Check(dir.path(), c.fset, append(withoutBodies(dir.files), dir.inTests...), info)
		infos = append(infos, info)
	}
	if len(dir.xtTests) > 0 {
		info := newInfo()
		config.Importer = replaced{c, tested}
		_, _ = config.Check(dir.path()+"_test", c.fset, dir.xtTests, info)
		infos = append(infos, info)
	}
	return infos
}

// replaced imports one package in the variant that its tests see.
type replaced struct {
	types.Importer
	pkg *types.Package
}

func (r replaced) Import(path string) (*types.Package, error) {
	if r.pkg != nil && path == r.pkg.Path() {
		return r.pkg, nil
	}
	return r.Importer.Import(path)
}

// withoutBodies copies files as far as needed to leave out what was checked already.
func withoutBodies(files []*ast.File) []*ast.File {
	var bare []*ast.File
	for _, file := range files {
		copied := *file
		copied.Decls = slices.Clone(file.Decls)
		for i, decl := range copied.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				head := *f
				head.Body = nil
				copied.Decls[i] = &head
			}
		}
		bare = append(bare, &copied)
	}
	return bare
}
