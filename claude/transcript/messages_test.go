// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/transcript"
)

// link is a chain entry; parent "" is null.
func link(kind, uuid, parent string, more ...string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s%s,"message":{"role":%q,"content":%q}}`,
		kind, uuid, p, strings.Join(more, ""), kind, "text "+uuid) + "\n"
}

func uuids(entries []transcript.Entry) string {
	var list []string
	for _, e := range entries {
		list = append(list, e.UUID)
	}
	return strings.Join(list, " ")
}

func TestMessages_RebuildTheConversation(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"straight", link("user", "a", "") + link("assistant", "b", "a") + link("user", "c", "b"), "a b c"},
		{"lines out of order", link("assistant", "b", "a") + link("user", "a", ""), "a b"},
		{"through attachments and progress", link("user", "a", "") + link("attachment", "x", "a") + link("progress", "y", "x") + link("assistant", "b", "y"), "a b"},
		{"leaf that is no message", link("user", "a", "") + link("assistant", "b", "a") + link("system", "s", "b") + link("attachment", "t", "s"), "a b"},
		{"later branch wins", link("user", "a", "") + link("assistant", "b", "a") + link("assistant", "c", "a"), "a c"},
		{"later root wins", link("user", "a", "") + link("assistant", "b", "a") + link("user", "c", "") + link("assistant", "d", "c"), "c d"},
		{"main goes before a later side chain", link("user", "a", "") + link("assistant", "b", "a") + link("assistant", "c", "a", `,"isSidechain":true`), "a b"},
		{"main goes before a later team or hidden message", link("user", "a", "") + link("assistant", "b", "a") +
			link("user", "c", "a", `,"teamName":"t"`) + link("user", "d", "a", `,"isMeta":true`), "a b"},
		{"hidden messages are passed through", link("user", "a", "") + link("user", "m", "a", `,"isMeta":true`) + link("assistant", "b", "m"), "a b"},
		{"compaction summary stays and the logical parent is not followed", link("user", "a", "") + link("assistant", "b", "a") +
			link("system", "s", "", `,"subtype":"compact_boundary","logicalParentUuid":"b"`) +
			link("user", "c", "s", `,"isCompactSummary":true`) + link("assistant", "d", "c"), "c d"},
		{"missing parent is a root", link("user", "b", "gone") + link("assistant", "c", "b"), "b c"},
		{"a loop with a tail ends", link("user", "a", "b") + link("assistant", "b", "a") + link("assistant", "c", "b"), "a b c"},
		{"a pure loop has no leaf", link("user", "a", "b") + link("assistant", "b", "a"), ""},
		{"unknown types and broken lines", `{"type":"new-kind","uuid":"x","parentUuid":"a"}` + "\n[1]\nnull\n\"s\"\nnot json\n\r\n" +
			strings.TrimSuffix(link("user", "a", ""), "\n") + "\r\n" + `{"type":"user","uu`, "a"},
		{"fields of other types", `{"type":"user","uuid":"a","parentUuid":7,"isMeta":"no","cwd":[]}` + "\n" + link("assistant", "b", "a"), "a b"},
		{"nothing", `{"type":"mode"}` + "\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": tt.text})
			got, err := transcript.Messages(t.Context(), id1, transcript.MessagesOptions{Options: transcript.Options{Dir: dir}})
			if err != nil || uuids(got) != tt.want {
				t.Errorf("Messages = %q, %v, want %q", uuids(got), err, tt.want)
			}
		})
	}
}

func TestMessages_PagesAndSystemMessages(t *testing.T) {
	text := link("user", "a", "") + link("assistant", "b", "a") + link("system", "s", "b") + link("user", "c", "s")
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": text})
	opts := transcript.Options{Dir: dir}
	for _, tt := range []struct {
		name string
		opts transcript.MessagesOptions
		want string
	}{
		{"all", transcript.MessagesOptions{Options: opts}, "a b c"},
		{"with system", transcript.MessagesOptions{Options: opts, System: true}, "a b s c"},
		{"middle", transcript.MessagesOptions{Options: opts, Offset: 1, Limit: 1}, "b"},
		{"beyond", transcript.MessagesOptions{Options: opts, Offset: 9}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := transcript.Messages(t.Context(), id1, tt.opts); err != nil || uuids(got) != tt.want {
				t.Errorf("Messages = %q, %v, want %q", uuids(got), err, tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transcript.Messages(ctx, id1, transcript.MessagesOptions{Options: opts}); !errors.Is(err, context.Canceled) {
		t.Errorf("Messages with an ended context = %v, want Canceled", err)
	}
}

func TestEntries_KeepTheirLines(t *testing.T) {
	line := `{"type":"of-tomorrow","n":12345678901234567890,"deep":{"k":[1,2]},  "sp":"\u00e9"}`
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": line + "\n"})
	got, err := transcript.Entries(t.Context(), id1, transcript.Options{Dir: dir})
	if err != nil || len(got) != 1 || string(got[0].Raw) != line || got[0].Type != "of-tomorrow" {
		t.Errorf("Entries = %+v, %v, want the line byte for byte", got, err)
	}
}

// Real sessions of both ends of the range of CLI versions: one of two turns that was resumed, and
// one with a subagent.
func TestMessages_OfRealSessions(t *testing.T) {
	for version, agent := range map[string]string{"2.1.325": "a7c9b63d277ac1661", "2.1.197": "af99032de37b82972"} {
		t.Run(version, func(t *testing.T) {
			opts := transcript.Options{Dir: filepath.Join("testdata", "real", version), Project: "/work/demo", NoWorktrees: true}
			resumed, delegated := "11111111-2222-4333-8444-555555555555", "21111111-2222-4333-8444-555555555555"
			infos := list(t, transcript.ListOptions{Options: opts})
			if len(infos) != 2 {
				t.Fatalf("List = %+v, want two sessions", infos)
			}
			info, err := transcript.Get(t.Context(), resumed, opts)
			if err != nil || info.Summary != "second question" || info.FirstPrompt != "first question" ||
				info.CWD != "/work/demo" || info.Entrypoint != "sdk-cli" || info.CreatedAt.IsZero() || info.ProjectKey != "-work-demo" {
				t.Errorf("Get = %+v, %v", info, err)
			}
			got, err := transcript.Messages(t.Context(), resumed, transcript.MessagesOptions{Options: opts})
			want := []string{`"first question"`, `reply 1`, `"second question"`, `reply 2`}
			if err != nil || len(got) != len(want) {
				t.Fatalf("Messages = %d messages, %v, want %d", len(got), err, len(want))
			}
			for i, e := range got {
				if !strings.Contains(string(e.Message), want[i]) || e.Version != version {
					t.Errorf("message %d = %s, want %s", i, e.Message, want[i])
				}
			}
			testRealSubagent(t, delegated, agent, opts)
		})
	}
}

func testRealSubagent(t *testing.T, id, agent string, opts transcript.Options) {
	t.Helper()
	agents, err := transcript.Subagents(t.Context(), id, opts)
	if err != nil || len(agents) != 1 {
		t.Fatalf("Subagents = %+v, %v, want one", agents, err)
	}
	if !json.Valid(agents[0].Meta) {
		t.Errorf("Meta = %s, want the sidecar", agents[0].Meta)
	}
	agents[0].Meta = nil
	want := transcript.Subagent{ID: agent, Subpath: "subagents/agent-" + agent, Type: "general-purpose", Description: "child", ToolUseID: "toolu_3", SpawnDepth: 1}
	if diff := cmp.Diff(want, agents[0]); diff != "" {
		t.Errorf("Subagents (-want +got):\n%s", diff)
	}
	got, err := transcript.SubagentMessages(t.Context(), id, agent, transcript.MessagesOptions{Options: opts})
	if err != nil || len(got) != 2 || got[0].ParentToolUseID != "toolu_3" || !strings.Contains(string(got[1].Message), "reply 4") {
		t.Errorf("SubagentMessages = %+v, %v", got, err)
	}
	_, err = transcript.SubagentMessages(t.Context(), id, "../x", transcript.MessagesOptions{Options: opts})
	if !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("SubagentMessages of an unknown one = %v, want ErrNotFound", err)
	}
}

func TestSubagents_Nested(t *testing.T) {
	side := `,"isSidechain":true`
	dir := configDir(t, map[string]string{
		"p/" + id1 + ".jsonl":                                                                userLine(id1, "x"),
		"p/" + id1 + "/subagents/agent-one.jsonl":                                            link("user", "a", "", side) + link("assistant", "b", "a", side) + link("attachment", "c", "b", side),
		"p/" + id1 + "/subagents/agent-one.meta.json":                                        `{"toolUseId":"t1","spawnDepth":"wrong type"}`,
		"p/" + id1 + "/subagents/workflows/run/agent-two.jsonl":                              link("user", "a", "", side),
		"p/" + id1 + "/subagents/workflows/run/agent-two.meta.json":                          `{"toolUseId":"t2","parentAgentId":"one","agentType":"Plan"}`,
		"p/" + id1 + "/subagents/agent-three.jsonl":                                          link("user", "a", "", side),
		"p/" + id1 + "/subagents/agent-three.meta.json":                                      `{broken`,
		"p/" + id1 + "/subagents/notes.jsonl":                                                "x",
		"p/" + id1 + "/tool-results/x.jsonl":                                                 "x",
		"p/" + id1 + "/subagents/workflows/" + strings.Repeat("d/", 12) + "agent-deep.jsonl": "x",
	})
	opts := transcript.Options{Dir: dir}
	agents, err := transcript.Subagents(t.Context(), id1, opts)
	var got []string
	for _, a := range agents {
		got = append(got, a.Subpath+" "+a.ToolUseID)
	}
	want := []string{"subagents/agent-one t1", "subagents/agent-three ", "subagents/workflows/run/agent-two t2"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Subagents, %v (-want +got):\n%s", err, diff)
	}
	one, err := transcript.SubagentMessages(t.Context(), id1, "one", transcript.MessagesOptions{Options: opts})
	if uuids(one) != "a b" || err != nil {
		t.Errorf("SubagentMessages(one) = %q, %v, want a b", uuids(one), err)
	}
	two, err := transcript.SubagentMessages(t.Context(), id1, "two", transcript.MessagesOptions{Options: opts})
	if err != nil || len(two) != 1 || two[0].ParentAgentID != "one" {
		t.Errorf("SubagentMessages(two) = %+v, %v, want parent one", two, err)
	}
}
