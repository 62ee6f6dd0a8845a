// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
)

// decodedMessages are messages as the CLI writes them.
func decodedMessages(t *testing.T, lines ...string) []claude.Message {
	t.Helper()
	var messages []claude.Message
	for _, line := range lines {
		m, err := claude.DecodeMessage([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	return messages
}

func TestPrinterLines(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "/work")
	call := func(id, name, input string) string {
		return `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":` + input + `}]}}`
	}
	result := func(id, content, isError string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"` + content + `","is_error":` + isError + `}]}}`
	}
	for _, m := range decodedMessages(t,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"First line.\nSecond."}]}}`,
		call("1", "Read", `{"file_path":"/work/a/b.go"}`), result("1", `x\ny`, "false"),
		call("2", "Read", `{"file_path":"/etc/passwd"}`), result("2", "no", "true"),
		call("3", "Bash", `{"command":"echo `+strings.Repeat("long ", 20)+`"}`), result("3", strings.Repeat("long ", 20), "false"),
		call("4", "mcp__demo__count", `{"dir":"a"}`), result("4", "3 lines", "false"),
		call("5", "StructuredOutput", `{"summary":"s"}`), result("5", "fine", "false"),
	) {
		p.message(m)
	}
	want := `  SS.S  model        First line.
  SS.S  Read         a/b.go                                               2 lines TIME
  SS.S  Read         /etc/passwd                                          failed TIME
  SS.S  Bash         echo long long long long long long long long long l… 1 line TIME
  SS.S  count        {"dir":"a"}                                          3 lines TIME
  SS.S  answer       as Review                                            accepted TIME
`
	if diff := cmp.Diff(want, mask(out.String())); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if p.tools != 5 {
		t.Errorf("counted %d calls, want 5", p.tools)
	}
}

// Columns stand under each other, and no line ends in blanks.
func TestPrinterColumns(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "/work")
	p.line("Read", "shop/cart.go", "23 lines", "61 ms")
	p.line("count_lines", `{"dir":"shop"}`, "43 lines", "1234 ms")
	p.line("model", "words", "", "")
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines[0]) != len(lines[1]) || strings.Index(lines[0], "23 lines") != strings.Index(lines[1], "43 lines") {
		t.Errorf("not aligned:\n%s", &out)
	}
	for _, line := range lines {
		if strings.HasSuffix(line, " ") || len(line) > 100 {
			t.Errorf("%q ends in blanks or is too long", line)
		}
	}
}

func TestReviewOfNoReview(t *testing.T) {
	p := newPrinter(&bytes.Buffer{}, "")
	if err := p.review(nil); err == nil || !strings.Contains(err.Error(), "the answer is no review") {
		t.Errorf("got %v, want an error that says so", err)
	}
}
