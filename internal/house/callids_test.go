// SPDX-License-Identifier: Apache-2.0

package house

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// callMaps are the maps that are keyed by a call id, alone or with other fields: package, key and what bounds them.
// What is known of a call is in the ledger. Deciders work without an agent too, so that they have a memory of their
// own. Readers follow the stream of events and decide nothing.
var callMaps = map[string]string{
	"agent map[event.CallID]":                   "ledger: the last 4096 calls; reader, merged.open: where the calls without a result are in the stream",
	"agent recent.Map[approvalKey]":             "ledger: the last 4096 approvals",
	"agent recent.Map[event.CallID]":            "ledger: the last 4096 calls that the stream reported; reader, merged.over: the last 4096 with a result",
	"gate map[callKey]":                         "decider, verdicts.open: the decisions that are being made",
	"gate recent.Map[callKey]":                  "decider, verdicts.settled: one verdict for each question, the last 4096",
	"tool recent.Map[event.CallID]":             "decider, usedIDs: ids that clients of a registry have used, the last 4096",
	"agent/claudecode recent.Map[event.CallID]": "reader, normaliser and transcript: the subagents of the last 4096 calls, and the tokens of those that are answered",
	"telemetry map[event.CallID]":               "reader: spans of calls and subagents; the end of a turn ends them",
	"cmd/drover recent.Map[event.CallID]":       "reader, terminal: the last 4096 calls, and denials",
	"drovertest map[event.CallID]":              "test kit: the calls of one test",
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
				if kind, key := mapType(n); isCallID(key) || keys[key] {
					found[fmt.Sprintf("%s %s[%s]", dir, kind, key)] = true
				}
				return true
			})
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

// mapType is the kind of a map and its key, where n is the type of one: of the language, or a generic one whose name
// ends in Map.
func mapType(n ast.Node) (kind, key string) {
	switch n := n.(type) {
	case *ast.MapType:
		return "map", typeName(n.Key)
	case *ast.IndexListExpr:
		if name := typeName(n.X); strings.HasSuffix(name, "Map") {
			return name, typeName(n.Indices[0])
		}
	}
	return "", ""
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
