// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/drover-agents/drover/claude"
)

// A ScriptSession is the CLI's side of the conversation.
type ScriptSession struct {
	in     *bufio.Reader
	out    io.Writer
	errOut io.Writer
	proc   *scriptProcess // nil in a process of its own
	code   int
	next   int
	held   []Frame // frames read while waiting for another
}

func newScriptSession(in io.Reader, out, errOut io.Writer) *ScriptSession {
	return &ScriptSession{in: bufio.NewReaderSize(in, 64<<10), out: out, errOut: errOut}
}

// A Frame is a line from the host.
type Frame struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
	Message   json.RawMessage `json:"message"`
	UUID      string          `json:"uuid"`
	Raw       string          `json:"-"`
}

// Subtype is the subtype of a control request or response.
func (f Frame) Subtype() string {
	var inner struct {
		Subtype string `json:"subtype"`
	}
	_ = json.Unmarshal(bytes.Join([][]byte{f.Request, f.Response}, nil), &inner)
	return inner.Subtype
}

// Command is the command that the session was started with; it is empty in a process of its own.
func (s *ScriptSession) Command() claude.Command {
	if s.proc == nil {
		return claude.Command{}
	}
	return s.proc.cmd
}

// Read returns the next line of the host, or false when the host has closed the input.
func (s *ScriptSession) Read() (Frame, bool) {
	if len(s.held) > 0 {
		f := s.held[0]
		s.held = s.held[1:]
		return f, true
	}
	return s.read()
}

func (s *ScriptSession) read() (Frame, bool) {
	line, err := s.in.ReadString('\n')
	if err != nil && line == "" {
		return Frame{}, false
	}
	f := Frame{Raw: strings.TrimSuffix(line, "\n")}
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		s.Stderr(fmt.Sprintf("Error parsing streaming input line: %v", err))
		s.Exit(1) // as the real CLI does
	}
	return f, true
}

// Await returns the next line of the given type, keeping others for Read. It exits the CLI when the
// input ends first.
func (s *ScriptSession) Await(typ string) Frame {
	for i, f := range s.held {
		if f.Type == typ {
			s.held = append(s.held[:i:i], s.held[i+1:]...)
			return f
		}
	}
	for {
		f, ok := s.read()
		if !ok {
			s.Exit(0)
		}
		if f.Type == typ {
			return f
		}
		s.held = append(s.held, f)
	}
}

// Initialize answers the handshake; fields is a JSON object that overrides the usual answer, or empty.
func (s *ScriptSession) Initialize(fields string) Frame {
	f := s.Await("control_request")
	answer := map[string]any{
		"commands": []any{}, "agents": []any{}, "models": []any{}, "account": map[string]any{},
		"output_style": "default", "available_output_styles": []string{"default"}, "claude_code_version": claude.PinnedVersion,
		"hooks_applied": true, "hook_on_failure_supported": true, "session_state": "idle",
	}
	if fields != "" {
		if err := json.Unmarshal([]byte(fields), &answer); err != nil {
			panic(fmt.Sprintf("claudetest: Initialize: %v", err))
		}
	}
	s.Answer(f, answer)
	return f
}

// Answer answers a control request of the host.
func (s *ScriptSession) Answer(f Frame, response any) {
	s.JSON(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": f.RequestID, "response": response}})
}

// Refuse answers a control request of the host with an error.
func (s *ScriptSession) Refuse(f Frame, message, code string) {
	s.JSON(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "error", "request_id": f.RequestID, "error": message, "error_code": code}})
}

// Ask sends a control request to the host and returns its id without waiting for the answer.
func (s *ScriptSession) Ask(subtype, fields string) (id string) {
	request := map[string]any{"subtype": subtype}
	if fields != "" {
		if err := json.Unmarshal([]byte(fields), &request); err != nil {
			panic(fmt.Sprintf("claudetest: Ask: %v", err))
		}
	}
	s.next++
	id = fmt.Sprintf("cli-%d", s.next)
	s.JSON(map[string]any{"type": "control_request", "request_id": id, "request": request})
	return id
}

// Reply waits for the host's answer to the request with this id and returns its inner object.
func (s *ScriptSession) Reply(id string) json.RawMessage {
	var skipped []Frame
	defer func() { s.held = append(skipped, s.held...) }()
	for {
		f := s.Await("control_response")
		var inner struct {
			RequestID string `json:"request_id"`
		}
		if json.Unmarshal(f.Response, &inner) == nil && inner.RequestID == id {
			return f.Response
		}
		skipped = append(skipped, f)
	}
}

// JSON writes v as one line.
func (s *ScriptSession) JSON(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("claudetest: %v", err))
	}
	s.Write(string(line) + "\n")
}

// Line writes text and a line feed.
func (s *ScriptSession) Line(text string) { s.Write(text + "\n") }

// Write writes bytes to standard output as they are: half a line, half a character.
func (s *ScriptSession) Write(text string) {
	if _, err := io.WriteString(s.out, text); err != nil {
		s.Exit(1)
	}
}

// Stderr writes a line to standard error.
func (s *ScriptSession) Stderr(text string) { _, _ = io.WriteString(s.errOut, text+"\n") }

// SendText writes an assistant message of one text block.
func (s *ScriptSession) SendText(text string) {
	s.JSON(map[string]any{"type": "assistant", "message": map[string]any{
		"id": "msg_1", "role": "assistant", "model": "scripted",
		"content": []any{map[string]string{"type": "text", "text": text}},
	}, "parent_tool_use_id": nil, "session_id": "s", "uuid": "u"})
}

// State reports the session's state: running, requires_action or idle.
func (s *ScriptSession) State(state string) {
	s.JSON(map[string]any{"type": "system", "subtype": "session_state_changed", "state": state, "sdk_host_only": true, "session_id": "s", "uuid": "u"})
}

// Result writes a successful result.
func (s *ScriptSession) Result(text string) {
	s.JSON(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": text, "num_turns": 1, "duration_ms": 1, "session_id": "s", "uuid": "u"})
}

// Turn plays a whole turn: it waits for a prompt and answers it with text.
func (s *ScriptSession) Turn(text string) Frame {
	f := s.Await("user")
	s.State("running")
	s.SendText(text)
	s.Result(text)
	s.State("idle")
	return f
}

// UntilEOF answers the host's requests with an empty success until the input is closed.
func (s *ScriptSession) UntilEOF() {
	for {
		f, ok := s.Read()
		if !ok {
			return
		}
		if f.Type == "control_request" {
			s.Answer(f, map[string]any{})
		}
	}
}

// IgnoreSignals makes the CLI live through SIGTERM; only a kill ends it then.
func (s *ScriptSession) IgnoreSignals() {
	if s.proc == nil {
		ignoreTermination()
		return
	}
	s.proc.mu.Lock()
	defer s.proc.mu.Unlock()
	s.proc.ignores = true
}

// Hang does nothing until the CLI is ended.
func (s *ScriptSession) Hang() {
	for s.proc == nil {
		time.Sleep(time.Hour) // a program without any event to wait for would count as deadlocked
	}
	<-s.proc.done
	s.Exit(0)
}

// Exit ends the CLI at once with an exit code.
func (s *ScriptSession) Exit(code int) {
	s.code = code
	if s.proc != nil {
		s.proc.exit(claude.ExitStatus{Code: code})
	}
	runtime.Goexit()
}
