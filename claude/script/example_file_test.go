// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/script"
)

const reference = "../../docs/model-scripts.md"

func TestExampleFile_PlaysItsTurns(t *testing.T) {
	s, err := script.Load("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := start(t, s)

	got := parseStream(t, mustPost(t, server, ask("Look at the project.", true)))
	want := []string{
		"thinking: I should see which files there are before I read any. [c2NyaXB0ZWQ=]",
		"text: Let me look at the project.",
		`tool_use toolu_list Bash: {"command":"ls","description":"List files"}`,
		`tool_use toolu_count Bash: {"command":"wc -l README.md","description":"Count lines"}`,
	}
	if diff := cmp.Diff(want, got.blocks); diff != "" {
		t.Errorf("first answer (-want +got):\n%s", diff)
	}
	if resp, body, err := post(t, server, ask("x", true)); err != nil || resp.StatusCode != 529 || resp.Header.Get("Retry-After") != "0" {
		t.Errorf("second answer: got %v %s %v, want 529", resp, body, err)
	}
	if got := parseStream(t, mustPost(t, server, ask("x", true))); got.deltas != 5 || got.usage["cache_read_input_tokens"] != 1000.0 {
		t.Errorf("third answer: got %d deltas, usage %v; want 5 deltas, 1000 tokens read from the cache", got.deltas, got.usage)
	}
	if _, _, err := post(t, server, ask("now drop the line", true)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("dropped answer: got %v, want %v", err, syscall.ECONNRESET)
	}
	mustPost(t, server, ask("anything", false))
	taken := []string{"look around", "overloaded", "report", "drop", "default"}
	if diff := cmp.Diff(taken, turnsTaken(server)); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestReference_ShowsTheExample(t *testing.T) {
	doc, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```yaml\n"+string(example)+"```\n") {
		t.Errorf("%s does not show testdata/example.yaml as it is", reference)
	}
}

// Every other block of YAML in the reference is a script, or a list of turns.
func TestReference_EachBlockIsAScript(t *testing.T) {
	doc, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(doc), "```yaml\n")[1:]
	if len(blocks) < 5 {
		t.Fatalf("got %d blocks of YAML, want more", len(blocks))
	}
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		if !strings.Contains(text, "version:") {
			text = "version: 1\nturns:\n" + text
		}
		if _, err := script.Read(strings.NewReader(text)); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

func TestReference_NamesEveryField(t *testing.T) {
	doc, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	data, err := everything().YAML()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		key, _, ok := strings.Cut(strings.TrimLeft(line, " -"), ":")
		if ok && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") == "" && !strings.Contains(string(doc), "`"+key+"`") {
			t.Errorf("the reference does not explain %q", key)
		}
	}
	m := reflect.TypeFor[script.Match]()
	for i := range m.NumField() {
		key, _, _ := strings.Cut(m.Field(i).Tag.Get("yaml"), ",")
		if key != "-" && !strings.Contains(string(doc), "`"+key+"`") {
			t.Errorf("the reference does not explain the condition %q", key)
		}
	}
}
