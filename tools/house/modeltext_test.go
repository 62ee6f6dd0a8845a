// SPDX-License-Identifier: Apache-2.0

package house

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// modelTexts is the golden file of all texts that a model reads, for review as prompts.
const modelTexts = "testdata/model-texts.txt"

func TestModelTexts_AreShownTogether(t *testing.T) {
	var b strings.Builder
	b.WriteString("The texts that models read. Made from each modeltext.go by: go test ./tools/house -run TestModelTexts -update\n")
	for _, p := range sourceFiles(t) {
		if path.Base(p.name) != "modeltext.go" {
			continue
		}
		fmt.Fprintf(&b, "\n# %s\n", p.name)
		for _, decl := range p.file.Decls {
			showTexts(&b, decl)
		}
	}
	if *update {
		if err := os.WriteFile(modelTexts, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(modelTexts)
	if diff := cmp.Diff(string(want), b.String()); err != nil || diff != "" {
		t.Errorf("%v; %s is not what the files have; rewrite it with -update (-want +got):\n%s", err, modelTexts, diff)
	}
}

// showTexts writes the string literals of each constant and function, with the name of that.
func showTexts(b *strings.Builder, decl ast.Decl) {
	name := ""
	function, isFunction := decl.(*ast.FuncDecl)
	if isFunction {
		name = function.Name.Name
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.TypeSpec:
			name = n.Name.Name
		case *ast.ValueSpec:
			if !isFunction {
				name = n.Names[0].Name
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && strings.Contains(text, " ") {
				fmt.Fprintf(b, "\n%s:\n%s\n", name, "  "+strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  "))
			}
		}
		return true
	})
}

// modelSinks are functions whose first argument a model reads.
var modelSinks = map[string]bool{"tool.Fail": true, "Fail": true, "claude.DenyTool": true, "DenyTool": true, "claude.ErrorResult": true, "ErrorResult": true}

func TestModelTexts_AreInOneFilePerPackage(t *testing.T) {
	found := 0
	kits := regexp.MustCompile(`^(examples|bench|claude/claudetest|drovertest|agent/agenttest)/`)
	for _, p := range sourceFiles(t) {
		if kits.MatchString(p.name) || path.Base(p.name) == "modeltext.go" {
			continue
		}
		ast.Inspect(p.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || !modelSinks[exprText(call.Fun)] {
				return true
			}
			found++
			ast.Inspect(call.Args[0], func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") {
					t.Errorf("%s: %s is a text for a model: put it into modeltext.go of its package", p.name, lit.Value)
				}
				return true
			})
			return true
		})
	}
	if found < 20 {
		t.Errorf("only %d calls hand a text to a model: the names of the functions have changed", found)
	}
}

func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprText(e.X) + "." + e.Sel.Name
	}
	return ""
}

// sourceFiles are the Go files of the product that are not tests, ordered by path.
func sourceFiles(t *testing.T) []parsed {
	t.Helper()
	all := slices.Concat(slices.Collect(maps.Values(packages(t)))...)
	all = slices.DeleteFunc(all, parsed.isTest)
	slices.SortFunc(all, func(a, b parsed) int { return strings.Compare(a.name, b.name) })
	return all
}
