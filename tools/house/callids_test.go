// SPDX-License-Identifier: Apache-2.0

package house

import (
	"cmp"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// callMaps are the maps that have a call id in their key, with what bounds them: fields by their struct, others by the
// function or variable that has them. What is known of a call is in the ledger. Deciders work without an agent too, so
// that they have a memory of their own. Readers follow the stream of events and decide nothing.
var callMaps = map[string]string{
	"agent Ledger.calls":                         "ledger: the last 4096 calls",
	"agent Ledger.approvals":                     "ledger: the last 4096",
	"agent Ledger.read":                          "ledger: the last 4096 ids of the stream",
	"agent merged.open":                          "reader: where calls without a result are in the stream",
	"agent merged.over":                          "reader: the last 4096 with a result",
	"gate verdicts.open":                         "decider: the decisions that are being made",
	"gate verdicts.settled":                      "decider: one verdict for each question, the last 4096",
	"tool usedIDs.used":                          "decider: ids that clients of a registry have used, the last 4096",
	"agent/claudecode normaliser.agents":         "reader: the subagents of the last 4096 calls",
	"agent/claudecode normaliser.begunInput":     "reader: the tokens of the last 4096 answers under way",
	"agent/claudecode transcriptRecorder.agents": "reader: the subagents of the last 4096 calls",
	"telemetry Run.calls":                        "reader: the spans of one turn",
	"telemetry Run.agents":                       "reader: the spans of one turn",
	"terminal lines.calls":                       "reader: the last 4096",
	"cmd/drover denials.at":                      "reader: the last 4096",
	"fleet callsByID":                            "reader: the calls of the log of one run",
	"record Collector.last":                      "reader: the calls of the log of one run",
	"record recordedLog.open":                    "reader: the calls of one recording that have no result yet",
	"record/index end":                           "reader: the calls of the log of one run",
	"drovertest testTools":                       "test kit: the calls of one test",
}

// callIDFields are names of fields that hold a call id.
var callIDFields = []string{"CallID", "ToolUseID", "ParentToolUseID"}

func TestCallIDs_OneTypeAndOneMemory(t *testing.T) {
	found := map[string]bool{}
	for dir, files := range packages(t) {
		if isOfAgent(dir) && dir != "agent/claudecode" || strings.HasPrefix(dir, "bench") || strings.HasPrefix(dir, "examples") {
			continue // wire clients hold what was on the wire
		}
		keys := structsWithCallID(files)
		for _, f := range files {
			if f.isTest() {
				continue
			}
			ast.Inspect(f.file, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok && typeName(field.Type) == "string" {
					for _, name := range field.Names {
						if slices.Contains(callIDFields, name.Name) {
							t.Errorf("%s: %s holds a call id as a string; its type is event.CallID", f.name, name.Name)
						}
					}
				}
				return true
			})
			for _, at := range mapsIn(f.file, func(key string) bool { return isCallID(key) || keys[key] }) {
				found[dir+" "+at] = true
			}
		}
	}
	for at := range found {
		if callMaps[at] == "" {
			t.Errorf("%s is a memory of calls beside the ledger: keep what it knows in agent.Record, or list a reader with its bound", at)
		}
	}
	for at := range callMaps {
		if !found[at] {
			t.Errorf("%s is listed and does not exist", at)
		}
	}
}

func isCallID(name string) bool { return name == "event.CallID" || name == "CallID" }

// structsWithCallID are the struct types of a package that have a call id as a field.
func structsWithCallID(files []parsed) map[string]bool {
	found := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return isCallID(typeName(f.Type)) }) {
				found[spec.Name.Name] = true
			}
			return true
		})
	}
	return found
}

// mapsIn are the maps of a file whose key is of a kind: "Struct.field" for fields, the name of the declaration for
// others. The value that a field gets is not counted again.
func mapsIn(file *ast.File, is func(key string) bool) (found []string) {
	for _, decl := range file.Decls {
		name := "variables"
		if f, ok := decl.(*ast.FuncDecl); ok {
			name = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				name = n.Name.Name
			case *ast.Field:
				if is(mapKey(n.Type)) {
					for _, field := range n.Names {
						found = append(found, name+"."+field.Name)
					}
					return false
				}
			case *ast.KeyValueExpr:
				return !isLiteral(n.Value, is)
			case *ast.AssignStmt:
				_, field := n.Lhs[0].(*ast.SelectorExpr)
				return !field || !isLiteral(n.Rhs[0], is)
			case ast.Expr:
				if is(mapKey(n)) {
					found = append(found, name)
				}
			}
			return true
		})
	}
	return found
}

func isLiteral(e ast.Expr, is func(key string) bool) bool {
	lit, ok := e.(*ast.CompositeLit)
	return ok && is(mapKey(lit.Type))
}

// mapKey is the key of a map, of the language or a generic one whose name ends in Map, or "".
func mapKey(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.MapType:
		return typeName(e.Key)
	case *ast.IndexListExpr:
		if strings.HasSuffix(typeName(e.X), "Map") {
			return typeName(e.Indices[0])
		}
	}
	return ""
}

// typeName is the name of a type as it is written, or "" for one without.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return cmp.Or(typeName(e.X), "?") + "." + e.Sel.Name
	}
	return ""
}
