// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/script"
)

// everything uses each field of the format once.
func everything() script.Script {
	overloaded := &script.APIError{Status: 529, Type: "overloaded_error", Message: "busy: \"really\""}
	all := script.Match{
		LastUserText: "a", SystemText: "b", Text: "c # d", Model: "e*", ToolOffered: "f", AfterTool: "g", HasToolResult: "h",
		Subagent: new(false), Stream: new(true), Headers: map[string]string{"x-one": "1"},
		All: []script.Match{{Text: "i"}}, Any: []script.Match{{Text: "j"}, {Text: "k"}}, Not: &script.Match{Text: "l"},
	}
	return script.Script{
		Strict: true, StrictRoles: true, CountTokens: 7, IDPrefix: "p_", KeepRequests: 3,
		Turns: []script.Turn{
			{
				Name: "one", Match: all, Repeat: 3, StopReason: "pause_turn", StopSequence: "s", Model: "m",
				Usage: script.Usage{Input: 1, Output: 2, CacheRead: 3, CacheCreation: 4}, Headers: map[string]string{"x-two": "2"},
				Delay: 1500 * time.Millisecond, DeltaDelay: time.Microsecond, ChunkSize: 5,
				Content: []script.Block{
					script.ThinkingBlock{Thinking: "multi\nline\n", Signature: "sig"},
					script.RedactedThinkingBlock{Data: "d"},
					script.TextBlock{Text: ""},
					script.TextBlock{Text: "- not: a list\n\ttabbed  \n"},
					script.ToolCall{ID: "t", Name: "Bash", Input: json.RawMessage(`{"a":[1,2.5,true,null,"x: y"],"b":{"c":"<&>"},"n":9007199254740993}`)},
					script.ToolCall{Name: "Read", RawInput: `{"broken`},
					script.ToolCall{Name: "Bare"},
				},
				Fault: &script.Fault{Kind: script.FaultErrorEvent, After: script.Nothing, Error: overloaded},
			},
			script.Text("plain").Always(),
			{Error: overloaded, Headers: map[string]string{"retry-after": "0"}},
			{Fault: &script.Fault{Kind: script.FaultTruncate, After: script.Nothing}},
			script.Hang(), script.Text("yes"), script.Text("123"), script.Text("null"), script.Text("é€😀\u2028"),
		},
		Default: new(script.Text("rest")),
	}
}

func TestScript_YAMLRoundTrip(t *testing.T) {
	example, err := script.Load("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]script.Script{"everything": everything(), "example": example} {
		t.Run(name, func(t *testing.T) {
			data, err := s.YAML()
			if err != nil {
				t.Fatal(err)
			}
			got, err := script.Read(strings.NewReader(string(data)))
			if err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			if diff := cmp.Diff(s, got); diff != "" {
				t.Errorf("read back (-want +got):\n%s\n%s", diff, data)
			}
		})
	}
}

func TestScript_FunctionsAreNotData(t *testing.T) {
	for name, turn := range map[string]script.Turn{
		"func":      script.Func(func(*script.Request) script.Turn { return script.Turn{} }),
		"condition": script.Text("x").When(script.Not(script.Match{Any: []script.Match{{Func: func(*script.Request) bool { return true }}}})),
	} {
		if _, err := script.New(turn).YAML(); !errors.Is(err, script.ErrNotData) {
			t.Errorf("%s: got %v, want %v", name, err, script.ErrNotData)
		}
	}
}

func TestLoad_Errors(t *testing.T) {
	const head = "version: 1\nturns:\n"
	tests := []struct {
		name, text string
		want       string
	}{
		{"unknown field", head + "  - text: hi\n    colour: red\n", `script:4:5: unknown field "colour"`},
		{"unknown nested field", head + "  - text: hi\n    fault: {kind: reset, whne: 3}\n", `script:4:26: unknown field "whne"`},
		{"unknown condition", head + "  - text: hi\n    when:\n      last_text: x\n", `script:5:7: unknown field "last_text"`},
		{"unknown block field", head + "  - content:\n      - tol: Bash\n", `script:4:9: unknown field "tol"`},
		{"wrong type", head + "  - text: hi\n    chunk: many\n", "script:4:12: "},
		{"duplicate key", head + "  - text: hi\n    text: ho\n", "script:4:5: "},
		{"syntax", head + "  - text: [\n", "script:3:"},
		{"empty", " \n", "the file is empty"},
		{"no version", "turns: []\n", "script:1:1: version: it is missing; write version: 1"},
		{"other version", "turns: []\nversion: 2\n", "script:2:10: version: version 2 is not known; this program reads version 1"},
		{"bad fault", head + "  - text: hi\n    fault:\n      kind: explode\n", `script:5:7: turns[0].fault: unknown kind of fault "explode"`},
		{"bad status", head + "  - text: hi\n  - error: {status: 99}\n", "script:4:21: turns[1].error.status: status 99"},
		{"bad delay", head + "  - text: hi\n    delay: soon\n", `script:4:12: turns[0].delay: "soon" is not a duration`},
		{"two answers", head + "  - text: hi\n    structured: {a: 1}\n", "script:3:5: turns[0]: give one of"},
		{"no answer", head + "  - name: x\n", "script:3:5: turns[0]: the turn is empty"},
		{"two kinds of block", head + "  - content:\n      - {text: a, tool: b}\n", "turns[0].content[0]: a block has exactly one of"},
		{"input of text", head + "  - content:\n      - {text: a, input: {}}\n", "only a tool block has"},
		{"signature of text", head + "  - content:\n      - {text: a, signature: x}\n", "only a thinking block has"},
		{"list as input", head + "  - content:\n      - {tool: a, input: [1]}\n", "is not an object"},
		{"not JSON", head + "  - structured: {a: .nan}\n", "cannot be written as JSON"},
		{"empty condition", head + "  - text: a\n    when: {}\n", "the condition is empty"},
		{"zero repeat", head + "  - text: a\n    repeat: 0\n", "script:4:13: turns[0].repeat: 0 is not"},
		{"repeat and always", head + "  - text: a\n    repeat: 2\n    always: true\n", "give either repeat or always"},
		{"condition on default", "version: 1\nturns: []\ndefault:\n  text: x\n  when: {text: y}\n", "script:5:10: default.when"},
		{"alias", head + "  - &a {text: hi}\n  - *a\n", "anchors and aliases are not supported"},
		{"two documents", head + "  - text: a\n---\nversion: 1\n", "a script is one document"},
		{"not a mapping", "- a\n", "script:1:"},
		{"deep", head + "  - structured: " + strings.Repeat("[", 5000), "brackets or list markers are open at once"},
		{"deep list", head + strings.Repeat("- ", 5000), "brackets or list markers are open at once"},
		{"large", "# " + strings.Repeat("x", 5<<20), "larger than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := script.Read(strings.NewReader(tt.text))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(advice.Text(err), tt.want) {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			var fe *script.FileError
			if !errors.As(err, &fe) {
				t.Errorf("got %T, want a *FileError", err)
			}
		})
	}
}

func TestLoad_ReportsAllProblems(t *testing.T) {
	_, err := script.Read(strings.NewReader("version: 1\nturns:\n  - {text: a, delay: x}\n  - {error: {status: 1}}\n"))
	if got := strings.Count(advice.Text(err), "\n") + 1; got != 2 {
		t.Errorf("got %d problems, want 2: %v", got, err)
	}
}

func TestLoad_ReportedProblemsAreBounded(t *testing.T) {
	_, err := script.Read(strings.NewReader("version: 1\nturns:\n" + strings.Repeat("  - chunk: -1\n", 150)))
	if lines := strings.Count(advice.Text(err), "script:"); lines != 101 || !strings.HasSuffix(advice.Text(err), " more problems") {
		t.Errorf("%d lines, want 101 and the number of the others: %v", lines, err)
	}
}

func TestLoad_ErrorNamesTheFile(t *testing.T) {
	path := t.TempDir() + "/bad.yaml"
	if err := os.WriteFile(path, []byte("version: 1\nturn: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := script.Load(path)
	if want := path + `:2:1: unknown field "turn"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := script.Load(path + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
}

func FuzzRead(f *testing.F) {
	example, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	all, err := everything().YAML()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add(string(all))
	f.Add("version: 1\nturns:\n  - text: [\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := script.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		data, err := s.YAML()
		if err != nil {
			t.Fatalf("a script that was read cannot be written: %v", err)
		}
		again, err := script.Read(strings.NewReader(string(data)))
		if err != nil {
			t.Fatalf("a script that was written cannot be read: %v\n%s", err, data)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatalf("read back (-want +got):\n%s\n%s", diff, data)
		}
	})
}
