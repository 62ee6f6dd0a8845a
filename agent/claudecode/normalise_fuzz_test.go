// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// FuzzLines gives any lines to a normaliser: it never panics, and what it reports is a stream.
func FuzzLines(f *testing.F) {
	files, err := filepath.Glob("testdata/recorded/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		lines := recorded(f, strings.TrimSuffix(filepath.Base(file), ".txtar"))
		f.Add(strings.Join(lines[len(lines)/2:], "\n"), "")
	}
	f.Add(`{"type":"assistant","content":[{"type":"tool_use"},{"type":"tool_result","error":{}},{"type":"thinking","summary":1}]}`, "s")
	f.Add(`{"type":"result","modelUsage":{"m":{"inputTokens":1,"outputTokens":1e400}},"durationMs":1e300,"total_cost_usd":1e308}`, "s")
	f.Add("{\"type\":\"system\",\"subtype\":\"init\",\"tools\":[{}]}\n{\"type\":\"system\"}", "")
	f.Fuzz(func(t *testing.T, text, resume string) {
		n, tick := newNormaliser()
		ids := 0
		n.newID = func() string { ids++; return fmt.Sprintf("made_%d_of_%p", ids, n) }
		n.req.Resume = resume
		var all []event.Event
		end := new(claude.TurnEnd)
		for line := range strings.Lines(text) {
			m, err := claude.DecodeMessage([]byte(line))
			if err != nil {
				m = &claude.MalformedLine{Err: err}
			}
			all = append(all, n.events(m)...)
			if r, ok := m.(*claude.ResultMessage); ok && r.IsAnswer() {
				end.Answer = r
			}
			tick()
		}
		all = append(all, n.done(end)...)
		checkStream(t, all)
		for _, line := range marshalled(t, all) {
			var back event.Event
			if err := json.Unmarshal([]byte(line), &back); err != nil {
				t.Errorf("%s cannot be read again: %v", line, err)
			}
		}
	})
}

// However an answer is cut into lines, and whichever lines come again, the same calls are reported in the
// same order, each once.
func TestNormalise_SplitAndRepeatedLinesChangeNoCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := new(normaliser)
		var want, got, past []string
		feed := func(line string) {
			m, err := claude.DecodeMessage([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range n.events(m) {
				if c, ok := e.Payload.(event.ToolCall); ok {
					got = append(got, string(c.ID))
				}
			}
		}
		lineID := 0
		for answer := range rapid.IntRange(1, 4).Draw(t, "answers") {
			for part := 0; part < rapid.IntRange(1, 4).Draw(t, "lines"); part++ {
				var blocks []string
				for range rapid.IntRange(1, 3).Draw(t, "blocks") {
					id := fmt.Sprintf("call%d", len(want))
					want = append(want, id)
					blocks = append(blocks, call1(id))
				}
				lineID += rapid.IntRange(0, 1).Draw(t, "new uuid")
				line := assistantLine(fmt.Sprint("m", answer), fmt.Sprint("u", lineID), strings.Join(blocks, ","))
				past = append(past, line)
				feed(line)
				for range rapid.IntRange(0, 2).Draw(t, "repeats") {
					feed(rapid.SampledFrom(past).Draw(t, "again"))
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("calls %v, want %v", got, want)
		}
		if n.toolUses != len(want) {
			t.Errorf("%d tool uses, want %d", n.toolUses, len(want))
		}
	})
}
