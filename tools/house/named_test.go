// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A test that a page names as evidence exists.
func TestDocs_NamedTestsExist(t *testing.T) {
	tests := collect(packages(t)).tests
	named := 0
	for _, page := range documents(t) {
		for _, name := range testsNamed(read(t, page)) {
			named++
			if !tests[name] {
				t.Errorf("%s: there is no test %s", page, name)
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d tests are named: the rule sees nothing", named)
	}
}

var namedTest = regexp.MustCompile("`([a-z]+\\.(?:Test|Fuzz|Example|Benchmark)[A-Z]\\w*)`")

func testsNamed(text string) []string {
	var names []string
	for _, match := range namedTest.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

func TestTestsNamed_Cases(t *testing.T) {
	got := testsNamed("as `jail.TestOne` and `jail.TestTwo`, but not `agenttest.TestAdapter(t)` or TestThree")
	if want := []string{"jail.TestOne", "jail.TestTwo"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Tests are TestThing_Claim: a failure leads a reader to the thing. Those with a number are obligations of a page.
func TestNames_StartWithTheThingUnderTest(t *testing.T) {
	form := regexp.MustCompile(`^Test[A-Z]\w*?_[A-Za-z0-9]`)
	for dir, files := range packages(t) {
		for _, p := range files {
			for _, decl := range p.file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if ok && p.isTest() && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" && !form.MatchString(f.Name.Name) {
					t.Errorf("%s: %s: write TestThing_Claim, such as TestWriteBack_ConflictLeavesHostUntouched", dir, f.Name.Name)
				}
			}
		}
	}
}
