// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

const source = `package p

import "io"

// Comments do not count.
const (
	A Kind = iota
	B
	c
)

const Name = "x"

var ErrX, errY = io.EOF, io.EOF

type Kind int

type Alias = io.Reader

// S is a struct.
type S[T any] struct {
	X, Y int ` + "`json:\"x\"`" + `
	io.Reader
	hidden bool
}

func (s *S[T]) Do(n int) error { return nil }
func (s S[T]) quiet()          {}

type I interface {
	Get(n int) (
		string, error)
	seal()
}

type hidden struct{ X int }

func (hidden) Method() {}

func New[T any](opts ...int) *S[T] { return nil }
func private()                     {}
`

const want = `const A Kind = iota
const B Kind
const Name = "x"
func (*S[T]) Do(n int) error
func New[T any](opts ...int) *S[T]
type Alias = io.Reader
type I interface
type I, method Get(n int) (string, error)
type I, sealed
type Kind int
type S, embeds io.Reader
type S, field X int ` + "`json:\"x\"`" + `
type S, field Y int ` + "`json:\"x\"`" + `
type S[T any] struct
var ErrX
`

func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestListing_HasEveryExportedName(t *testing.T) {
	root := writeTree(t, map[string]string{"p.go": source, "p_test.go": "package p\nfunc FromTest() {}\n"})
	got, err := listing(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheck_PassesAfterWrite(t *testing.T) {
	root := writeTree(t, map[string]string{
		"a/p.go": source, "a/b/q.go": "package q\n\nvar Q int\n", "internal/x/x.go": "package x\n\nvar X int\n",
		"cmd/c/main.go": "package main\n", "a/examples/e.go": "package e\n\nvar E int\n", "api/gone.txt": "var Z\n",
		"tool/main.go": "package main\n\nvar Exported int\n", "root.go": "package root\n\nvar R int\n",
	})
	if err := run(root, true); err == nil || !strings.Contains(advice.Text(err), "gone.txt: - var Z") ||
		!strings.Contains(advice.Text(err), "a-b.txt: + var Q") || !strings.Contains(advice.Text(err), "make api") {
		t.Errorf("check before writing: got %v, want every difference and the next step", err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Errorf("check after writing: got %v, want nil", err)
	}
	files, _ := filepath.Glob(filepath.Join(root, "api", "*"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if diff := cmp.Diff([]string{"a-b.txt", "a.txt", "drover.txt"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(root, "a/b/q.go"), []byte("package q\n\nvar Q string\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err == nil || !strings.Contains(advice.Text(err), "+ var Q string") {
		t.Errorf("check after a change: got %v, want the changed line", err)
	}
}
