// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
)

// ofClaude are the packages that may know Claude Code: its wire client, its adapter, their test kits, and what only
// shows or tests.
var ofClaude = []string{"claude", "agent/claudecode", "examples", "bench", "internal", "tools", "drovertest"}

// cliFields are fields of inputs of tools that only the CLI uses.
var cliFields = []string{"file_path", "notebook_path", "subagent_type", "old_string", "new_string", "replace_all", "run_in_background", "taskId", "claudecode/toolUseId"}

// cliFlags are flags of the CLI that are not also ours.
var cliFlags = regexp.MustCompile(`^--(allowed-?[tT]ools|disallowed-?[tT]ools|permission-(mode|prompt-tool)|mcp-config|append-system-prompt|setting-sources|add-dir|output-format|input-format|strict-mcp-config|dangerously-skip-permissions|fork-session|include-partial-messages)\b`)

var cliVariables = regexp.MustCompile(`\b(CLAUDE|ANTHROPIC)_[A-Z]`)

// knows says what a literal knows of Claude Code, or nothing. The command may name tools and variables that users set.
func knows(pkg, text string) string {
	_, native := catalogue.Tools().Native(text)
	isCommand := strings.HasPrefix(pkg, "cmd/")
	for _, field := range cliFields {
		if text == field || strings.Contains(text, `json:"`+field+`"`) || strings.Contains(text, `json:"`+field+`,`) {
			return "a field of the CLI's tools"
		}
	}
	switch {
	case native && !isCommand:
		return "the name of a tool of the CLI"
	case cliFlags.MatchString(text):
		return "a flag of the CLI"
	case cliVariables.MatchString(text) && !isCommand:
		return "a variable of the CLI"
	}
	return ""
}

// TestLiterals_CoreKnowsNoWordOfClaudeCode finds what the core knows of Claude Code by its words.
func TestLiterals_CoreKnowsNoWordOfClaudeCode(t *testing.T) {
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") || mayKnow(pkg) {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			if what := knows(pkg, text); what != "" {
				t.Errorf("%s:%d: %s is %s", rel, files.Position(literal.Pos()).Line, literal.Value, what)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// messagesWords are paths, fields, events, headers and errors of the Messages API and of Bedrock's form of it.
var messagesWords = regexp.MustCompile(`(?i)/v1/|/api/|/model/|inference-profiles|message_(start|delta|stop)|content_block|partial_json|stop_reason|` +
	`tool_(use|result)|mcp_servers|user_id|(input|output|max)_tokens|cache_c|ephemeral|anthropic["._-]|claude|should-retry|amzn|amazon|:exception-type|` +
	`[a-z]_error\b|request_too_large|service_tier|web_search`)

// TestLiterals_GatewayKnowsNoWire finds what package gateway knows of the Messages API outside of the files of its two
// wires.
func TestLiterals_GatewayKnowsNoWire(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "gateway", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files, wires := token.NewFileSet(), 0
	for _, path := range paths {
		name := filepath.Base(path)
		isWire := strings.HasPrefix(name, "wire_messages") || strings.HasPrefix(name, "wire_bedrock")
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !messagesWords.MatchString(literal.Value) {
				return true
			}
			if isWire {
				wires++
			} else if !strings.Contains(literal.Value, "github.com/") { // imports, and what to import
				t.Errorf("gateway/%s:%d: %s belongs into the file of a wire", name, files.Position(literal.Pos()).Line, literal.Value)
			}
			return true
		})
	}
	if wires == 0 {
		t.Error("the files of the wires have no such words: they have moved")
	}
}

func mayKnow(pkg string) bool {
	for _, known := range ofClaude {
		if pkg == known || strings.HasPrefix(pkg, known+"/") {
			return true
		}
	}
	return false
}
