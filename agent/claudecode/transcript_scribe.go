// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/maphash"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/internal/recent"
)

// A scribe tells every line of the conversations of one CLI once, those of each source in order.
//
// Most lines come twice. What the CLI says at once lacks something of what it writes into its files, such as
// the tokens that were used in the end; and each of the two has lines that the other lacks. So a message that
// was said is held until its copy from the file comes, in whose place it is told, with what was said behind
// it. At the end of a turn all copies have come; what is held then is told as it was said.
type scribe struct {
	tell     func(agent.TranscriptLine)
	now      func() time.Time
	files    *transcriptFiles
	mirrored bool // copies of the files will come

	mu       sync.Mutex
	sources  map[string]*sourceLines
	agents   recent.Map[string, string] // the subagent that a call runs, by tool use id
	sessions map[string]bool            // those that were heard of: one for each time that the conversation begins anew
	session  string                     // the last of them
	said     recent.Map[string, bool]   // ids of lines that were told as they were said
	filed    recent.Map[string, bool]   // ids of lines that were told as a file has them
	copied   recent.Map[uint64, int]    // digests of lines that were told as a file has them, and how often
	counted  recent.Map[string, bool]   // ids of the model calls whose usage was told
	over     bool                       // the CLI has ended: nothing is worth waiting for
}

// scribedLines is how many lines of a conversation a scribe remembers. If it is longer, the end may tell lines again
// that came before them; they have their ids.
const scribedLines = 1 << 16

// sourceLines are the lines of one source that wait.
type sourceLines struct {
	held []heldLine
	late []heldLine // the file went on without them
}

type heldLine struct {
	agent.TranscriptLine
	copied bool // a file has it too
}

func newScribe(tell func(agent.TranscriptLine)) *scribe {
	s := &scribe{tell: tell, now: time.Now, sources: map[string]*sourceLines{}, sessions: map[string]bool{}}
	s.agents.Size, s.counted.Size = rememberedAgents, scribedLines
	s.said.Size, s.filed.Size, s.copied.Size = scribedLines, scribedLines, scribedLines
	return s
}

// prompted takes a line that the CLI is told.
func (s *scribe) prompted(raw []byte) {
	if !bytes.Contains(raw, []byte(`"user"`)) {
		return // a cheap look first: most lines are answers to questions of the CLI
	}
	if l := parseTranscriptLine(bytes.Clone(raw)); l.kind == "user" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hold(l)
	}
}

// passing are lines that are no part of the conversation, or pieces of what comes whole later.
var passing = map[string]bool{
	"control_request": true, "control_response": true, "control_cancel_request": true, "keep_alive": true,
	"stream_event": true, "system/thinking_tokens": true,
}

// hear takes a line that the CLI says.
func (s *scribe) hear(raw []byte) {
	if len(raw) == 0 || raw[0] != '{' || bytes.HasPrefix(raw, []byte(`{"type":"stream_event"`)) {
		return
	}
	l := parseTranscriptLine(bytes.Clone(raw))
	if passing[l.kind] || passing[l.kind+"/"+l.subtype] {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.kind == "transcript_mirror" {
		s.mirror(l)
		return
	}
	s.heardOf(l.session)
	if l.kind == "system" && l.subtype == "task_started" {
		s.agents.Put(l.text("tool_use_id"), l.text("task_id"))
	}
	if l.kind == "result" {
		s.release(agent.MainSource) // the copies of a turn come before its result
	}
	s.hold(l)
}

// mirror takes the copies of lines of a file.
func (s *scribe) mirror(l transcriptLine) {
	source, session := sourceOfFile(l.text("filePath"))
	var entries []json.RawMessage
	_ = json.Unmarshal(l.fields["entries"], &entries) // what is no list has none
	for _, raw := range entries {
		d := digest(raw)
		times, _ := s.copied.Get(d)
		s.copied.Put(d, times+1)
		s.file(source, session, parseTranscriptLine(raw))
	}
}

func (s *scribe) heardOf(session string) {
	if session != "" {
		s.sessions[session], s.session = true, session
	}
}

// sourceOfFile is whose conversation a file has, and of which session.
func sourceOfFile(name string) (source, session string) {
	name = strings.TrimSuffix(strings.ReplaceAll(name, `\`, "/"), ".jsonl")
	above, below, nested := strings.Cut(name, "/subagents/")
	if !nested {
		return agent.MainSource, path.Base(name)
	}
	return agent.SubagentSource + strings.TrimPrefix(path.Base(below), "agent-"), path.Base(above)
}

// file tells a line that a file has, in the place that it has there.
func (s *scribe) file(source, session string, l transcriptLine) {
	s.heardOf(session)
	if said, _ := s.said.Get(l.id); said {
		return
	}
	lines := s.lines(source)
	at := lines.indexOf(l.id)
	for i := range at { // the file has gone on without them
		if before := lines.held[i]; before.copied {
			lines.late = append(lines.late, before)
		} else {
			s.tellSaid(before)
		}
	}
	s.tellLine(source, session, l)
	if l.id != "" {
		s.filed.Put(l.id, true)
	}
	if at >= 0 {
		lines.held = lines.held[at+1:]
	}
	s.follow(source)
}

// follow tells what was said behind a line that was told, up to the next one whose copy will come.
func (s *scribe) follow(source string) {
	lines := s.lines(source)
	for len(lines.held) > 0 {
		if filed, _ := s.filed.Get(lines.held[0].ID); lines.held[0].copied && !filed {
			return
		}
		s.tellSaid(lines.held[0])
		lines.held = lines.held[1:]
	}
	if len(lines.late) == 0 {
		delete(s.sources, source)
	}
}

// hold takes a line that was said. It is told at once if there is nothing to wait for.
func (s *scribe) hold(l transcriptLine) {
	source := agent.MainSource
	if call := l.text("parent_tool_use_id"); call != "" {
		runs, _ := s.agents.Get(call)
		source = agent.SubagentSource + cmp.Or(l.text("agent_id"), runs, call)
	}
	isCopied := s.mirrored && !s.over && l.id != "" && (l.kind == "user" || l.kind == "assistant")
	lines := s.lines(source)
	lines.held = append(lines.held, heldLine{s.lineOf(source, "", l), isCopied})
	s.follow(source)
}

// release tells everything of a source that waits.
func (s *scribe) release(source string) {
	lines := s.lines(source)
	waiting := append(lines.late, lines.held...)
	delete(s.sources, source)
	for _, l := range waiting {
		s.tellSaid(l)
	}
}

// tellSaid tells a line as it was said, unless it was told before.
func (s *scribe) tellSaid(l heldLine) {
	if l.ID != "" {
		said, _ := s.said.Get(l.ID)
		if filed, _ := s.filed.Get(l.ID); said || filed {
			return
		}
		s.said.Put(l.ID, true)
	}
	s.pass(l.TranscriptLine)
}

func (s *scribe) tellLine(source, session string, l transcriptLine) {
	s.pass(s.lineOf(source, session, l))
}

// pass tells a line. Its parts are found here, so that they are of the lines that are told.
func (s *scribe) pass(line agent.TranscriptLine) {
	line.Parts = s.parts(line.Raw)
	line.SessionID = cmp.Or(line.SessionID, s.session)
	s.tell(line)
}

func (s *scribe) lineOf(source, session string, l transcriptLine) agent.TranscriptLine {
	at := l.time
	if at.IsZero() {
		at = s.now()
	}
	return agent.TranscriptLine{Source: source, SessionID: cmp.Or(l.session, session), ID: l.id, Time: at, Raw: l.raw}
}

func (s *scribe) lines(source string) *sourceLines {
	if s.sources[source] == nil {
		s.sources[source] = &sourceLines{}
	}
	return s.sources[source]
}

// indexOf is where a line is held, or -1.
func (l *sourceLines) indexOf(id string) int {
	for i := range l.held {
		if id != "" && l.held[i].ID == id {
			return i
		}
	}
	return -1
}

// end reads the files that the CLI has left, and tells what still waits.
func (s *scribe) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	defer s.files.close()
	s.files.read(s.sessions, func(name string, raw []byte) {
		d := digest(raw)
		if times, _ := s.copied.Get(d); times > 0 {
			s.copied.Put(d, times-1)
			return
		}
		source, session := sourceOfFile(name)
		s.file(source, session, parseTranscriptLine(raw))
	})
	for source := range s.sources {
		s.release(source)
	}
}

var transcriptSeed = maphash.MakeSeed()

// digest is the same for a line and its copy. The CLI escapes the line separators of Unicode when it says
// them, and not in files.
func digest(raw []byte) uint64 {
	raw = bytes.ReplaceAll(bytes.TrimSpace(raw), []byte("\u2028"), []byte(`\u2028`))
	raw = bytes.ReplaceAll(raw, []byte("\u2029"), []byte(`\u2029`))
	return maphash.Bytes(transcriptSeed, raw)
}
