// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
)

// Each pair is a recorded request and a later one. What is not new in each run must make a difference.
func TestReplay_WhichRequestsAreEqual(t *testing.T) {
	then := gateway.Folders{Dir: "/home/ann/work", Home: "/home/ann", Temp: "/tmp/x"}
	now := gateway.Folders{Dir: "/srv/b", Home: "/root", Temp: "/var/y"}
	const u1, u2 = "0ef2f4fe-3bd4-4e51-a854-2fe38e8820e0", "901a4f9b-16f9-4e3c-8998-342cc87c1884"
	session := func(id, rest string) string {
		return `{"metadata":{"user_id":"{\"device_id\":\"d` + id + `\",\"session_id\":\"` + id + `\"}"},"text":"` + rest + `"}`
	}
	text := func(s string) string { b, _ := json.Marshal(map[string]string{"text": s}); return string(b) }
	for _, tc := range []struct {
		name, then, now string
		same            bool
	}{
		{"equal", text("a"), text("a"), true},
		{"order and space of JSON", `{"a":1,"b":[2]}`, `{ "b" : [2], "a":1 }`, true},
		{"another text", text("a"), text("b"), false},
		{"another number", `{"a":1}`, `{"a":2}`, false},
		{"large numbers", `{"a":12345678901234567890}`, `{"a":12345678901234567891}`, false},
		{"null is not nothing", `{"a":null}`, `{}`, false},
		{"more messages", `{"m":[1]}`, `{"m":[1,2]}`, false},
		{"the working folder", text("in /home/ann/work."), text("in /srv/b."), true},
		{"below the working folder", text("/home/ann/work/a -I/home/ann/work/b"), text("/srv/b/a -I/srv/b/b"), true},
		{"beside the working folder", text("/home/ann/work2"), text("/srv/b2"), false},
		{"a file like the working folder", text("/home/ann/work.old"), text("/srv/b.old"), false},
		{"the home", text("/home/ann/.claude"), text("/root/.claude"), true},
		{"home for folder", text("/home/ann/work"), text("/root/work"), false},
		{"folder as a name", text("/tmp/x/claude-0/-home-ann-work/1"), text("/var/y/claude-0/-srv-b/1"), true},
		{"session", session(u1, "at "+u1), session(u2, "at "+u2), true},
		{"another id than the session", session(u1, "at "+u1), session(u2, "at "+u1), false},
		{"no session now", session(u1, "hello"), `{"metadata":{},"text":"hello"}`, true},
		{"ids of no session", text(u1), text(u2), false},
		{"agents", text("agentId: a14c764296d48217a (to: 'a14c764296d48217a')"), text("agentId: ad5af232b920a8a54 (to: 'ad5af232b920a8a54')"), true},
		{"agents that are mixed up", text("agentId: aaaaaaaa agentId: bbbbbbbb to aaaaaaaa"), text("agentId: cccccccc agentId: dddddddd to dddddddd"), false},
		{"tasks", text("with ID: bmx0twe1d. /tasks/bmx0twe1d.output"), text("with ID: bglkfcg6l. /tasks/bglkfcg6l.output"), true},
		{"a task's notice", text("<task-id>bmx0twe1d</task-id><duration_ms>286</duration_ms>"), text("<task-id>bglkfcg6l</task-id><duration_ms>319</duration_ms>"), true},
		{"large output", text("saved to: /tool-results/b5lxlsk1t.txt"), text("saved to: /tool-results/bfx97emi3.txt"), true},
		{"the beginning of large output", text(preview("/home/ann/work\n")), text(preview("/srv/b\n")), true},
		{"the beginning of other large output", text(preview("/home/ann/work\n")), text(preview("/srv/c\n")), false},
		{"the date", text("Today's date is 2026-11-16."), text("Today's date is 2027-01-02."), true},
		{"another date", text("due 2026-11-16"), text("due 2027-01-02"), false},
		{"the bill", text("x-anthropic-billing-header: cc_version=2.1.325.f16; cc_entrypoint=sdk-go;"), text("x-anthropic-billing-header: cc_version=2.1.326.0aa; cc_entrypoint=sdk-go;"), true},
		{"the system", text("a\n - OS Version: Linux 6.18\n - b"), text("a\n - OS Version: Linux 6.19\n - b"), true},
		{"after the system", text(" - OS Version: Linux 6.18\n - b"), text(" - OS Version: Linux 6.19\n - c"), false},
		{"results in another order", results("a", "b*"), results("b", "a*"), true},
		{"results of other calls", results("a", "b"), results("a", "c"), false},
		{"text between results", results("a", "", "b"), results("b", "", "a"), false},
		{"one result, not marked", results("a"), results("a*"), false},
		{"secrets that are not recorded", text("key sk-ant-aaaaaaaaaa"), text("key sk-ant-bbbbbbbbbb"), true},
		{"no JSON", "plain", "plain", true},
		{"other text that is no JSON", "plain", "plainer", false},
		{"nothing", "", "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := replayFrom(t, recordingOf(t, numbered(), then, tc.then), gateway.ReplayOptions{Folders: now})
			exchangeWith(t, p, messageRequest(t, tc.now))
			if same := p.Err() == nil; same != tc.same {
				t.Errorf("got same %v, want %v: %v", same, tc.same, p.Err())
			}
		})
	}
}

// preview is what the CLI shows of a large output: so many bytes, whatever they are.
func preview(output string) string {
	output += strings.Repeat("1234567890\n", 300)
	return "<persisted-output>\nOutput too large (3KB).\n\nPreview (first 2KB):\n" + output[:2000] + "\n...\n</persisted-output>"
}

// results is a message with the results of calls; a star marks the end of what is cached, an empty id
// is a text.
func results(ids ...string) string {
	var blocks []map[string]any
	for _, id := range ids {
		id, marked := strings.CutSuffix(id, "*")
		block := map[string]any{"type": "tool_result", "tool_use_id": id, "content": "of " + id}
		if id == "" {
			block = map[string]any{"type": "text", "text": "between"}
		}
		if marked {
			block["cache_control"] = "here"
		}
		blocks = append(blocks, block)
	}
	b, _ := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": blocks}}})
	return string(b)
}

func TestMismatchError_NamesEveryDifference(t *testing.T) {
	long := strings.Repeat("long ", 40)
	recorded := `{"messages":[{"content":[{"text":"` + long + `fix the bug` + long + `"}]},{"id":1}],"model":"m","old/name":true}`
	asked := `{"messages":[{"content":[{"text":"` + long + `fix the bag` + long + `"}]},{"id":"1"},{"new":1}],"model":"m"}`
	p := replayFrom(t, recordingOf(t, numbered(), gateway.Folders{}, `{"model":"other"}`, recorded), gateway.ReplayOptions{})
	exchangeWith(t, p, messageRequest(t, asked))
	got, ok := errors.AsType[*gateway.MismatchError](p.Err())
	if !ok || got.Number != 1 || got.Nearest != 2 {
		t.Fatalf("got %v, want the differences from exchange 2, from which less is different", p.Err())
	}
	wantDifferences := []gateway.Difference{
		{"/messages/0/content/0/text", `"…long long long fix the bug` + strings.Repeat("long ", 14) + `…"`, `"…long long long fix the bag` + strings.Repeat("long ", 14) + `…"`},
		{"/messages/1/id", "1", `"1"`},
		{"/messages/2", "", `{"new":1}`},
		{"/old~1name", "true", ""},
	}
	if diff := cmp.Diff(wantDifferences, got.Differences); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	for _, part := range []string{"request 1 (POST /v1/messages)", "from exchange 2, the nearest", "\n  /messages/1/id: recorded 1 got \"1\"", "\n  /messages/2: not recorded, got {", "\n  /old~1name: recorded true, got nothing", "\n  next: "} {
		if !strings.Contains(advice.Text(got), part) {
			t.Errorf("%q is missing in: %v", part, got)
		}
	}
}

func TestMismatchError_CountsManyDifferences(t *testing.T) {
	var a, b []int
	for i := range 20 {
		a, b = append(a, i), append(b, i+1)
	}
	then, _ := json.Marshal(a)
	now, _ := json.Marshal(b)
	p := replayFrom(t, recordingOf(t, numbered(), gateway.Folders{}, string(then)), gateway.ReplayOptions{})
	exchangeWith(t, p, messageRequest(t, string(now)))
	got, _ := errors.AsType[*gateway.MismatchError](p.Err())
	if len(got.Differences) != 8 || got.More != 12 || !strings.Contains(advice.Text(got), "and 12 more") {
		t.Errorf("got %d and %d more, want 8 and 12", len(got.Differences), got.More)
	}
}
