// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// oneTurn plays a turn in which the CLI writes the output of speak and then its result, and returns the
// turn's messages without the result and what comes after it.
func oneTurn(t *testing.T, speak func(s *claudetest.ScriptSession)) []claude.Message {
	t.Helper()
	c := connectScripted(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		speak(s)
		s.Result("Done.")
		s.UntilEOF()
	})
	end, messages := turn(t, c, "speak")
	if end.Answer == nil || end.Answer.Result != "Done." || len(messages) < 2 {
		t.Fatalf("end %+v, want the answer Done.", end)
	}
	return messages[:len(messages)-2]
}

// assistantLine is an assistant message of one text block.
func assistantLine(text string) string {
	quoted, _ := json.Marshal(text) // a string always encodes
	return `{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":` + string(quoted) + `}]},"parent_tool_use_id":null,"uuid":"u","session_id":"s"}`
}

// A long line comes in many reads. Cutting the reads as if they were lines loses the white space at
// the seams, and decoding them one by one breaks characters of several bytes.
func TestPitfall13_LongLinesInOddPieces(t *testing.T) {
	text := strings.Repeat("  two  spaces\t\n é ✓ 😀 \u2028 ", 5<<20/34)
	line := assistantLine(text)
	if len(line) < 5<<20 {
		t.Fatalf("the line has only %d bytes", len(line))
	}
	for _, piece := range []int{4093, 65_537, 1 << 20} {
		messages := oneTurn(t, func(s *claudetest.ScriptSession) {
			for rest := line; rest != ""; {
				n := min(piece, len(rest))
				s.Write(rest[:n])
				rest = rest[n:]
			}
			s.Write("\n")
		})
		replies := of[*claude.AssistantMessage](messages)
		if len(replies) != 1 || replies[0].Text() != text || string(replies[0].Raw()) != line {
			t.Errorf("in pieces of %d: %d messages, the text or its JSON differ from what was written", piece, len(replies))
		}
	}
}

// A tool result is twice on its line, so 400,000 characters need more than 800,000 bytes. A low
// cap kills such a run; a cap that is set must give a clear error and leave no process.
func TestPitfall14_LargeToolResults(t *testing.T) {
	const size = 400_000
	large := func(t *testing.T, limit int) (messages []claude.Message, err error) {
		cli := claudetest.CLI(t)
		model := claudetest.NewModel(t, script.Call("mcp__desk__work", script.Input{}), script.Text("Large."))
		opts := cli.Options(model)
		opts.Tools = []string{"Read"}
		opts.AllowedTools = []string{"mcp__desk__work"}
		opts.MaxLineBytes = limit
		opts.MCPServers = toolServers(t, func(context.Context) (string, error) { return strings.Repeat("large ", size/6), nil })
		_, messages, err = collect(claude.Query(t.Context(), "work", opts))
		return messages, err
	}
	t.Run("default limit", func(t *testing.T) {
		messages, err := large(t, 0)
		if err != nil {
			t.Fatal(err)
		}
		longest := 0
		for _, m := range of[*claude.UserMessage](messages) {
			longest = max(longest, len(m.Raw()))
		}
		if longest < 2*size-10 {
			t.Errorf("the longest line has %d bytes, want the result twice", longest)
		}
	})
	t.Run("limit exceeded", func(t *testing.T) {
		_, err := large(t, 300_000)
		var tooLarge *claude.MessageTooLargeError
		if !errors.As(err, &tooLarge) || tooLarge.Limit != 300_000 {
			t.Errorf("error %v, want a MessageTooLargeError with the limit", err)
		}
	})
}

// Some builds of the CLI print plain text on standard output. It must not end the run. The client
// shows a line that starts like an object but is invalid JSON, since a message may be lost with it.
func TestPitfall15_LinesThatAreNotJSON(t *testing.T) {
	messages := oneTurn(t, func(s *claudetest.ScriptSession) {
		for _, line := range []string{"[SandboxDebug] hello", "Warning: odd", "null", "[]", `"text"`, "\x00\xff\xfe", "\t", "}"} {
			s.Line(line)
		}
		s.SendText("one")
		s.Line(`{"type":"assistant","message":`)
		s.Line(`{not json`)
		s.SendText("two")
	})
	var got []string
	for _, m := range messages {
		switch m := m.(type) {
		case *claude.AssistantMessage:
			got = append(got, m.Text())
		case *claude.MalformedLine:
			var protocol *claude.ProtocolError
			if !errors.As(m.Err, &protocol) {
				t.Errorf("error of the malformed line: %v, want a ProtocolError", m.Err)
			}
			got = append(got, "malformed "+string(m.Raw()))
		}
	}
	want := []string{"one", `malformed {"type":"assistant","message":`, "malformed {not json", "two"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// A result whose line was damaged does not come. The turn ends as soon as the CLI reports that it is idle.
func TestTurnEnd_ResultThatCannotBeRead(t *testing.T) {
	for _, line := range []string{`{"type":"result","subtype":"succ`, `":"success","is_error":false}`, "warn: hello", ""} {
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			s.State("running")
			s.SendText("one")
			s.Line(line)
			s.State("idle")
			s.UntilEOF()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, _, err := collect(c.Turn(ctx, claude.Text("speak")))
		cancel()
		var protocol *claude.ProtocolError
		if !errors.As(err, &protocol) || !errors.Is(err, claude.ErrNoAnswer) || protocol.Line != line {
			t.Errorf("%q: %v, want a ProtocolError with the line", line, err)
		}
	}
}

// The last line of a CLI that ends may lack its line feed, and then counts; one that is torn in the
// middle must not hide why the CLI ended.
func TestPitfall16_LastLineWithoutLineFeed(t *testing.T) {
	t.Run("complete", func(t *testing.T) {
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			s.Write(`{"type":"result","subtype":"success","is_error":false,"result":"Last words.","num_turns":1,"uuid":"u","session_id":"s"}`)
		})
		if end, _ := turn(t, c, "speak"); end.Answer == nil || end.Answer.Result != "Last words." {
			t.Errorf("end %+v, want the last words", end)
		}
	})
	t.Run("torn", func(t *testing.T) {
		c := connectScripted(t, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Await("user")
			s.SendText("one")
			s.Stderr("no more memory")
			s.Write(`{"type":"result","subtype":"succ`)
			s.Exit(134)
		})
		_, messages, err := collect(c.Turn(t.Context(), claude.Text("speak")))
		wantDeath(t, "Turn", err, 134, "no more memory")
		if len(messages) != 1 || len(of[*claude.AssistantMessage](messages)) != 1 {
			t.Errorf("messages %v, want the one before the torn line", messages)
		}
	})
}

// Lines may end with CR LF and be blank in between. Two objects on one line are no message: which
// of them was meant cannot be known.
func TestPitfall17_LineEndsAndSeveralObjects(t *testing.T) {
	messages := oneTurn(t, func(s *claudetest.ScriptSession) {
		s.Write("\r\n\n" + assistantLine("one\r") + "\r\n\r\n\n" + assistantLine("two") + "\n")
		s.Line(assistantLine("three") + assistantLine("four"))
	})
	replies := of[*claude.AssistantMessage](messages)
	if len(replies) != 2 || replies[0].Text() != "one\r" || replies[1].Text() != "two" || string(replies[0].Raw()) != assistantLine("one\r") {
		t.Errorf("messages %v, want one and two without line ends", replies)
	}
	if malformed := of[*claude.MalformedLine](messages); len(malformed) != 1 || len(messages) != 3 {
		t.Errorf("%d messages, %d of them malformed lines; want 3 and 1", len(messages), len(malformed))
	}
}

// Every version of the CLI brings new kinds of messages. One that is not known must neither end the
// run nor get lost.
func TestPitfall18_UnknownMessages(t *testing.T) {
	unknown := []string{
		`{"type":"from_the_future","x":[1,2,{"y":null}]}`,
		`{"type":"system","subtype":"from_the_future","x":1}`,
		`{"type":7,"x":1}`,
		`{"x":"no type at all"}`,
		`{"type":null}`,
		`{}`,
	}
	messages := oneTurn(t, func(s *claudetest.ScriptSession) {
		s.Line(`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","from_the_future":true},"uuid":"u","session_id":"s"}`)
		for _, line := range unknown {
			s.Line(line)
		}
	})
	if limits := of[*claude.RateLimitEvent](messages); len(limits) != 1 {
		t.Errorf("%d rate limit events, want 1", len(limits))
	}
	var got []string
	for _, m := range of[*claude.UnknownMessage](messages) {
		got = append(got, string(m.Raw()))
	}
	if diff := cmp.Diff(unknown, got); diff != "" {
		t.Errorf("unknown messages (-want +got):\n%s", diff)
	}
}

// Content is a list of blocks, or a string, or has an unexpected shape. A parser that
// insists on one shape crashes, one that filters loses blocks.
func TestPitfall19_ContentOfUnexpectedShape(t *testing.T) {
	messages := oneTurn(t, func(s *claudetest.ScriptSession) {
		for _, message := range []string{
			`{"content":"plain text"}`, `{"content":null}`, `{"content":7}`, `{"content":{"type":"text","text":"alone"}}`, `"no object"`, `null`, `[]`,
			`{"content":["bare",7,null,{"type":"text","text":"known"},{"type":"hologram","depth":3},{"text":"no type"}]}`,
		} {
			s.Line(`{"type":"assistant","message":` + message + `,"uuid":"u","session_id":"s"}`)
			s.Line(`{"type":"user","message":` + message + `,"uuid":"u","session_id":"s"}`)
		}
	})
	replies, inputs := of[*claude.AssistantMessage](messages), of[*claude.UserMessage](messages)
	if len(replies) != 8 || len(inputs) != 8 {
		t.Fatalf("%d assistant and %d user messages, want 8 of each", len(replies), len(inputs))
	}
	last := replies[7]
	kept := false
	for _, block := range last.Content {
		kept = kept || strings.Contains(string(block.Raw()), `"hologram"`)
	}
	if !strings.Contains(last.Text(), "known") || !kept {
		t.Errorf("text %q, unknown block kept %t; want the known text and true", last.Text(), kept)
	}
}

// Fields that a typed message has no place for, and the order of all of them, are needed by who
// forwards messages. The line is kept as it was written.
func TestPitfall20_EveryMessageKeepsItsLine(t *testing.T) {
	lines := []string{
		`{"type":"system","subtype":"init","cwd":"/","new_field":{"deep":[true]},"uuid":"u","session_id":"s"}`,
		`{"type":"tool_progress","tool_use_id":"t","twice":1,"twice":2,"uuid":"u","session_id":"s","escaped":"\u00e9\/"}`,
		`{"duration_api_ms":3,  "zzz":{"b":1,"a":[ ]},"num_turns":1,"uuid":"u","result":"x","is_error":false,"subtype":"success","type":"result","big":12345678901234567890.10}`,
	}
	c := connectScripted(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		for _, line := range lines {
			s.Line(line)
		}
		s.UntilEOF()
	})
	end, messages := turn(t, c, "speak")
	var got []string
	for _, m := range messages[:len(messages)-1] { // the turn's end is ours
		got = append(got, string(m.Raw()))
	}
	if diff := cmp.Diff(lines, got); diff != "" || end.Answer.Result != "x" {
		t.Errorf("answer %q, lines (-want +got):\n%s", end.Answer.Result, diff)
	}
}

// Bytes that are no UTF-8, which a tool may well print, must not end the run or spoil the messages
// around them.
func TestMessages_MalformedUTF8DoesNotEndTheTurn(t *testing.T) {
	broken := strings.Replace(assistantLine("a?b"), "?", "\xff\xc3\xe2\x82", 1)
	messages := oneTurn(t, func(s *claudetest.ScriptSession) {
		s.SendText("before")
		s.Line(broken)
		s.SendText("after")
	})
	replies := of[*claude.AssistantMessage](messages)
	if len(replies) != 3 || string(replies[1].Raw()) != broken {
		t.Fatalf("%d assistant messages of %d, want 3 with the broken one in the middle", len(replies), len(messages))
	}
	if text := replies[1].Text(); !strings.HasPrefix(text, "a") || !strings.HasSuffix(text, "b") || !utf8.ValidString(text) {
		t.Errorf("text %q, want valid UTF-8 from a to b", text)
	}
}
