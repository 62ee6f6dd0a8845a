// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
)

func main() {
	check := flag.Bool("check", false, "compare with the committed listing instead of writing it")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	if err := run(root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "apilist:", advice.Text(err))
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	dirs, err := publicPackages(root)
	if err != nil {
		return err
	}
	want := map[string]string{}
	for _, dir := range dirs {
		text, err := listing(filepath.Join(root, dir))
		if err != nil {
			return err
		}
		if text != "" {
			want[fileOf(dir)] = text
		}
	}
	if check {
		return compare(filepath.Join(root, "api"), want)
	}
	return write(filepath.Join(root, "api"), want)
}

// rootFile is the file of the package at the root of the module, which has no path to be named after.
const rootFile = "drover.txt"

func fileOf(dir string) string {
	if dir == "." {
		return rootFile
	}
	return strings.ReplaceAll(filepath.ToSlash(dir), "/", "-") + ".txt"
}

// private are directories without public packages.
var private = []string{"internal", "cmd", "examples", "tools", "testdata", "docs", "api"}

// publicPackages lists the directories below root that hold Go files of a public package.
func publicPackages(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if path != root && (slices.Contains(private, name) || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if isSource(d.Name()) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return err
	})
	return dirs, err
}

func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// write makes dir hold exactly the files of want.
func write(dir string, want map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, ok := want[filepath.Base(path)]; !ok {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, text := range want {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare names every line that differs between dir and want.
func compare(dir string, want map[string]string) error {
	var lines []string
	old, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, path := range old {
		names[filepath.Base(path)] = true
	}
	for name := range want {
		names[name] = true
	}
	for name := range names {
		had, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		lines = append(lines, difference(name, string(had), want[name])...)
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return advice.Wrap(fmt.Errorf("the exported API is not the one in %s:\n%s", dir, strings.Join(lines, "\n")),
		"run make api and commit the listing, if the change is meant")
}

func difference(name, had, has string) []string {
	before, after := entries(had), entries(has)
	var lines []string
	for _, e := range after {
		if !slices.Contains(before, e) {
			lines = append(lines, fmt.Sprintf("  %s: + %s", name, e))
		}
	}
	for _, e := range before {
		if !slices.Contains(after, e) {
			lines = append(lines, fmt.Sprintf("  %s: - %s", name, e))
		}
	}
	return lines
}

func entries(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}
