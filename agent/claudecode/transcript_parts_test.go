// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/internal/lines"
)

func TestTranscript_PartsOfALine(t *testing.T) {
	part := func(kind agent.TranscriptType, detail string) agent.TranscriptPart {
		return agent.TranscriptPart{Type: kind, Detail: json.RawMessage(detail)}
	}
	whole := func(kind agent.TranscriptType) func(string) []agent.TranscriptPart {
		return func(line string) []agent.TranscriptPart { return []agent.TranscriptPart{part(kind, line)} }
	}
	are := func(parts ...agent.TranscriptPart) func(string) []agent.TranscriptPart {
		return func(string) []agent.TranscriptPart { return parts }
	}
	for name, test := range map[string]struct {
		line string
		want func(line string) []agent.TranscriptPart
	}{
		"a prompt":            {`{"type":"user","message":{"content":"go"}}`, are(part(agent.TranscriptUserMessage, `"go"`))},
		"a prompt and a file": {`{"type":"user","message":{"content":[{"type":"text"},{"type":"image"}]}}`, are(part(agent.TranscriptUserMessage, `{"type":"text"}`), part(agent.TranscriptUserMessage, `{"type":"image"}`))},
		"two results":         {`{"type":"user","message":{"content":[{"type":"tool_result","a": 1},{"type":"tool_result"}]}}`, are(part(agent.TranscriptToolResult, `{"type":"tool_result","a": 1}`), part(agent.TranscriptToolResult, `{"type":"tool_result"}`))},
		"an answer": {
			`{"type":"assistant","message":{"id":"m","content":[{"type":"thinking"},{"type":"redacted_thinking"},{"type":"text"},{"type":"tool_use"},{"type":"server_tool_use"},{"type":"web_search_tool_result"},7],"usage":{"x":1}}}`,
			are(part(agent.TranscriptThinking, `{"type":"thinking"}`), part(agent.TranscriptThinking, `{"type":"redacted_thinking"}`),
				part(agent.TranscriptAssistantMessage, `{"type":"text"}`), part(agent.TranscriptToolUse, `{"type":"tool_use"}`),
				part(agent.TranscriptToolUse, `{"type":"server_tool_use"}`), part(agent.TranscriptToolResult, `{"type":"web_search_tool_result"}`),
				part(agent.TranscriptAssistantMessage, `7`), part(agent.TranscriptTokenUsage, `{"x":1}`)),
		},
		"an empty answer":           {`{"type":"assistant","message":{"content":[]}}`, are(part(agent.TranscriptAssistantMessage, `[]`))},
		"an answer without message": {`{"type":"assistant"}`, whole(agent.TranscriptAssistantMessage)},
		"an error of the API":       {`{"type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text"}]}}`, whole(agent.TranscriptError)},
		"an error of the stream":    {`{"type":"assistant","error":"rate_limit","message":{"content":[{"type":"text"}]}}`, whole(agent.TranscriptError)},
		"a retry":                   {`{"type":"system","subtype":"api_retry"}`, whole(agent.TranscriptError)},
		"a failed result":           {`{"type":"result","subtype":"error_max_turns","is_error":true}`, whole(agent.TranscriptError)},
		"a result":                  {`{"type":"result","subtype":"success","is_error":false}`, whole(agent.TranscriptSystemEvent)},
		"an init":                   {`{"type":"system","subtype":"init"}`, whole(agent.TranscriptSystemEvent)},
		"a limit":                   {`{"type":"rate_limit_event"}`, whole(agent.TranscriptSystemEvent)},
		"something new":             {`{"type":"brand-new","x":1}`, whole(agent.TranscriptUnknown)},
		"a name in other letters":   {`{"Type":"user","x":1}`, whole(agent.TranscriptUnknown)},
		"no object":                 {`[1]`, whole(agent.TranscriptUnknown)},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newTestRecorder(true)
			if diff := cmp.Diff(test.want(test.line), r.parts(r.parse([]byte(test.line)))); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// The lines of one model call all have its tokens.
func TestTranscript_TokensOfAModelCallAreReportedOnce(t *testing.T) {
	r, reported := newTestRecorder(false)
	for _, id := range []string{"m1", "m1", "m2"} {
		feed(r, `{"type":"assistant","uuid":"`+fmt.Sprint(len(*reported))+`","message":{"id":"`+id+`","content":[{"type":"text"}],"usage":{"input_tokens":1}}}`)
	}
	count := 0
	for _, l := range *reported {
		for _, p := range l.Parts {
			if p.Type == agent.TranscriptTokenUsage {
				count++
			}
		}
	}
	if count != 2 {
		t.Errorf("the tokens were reported %d times, want once for each of 2 calls", count)
	}
}

// FuzzRecorder_KeepsLinesUnchanged sends any bytes through the recorder, cut anywhere, in lines as the client reads
// them.
func FuzzRecorder_KeepsLinesUnchanged(f *testing.F) {
	f.Add([]byte(`{"type":"user","uuid":"u","message":{"content":[{"type":"tool_result","content":"a`+"\u2028"+`b"},{"type":"text"}]}}`), uint16(3))
	f.Add([]byte(`{"type":"assistant","message":{"content":[{"type":"thinking"},{"type":"tool_use","input":{"x":"\ud800"}}],"usage":{}}}`), uint16(40))
	f.Add([]byte("{\"type\":\"system\",\"bad\":\"\xff\xfe\"}"), uint16(9))
	f.Add([]byte("{\"a\":1,\n \"b\":2}"), uint16(0))
	f.Add([]byte(`{"type":"transcript_mirror","filePath":"x","entries":[{"type":"user"},7,"x"]}`), uint16(5))
	f.Fuzz(func(t *testing.T, line []byte, cut uint16) {
		r, reported := newTestRecorder(false)
		at := min(int(cut), len(line))
		reader := lines.NewReader(io.MultiReader(bytes.NewReader(line[:at]), bytes.NewReader(line[at:]), strings.NewReader("\n")), 0)
		for {
			next, err := reader.Next()
			if err != nil {
				break
			}
			if bytes.HasPrefix(next, []byte("{")) {
				feed(r, string(next))
			}
		}
		if json.Valid(line) && !bytes.ContainsAny(line, "\n\r") && bytes.HasPrefix(line, []byte("{")) {
			kind := objectOf(line).text("type")
			if kind != "stream_event" && kind != "transcript_mirror" && kind+"/"+objectOf(line).text("subtype") != "system/thinking_tokens" {
				if len(*reported) != 1 || !bytes.Equal((*reported)[0].Raw, line) {
					t.Fatalf("reported were %q, want %q as it is", *reported, line)
				}
			}
		}
		for _, l := range *reported {
			if len(l.Parts) == 0 || !json.Valid(l.Raw) {
				t.Fatalf("a line has %d parts and is %q", len(l.Parts), l.Raw)
			}
			for _, p := range l.Parts {
				if p.Type == "" || !json.Valid(p.Detail) || !bytes.Contains(l.Raw, p.Detail) {
					t.Fatalf("the part %q is not one of %q", p.Detail, l.Raw)
				}
			}
		}
	})
}
