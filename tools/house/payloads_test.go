// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"slices"
	"testing"
)

// stateEvents are folders whose payloads change the state of a session. No reader of a run gets them.
var stateEvents = []string{"session", "examples/analyse"}

// Each payload of the events of a run has a String or an Error of its own: fmt prints it as people read it.
func TestPayloads_PrintAsText(t *testing.T) {
	seen := 0
	for dir, files := range packages(t) {
		methods := map[string][]string{}
		for _, p := range files {
			for _, decl := range p.file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && !p.isTest() && f.Recv != nil {
					name := receiverName(f.Recv.List[0].Type)
					methods[name] = append(methods[name], f.Name.Name)
				}
			}
		}
		for name, of := range methods {
			if !ast.IsExported(name) || !slices.Contains(of, "EventKind") || slices.Contains(stateEvents, dir) || dir == "workspace" && slices.Contains([]string{"VirtualFileSystem", "WriteFile", "DeleteFile"}, name) {
				continue
			}
			if seen++; !slices.Contains(of, "String") && !slices.Contains(of, "Error") {
				t.Errorf("%s: the payload %s has no String: fmt prints its fields", dir, name)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d payloads are seen: the rule sees nothing", seen)
	}
}
