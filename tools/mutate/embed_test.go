// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const functions = `package a

import "strings"

const limit = 3

// Upper is not part of a function: its comment may change.
func Upper(s string) string { return strings.ToUpper(s) }

func (t *T) Set(n int) {
	t.n = n
}

type T struct{ n int }

func loop() {
outer:
	for {
		break outer
	}
}
`

func TestSource_BodiesOfTheFunctionsThatDiffer(t *testing.T) {
	original, err := readSource(functions)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from, to string
		want     map[int]string
	}{
		"a body":         {"strings.ToUpper(s)", "s", map[int]string{2: " return s "}},
		"a method":       {"t.n = n", "t.n = 0", map[int]string{3: "\n\tt.n = 0\n"}},
		"two functions":  {" }\n\nfunc (t *T) Set(n int) {\n", "}\n\nfunc (t *T) Set(n int) {\n\treturn\n", map[int]string{2: " return strings.ToUpper(s)", 3: "\n\treturn\n\tt.n = n\n"}},
		"a comment":      {"// Upper is not", "// Upper is", nil},
		"a signature":    {"(n int)", "(n int64)", nil},
		"a constant":     {"limit = 3", "limit = 4", nil},
		"a type":         {"struct{ n int }", "struct{ n, m int }", nil},
		"an import":      {`import "strings"`, `import strings "bytes"`, nil},
		"a new function": {"type T", "func F() {}\n\ntype T", nil},
		"labels":         {"break outer", "continue outer", nil},
	} {
		t.Run(name, func(t *testing.T) {
			mutated, err := readSource(strings.Replace(functions, c.from, c.to, 1))
			if err != nil {
				t.Fatal(err)
			}
			got, ok := original.bodies(mutated)
			if ok != (c.want != nil) {
				t.Fatalf("got %v, %t; want %v", got, ok, c.want)
			}
			for n := range c.want {
				if got[n] != c.want[n] {
					t.Errorf("declaration %d: got %q, want %q", n, got[n], c.want[n])
				}
			}
		})
	}
}

// In one program a run has the mutation that it chooses and no other one, whether it is embedded or has a build of its own.
func TestRun_EachMutationAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs; run without -short")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/a\n\ngo 1.26\n", "a/page.js": "let name = 'a'\n",
		"a/a.go": "package a\n\nimport _ \"embed\"\n\n//go:embed page.js\nvar page string\n\nconst base = 1\n\nfunc Sum(n int) (sum int) {\n\tsum = base\n\tsum += n\n\treturn sum\n}\n\nvar Last int\n\nfunc Keep(n int) {\n\tLast = n\n}\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2) != 3 {\n\t\tt.Error(Sum(2))\n\t}\n}\n\n" +
			"func TestPage(t *testing.T) {\n\tif page != \"let name = 'a'\\n\" {\n\t\tt.Error(page)\n\t}\n}\n\nfunc TestKeep(t *testing.T) {\n\tif Keep(2); Last != 2 {\n\t\tt.Error(Last)\n\t}\n}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	m := func(name, test, before, after string) mutation {
		return mutation{at: name, name: name, shows: []string{name}, file: "a/a.go", folder: "./a", test: test, before: before, after: after}
	}
	broken := []mutation{
		m("first", "TestSum", "\tsum += n\n", "\tsum -= n\n"), m("second", "TestSum", "\tsum = base\n", "\tsum = 0\n"),
		m("nothing", "TestKeep", "\tLast = n\n", "\t_ = n\n"), m("constant", "TestSum", "const base = 1\n", "const base = 2\n"),
	}
	page := m("page", "TestPage", "let name = 'a'\n", "let name = 'b'\n")
	page.file = "a/page.js"
	broken = append(broken, page)
	programs, err := build(t.Context(), t.TempDir(), broken)
	if err != nil {
		t.Fatal(err)
	}
	if p := programs["./a"]; p == nil || len(p.embedded) != 3 || p.embedded["constant"] {
		t.Fatalf("the program is %+v", p)
	}
	if err := run(t.Context(), broken, 2); err != nil {
		t.Error(err)
	}
	for _, missed := range []mutation{m("other", "TestKeep", "\tsum += n\n", "\tsum -= n\n"), m("same", "TestSum", "\tsum += n\n", "\tsum = sum + n\n")} {
		if err := run(t.Context(), append(broken, missed), 2); err == nil || !strings.Contains(err.Error(), missed.name) || strings.Contains(err.Error(), "first") {
			t.Errorf("%s: got %v", missed.name, err)
		}
	}
	if err := run(t.Context(), append(broken, m("no Go", "TestSum", "\tsum += n\n", "\tsum +=\n")), 2); err == nil || !strings.Contains(err.Error(), "does not build") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, broken, 2); err == nil {
		t.Error("a stopped run has passed")
	}
}
