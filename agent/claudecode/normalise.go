// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"os"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/recent"
)

// A normaliser makes events of the messages of one run. It is used by one goroutine.
//
// It is written for the real CLI; see loose.go for other producers. An unknown message is neither an event nor an error.
type normaliser struct {
	req    agent.Request
	ledger *agent.Ledger
	// wrapped is true if a structured answer comes inside an object; see wrapsOutput.
	wrapped bool
	// now is the clock and newID the source of ids for calls that have none. Nil means the real ones.
	now   func() time.Time
	newID func() string

	begun   time.Time // when the first message came
	session string    // the last that the CLI named
	active  bool      // anything but notices of the system came: only then can the session be continued
	inited  bool
	emitted bool          // an event other than an init was emitted
	written bool          // the CLI wrote the last message of the main agent itself
	early   []event.Event // of tasks of the session's last run, which the CLI reports before the init

	turns   map[string]int                   // the number of each model call of the main agent, by message id
	turn    int                              // the last of them
	message string                           // the id of the answer whose blocks are reported
	agents  recent.Map[event.CallID, string] // the subagent that a call runs
	lines   recent.Map[uint64, bool]         // digests of the blocks that were reported, for lines that come twice

	answers   []answer      // of the main agent, in their order
	toolUses  int           // calls that were reported
	malformed error         // the last line that could not be read, which may have been the result
	modelTime time.Duration // what the model took for earlier prompts of the process

	taskCalls  map[string]event.CallID // the call of each task at work, by task id
	ended      *event.Event            // the end of a task whose report may follow; see taskUpdated
	usage      usageMeter
	tokens     Tokens                          // of model calls in the stream
	begunInput recent.Map[event.CallID, int64] // of those under way, by the call that they are inside of

	out []event.Event
}

// next is the normaliser of the run's next prompt. It counts from zero, and knows which tasks still run.
// A call that has no result yet belongs to the last prompt: a result that comes now is not reported.
func (n *normaliser) next() normaliser {
	next := normaliser{
		req: n.req, ledger: n.ledger, wrapped: n.wrapped, now: n.now, newID: n.newID,
		session: n.session, agents: n.agents, taskCalls: n.taskCalls, lines: n.lines, usage: n.usage.next(), modelTime: n.modelTime,
	}
	next.req.Resume = "" // a later prompt has no session to repair
	if n.ledger != nil {
		n.ledger.NextPrompt()
	}
	return next
}

// An answer is a call with a structured answer.
type answer struct {
	call  *agent.Reading
	input json.RawMessage
}

type eventPosition struct {
	turn   int
	parent event.CallID
	agent  string
}

// events are the events of a message. The done event is not among them: see done. The slice is used again by the next call.
func (n *normaliser) events(m claude.Message) []event.Event {
	clear(n.out)
	n.out = n.out[:0]
	if n.begun.IsZero() {
		n.begun = n.clock()
	}
	if n.ledger == nil { // of a stream that was recorded
		n.ledger = agent.NewLedger(nil)
	}
	n.flushTask(m)
	switch m := m.(type) {
	case *claude.SystemInit:
		n.setSession(m.SessionID)
		n.init(m.Raw(), m)
	case *claude.AssistantMessage:
		n.setSession(m.SessionID)
		n.assistant(m)
	case *claude.UserMessage:
		n.setSession(m.SessionID)
		n.user(m)
	case *claude.StreamEvent:
		n.setSession(m.SessionID)
		n.stream(m)
	case *claude.ResultMessage:
		n.setSession(m.SessionID)
		n.active = n.active || m.StartupFailureReason == ""
		n.usage.observe(m.Raw())
	case *claude.ConversationReset:
		n.usage.reset(m)
	case *claude.MalformedLine:
		n.malformed = m.Err
		n.failed(eventPosition{turn: n.turn}, codeMalformedLine, m.Err.Error(), m.Err)
	case *claude.UnknownMessage:
		n.loose(m)
	default:
		n.notice(m)
	}
	return n.out
}

// Codes of errors that the adapter makes itself.
const (
	codeMalformedLine = "MALFORMED_LINE"
	codeMissingResult = "MISSING_RESULT"
	codeResult        = "CLAUDE_CODE_RESULT_ERROR"
	codeOutput        = "MISSING_STRUCTURED_OUTPUT"
)

func (n *normaliser) setSession(session string) {
	n.session = cmp.Or(session, n.session)
}

func (n *normaliser) clock() time.Time {
	if n.now == nil {
		return time.Now()
	}
	return n.now()
}

func (n *normaliser) emit(at eventPosition, payload event.Payload) {
	n.out = append(n.out, n.event(at, payload))
}

func (n *normaliser) event(at eventPosition, payload event.Payload) event.Event {
	if payload.EventKind() != event.KindInit {
		n.emitted = true
	}
	return event.Event{
		Kind: payload.EventKind(), Agent: Agent, Time: n.clock(), SessionID: n.session,
		Turn: at.turn, ParentToolUseID: at.parent, AgentID: at.agent, Payload: payload,
	}
}

// failed reports a failure that does not end the run.
func (n *normaliser) failed(at eventPosition, code, message string, cause error) {
	n.emit(at, event.Error{Code: code, Message: message, Next: advice.Of(cause), Recoverable: true, Cause: cause})
}

// positionOf is where a message of the main agent, or of the subagent that a call runs, belongs. A
// subagent works in the turn of its call.
func (n *normaliser) positionOf(parent event.CallID, agentID string) eventPosition {
	if parent == "" {
		return eventPosition{turn: n.turn, agent: agentID}
	}
	if agentID != "" {
		n.runs(parent, agentID)
	}
	running, _ := n.agents.Get(parent)
	at := eventPosition{turn: n.turn, parent: parent, agent: running}
	if r := n.ledger.Read(parent); r != nil {
		at.turn = r.Reading.Turn
	}
	return at
}

// How much is remembered of a conversation. A line comes twice within moments.
const (
	rememberedAgents = 4096
	rememberedLines  = 4096
)

func (n *normaliser) runs(call event.CallID, agentID string) {
	n.agents.Size = rememberedAgents
	n.agents.Put(call, agentID)
}

// turnOf numbers the model calls of the main agent.
func (n *normaliser) turnOf(messageID string) int {
	if messageID == "" {
		return n.turn
	}
	if _, known := n.turns[messageID]; !known {
		n.turn++
		set(&n.turns, messageID, n.turn)
	}
	return n.turns[messageID]
}

var lineSeed = maphash.MakeSeed()

// isRepeated reports whether a block was reported before: the CLI may send a line twice, under one uuid.
func (n *normaliser) isRepeated(lineID string, block json.RawMessage) bool {
	if lineID == "" {
		return false
	}
	var h maphash.Hash
	h.SetSeed(lineSeed)
	_, _ = h.WriteString(lineID)
	_, _ = h.Write(block)
	digest := h.Sum64()
	if repeated, _ := n.lines.Get(digest); repeated {
		return true
	}
	n.lines.Size = rememberedLines
	n.lines.Put(digest, true)
	return false
}

func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// init reports the beginning. The CLI begins every turn with such a line; a run begins once.
func (n *normaliser) init(raw json.RawMessage, m *claude.SystemInit) {
	if n.inited {
		return
	}
	n.inited = true
	dir := cmp.Or(m.CWD, n.req.Dir)
	if dir == "" {
		dir, _ = os.Getwd()
	}
	n.emit(eventPosition{turn: n.turn}, event.Init{
		Model: cmp.Or(m.Model, n.req.Model, "unknown"), Dir: dir,
		Tools: toolNames(raw), Capabilities: capabilities(m),
	})
	n.flushEarly()
}

// flushEarly emits the events that waited for the init.
func (n *normaliser) flushEarly() {
	n.out = append(n.out, n.early...)
	n.early = nil
}

// capabilities are what a reader may want to know beside model, folder and tools.
func capabilities(m *claude.SystemInit) map[string]json.RawMessage {
	type server struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	}
	all := map[string]json.RawMessage{}
	add := func(name string, there bool, value any) {
		if text, err := json.Marshal(value); there && err == nil {
			all[name] = text
		}
	}
	servers := make([]server, len(m.MCPServers))
	for i, s := range m.MCPServers {
		servers[i] = server{s.Name, s.Status}
	}
	add("claudeCodeVersion", m.ClaudeCodeVersion != "", m.ClaudeCodeVersion)
	add("permissionMode", m.PermissionMode != "", m.PermissionMode)
	add("apiKeySource", m.APIKeySource != "", m.APIKeySource)
	add("effort", m.Effort != "", m.Effort)
	add("mcpServers", len(servers) > 0, servers)
	add("agents", len(m.Agents) > 0, m.Agents)
	if len(all) == 0 {
		return nil
	}
	return all
}

func (n *normaliser) makeID() event.CallID {
	if n.newID == nil {
		return event.CallID("call_" + ident.NewUUID())
	}
	return event.CallID(n.newID())
}
