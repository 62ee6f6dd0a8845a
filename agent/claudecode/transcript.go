// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/maphash"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/recent"
)

// A transcriptRecorder reports every line of the conversations of one CLI once, those of each source in order.
//
// The client hands it prompts, messages, and the copies of transcript files that the CLI sends. When the CLI has
// ended, the recorder reads the files themselves. A turn that is interrupted, a reader who leaves and a CLI that is
// killed make no difference to that.
//
// Most lines come twice. A message of the stream lacks something of the line in the file, such as the tokens that
// were used in the end; and each of the two has lines that the other lacks. So a message is held until its copy from
// the file comes, which is reported instead, followed by the messages behind it. By the end of a turn all
// copies have come; messages that are still held are reported without one.
type transcriptRecorder struct {
	report func(agent.TranscriptLine)
	now    func() time.Time

	mu       sync.Mutex
	files    *transcriptFiles
	mirrored bool // copies of the files will come
	sources  map[string]*sourceLines
	agents   recent.Map[event.CallID, string] // the subagent that a call runs
	sessions map[string]bool                  // all that were named: one for each conversation of the process
	session  string                           // the last of them
	streamed recent.Map[string, bool]         // ids of lines that were reported from the stream
	filed    recent.Map[string, bool]         // ids of lines that were reported from a file
	copied   recent.Map[uint64, int]          // digests of the copies that have come, and how often
	counted  recent.Map[string, bool]         // ids of the model calls whose usage was reported
	over     bool                             // the CLI has ended: nothing is worth waiting for
}

var _ claude.Recorder = (*transcriptRecorder)(nil)

// recordedLines is how many lines of a conversation a recorder remembers. If it is longer, the end may report lines
// again that came before them; they have their ids.
const recordedLines = 1 << 16

// sourceLines are the lines of one source that wait.
type sourceLines struct {
	held []transcriptLine
	late []transcriptLine // the file went on without them
}

func newTranscriptRecorder(report func(agent.TranscriptLine)) *transcriptRecorder {
	r := &transcriptRecorder{report: report, now: time.Now, sources: map[string]*sourceLines{}, sessions: map[string]bool{}}
	r.agents.Size, r.counted.Size = rememberedAgents, recordedLines
	r.streamed.Size, r.filed.Size, r.copied.Size = recordedLines, recordedLines, recordedLines
	return r
}

// Start implements [claude.Recorder].
func (r *transcriptRecorder) Start(configDir string, copies bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files, r.mirrored = newTranscriptFiles(configDir), copies
}

// Prompt implements [claude.Recorder].
func (r *transcriptRecorder) Prompt(line []byte) {
	l := r.parse(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.hold(l, true)
	}
}

// Message implements [claude.Recorder]. Pieces of what comes whole later are passed over.
func (r *transcriptRecorder) Message(line claude.Line) {
	kind, subtype := line.Type(), line.Subtype()
	if kind == "stream_event" || kind == "system" && subtype == "thinking_tokens" {
		return
	}
	l := r.parse(line.Raw())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteSession(l.SessionID)
	if kind == "system" && subtype == "task_started" {
		r.agents.Put(event.CallID(l.text("tool_use_id")), l.text("task_id"))
	}
	if kind == "result" {
		r.release(agent.MainSource) // the copies of a turn come before its result
	}
	r.hold(l, kind == "user" || kind == "assistant")
}

// Copies implements [claude.Recorder].
func (r *transcriptRecorder) Copies(file string, entries []json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	source, session := sourceOfFile(file)
	for _, raw := range entries {
		d := digest(raw)
		times, _ := r.copied.Get(d)
		r.copied.Put(d, times+1)
		r.file(source, session, r.parse(raw))
	}
}

// End implements [claude.Recorder]. It reads the files that the CLI has left, and reports the lines that still wait.
func (r *transcriptRecorder) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	defer r.files.close()
	r.files.read(r.sessions, func(name string, raw []byte) {
		d := digest(raw)
		if times, _ := r.copied.Get(d); times > 0 {
			r.copied.Put(d, times-1)
			return
		}
		source, session := sourceOfFile(name)
		r.file(source, session, r.parse(raw))
	})
	for source := range r.sources {
		r.release(source)
	}
}

func (r *transcriptRecorder) noteSession(session string) {
	if session != "" {
		r.sessions[session], r.session = true, session
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

// file reports a line of a file, at its position there.
func (r *transcriptRecorder) file(source, session string, l transcriptLine) {
	r.noteSession(session)
	if streamed, _ := r.streamed.Get(l.ID); streamed {
		return
	}
	lines := r.lines(source)
	at := slices.IndexFunc(lines.held, func(held transcriptLine) bool { return l.ID != "" && held.ID == l.ID })
	for i := range at { // the file has gone on without them
		if before := lines.held[i]; before.copied {
			lines.late = append(lines.late, before)
		} else {
			r.reportStreamed(before)
		}
	}
	l.Source, l.SessionID = source, cmp.Or(l.SessionID, session)
	r.reportLine(l)
	if l.ID != "" {
		r.filed.Put(l.ID, true)
	}
	if at >= 0 {
		lines.held = lines.held[at+1:]
	}
	r.follow(source)
}

// follow reports the messages behind a line that was reported, up to the next one whose copy will come.
func (r *transcriptRecorder) follow(source string) {
	lines := r.lines(source)
	for len(lines.held) > 0 {
		if filed, _ := r.filed.Get(lines.held[0].ID); lines.held[0].copied && !filed {
			return
		}
		r.reportStreamed(lines.held[0])
		lines.held = lines.held[1:]
	}
	if len(lines.late) == 0 {
		delete(r.sources, source)
	}
}

// hold takes a line of the stream. It is reported at once if there is nothing to wait for. inFile means that files
// have such lines too.
func (r *transcriptRecorder) hold(l transcriptLine, inFile bool) {
	l.Source = agent.MainSource
	if call := l.text("parent_tool_use_id"); call != "" {
		runs, _ := r.agents.Get(event.CallID(call))
		l.Source = agent.SubagentSource + cmp.Or(l.text("agent_id"), runs, call)
	}
	l.copied = inFile && r.mirrored && !r.over && l.ID != ""
	lines := r.lines(l.Source)
	lines.held = append(lines.held, l)
	r.follow(l.Source)
}

// release reports all lines of a source that wait.
func (r *transcriptRecorder) release(source string) {
	lines := r.lines(source)
	waiting := append(lines.late, lines.held...)
	delete(r.sources, source)
	for _, l := range waiting {
		r.reportStreamed(l)
	}
}

// reportStreamed reports a line of the stream, unless it was reported before.
func (r *transcriptRecorder) reportStreamed(l transcriptLine) {
	if l.ID != "" {
		streamed, _ := r.streamed.Get(l.ID)
		if filed, _ := r.filed.Get(l.ID); streamed || filed {
			return
		}
		r.streamed.Put(l.ID, true)
	}
	r.reportLine(l)
}

// reportLine reports a line. Its parts are found here, so that usage is counted in the order of the reports.
func (r *transcriptRecorder) reportLine(l transcriptLine) {
	l.Parts = r.parts(l)
	l.SessionID = cmp.Or(l.SessionID, r.session)
	r.report(l.TranscriptLine)
}

func (r *transcriptRecorder) lines(source string) *sourceLines {
	if r.sources[source] == nil {
		r.sources[source] = &sourceLines{}
	}
	return r.sources[source]
}

var transcriptSeed = maphash.MakeSeed()

// digest is the same for a line and its copy. The CLI escapes Unicode's line separators in the stream, and not in files.
func digest(raw []byte) uint64 {
	raw = bytes.ReplaceAll(bytes.TrimSpace(raw), []byte("\u2028"), []byte(`\u2028`))
	raw = bytes.ReplaceAll(raw, []byte("\u2029"), []byte(`\u2029`))
	return maphash.Bytes(transcriptSeed, raw)
}
