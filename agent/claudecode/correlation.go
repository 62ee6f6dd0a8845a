// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/tool"
)

// correlation finds the id of a call that a server of this program gets. The CLI tells it with the call. For
// one that does not, the ids that hooks have seen wait under the name and the input of their call, and the
// oldest of them is taken: calls that are the same in both cannot be told apart anyhow.
//
// An id waits until its call comes, or ends, or is denied. At most queuedAlike wait for the same call and
// queuedIDs in all; beyond that the oldest is dropped, and its call has no id.
type correlation struct {
	log *slog.Logger

	mu     sync.Mutex
	queues map[string][]string // ids by call, the oldest first
	calls  map[string]string   // calls by id
	order  []string            // ids, the oldest first, also some that no longer wait
	denied recent.Map[string, bool]
}

const (
	queuedAlike = 64
	queuedIDs   = 4096
)

func newCorrelation(log *slog.Logger) *correlation {
	return &correlation{
		log: log, queues: map[string][]string{}, calls: map[string]string{}, denied: recent.Map[string, bool]{Size: queuedIDs},
	}
}

// correlate gives calls of our tools their ids, where hooks or a host need to know them.
func correlate(o *claude.Options, req agent.Request) {
	if req.Tools == nil || req.Hooks == nil && req.Host == nil {
		return
	}
	c := newCorrelation(logger(o))
	c.observe(o, toolsOf(req).prefix()+"__.*")
	interpose(o, c.identify)
}

// observe listens to who is asked about calls, and to their end. matcher are calls that nobody may be asked
// about so far.
func (c *correlation) observe(o *claude.Options, matcher string) {
	hooks := []claude.Hook{{Event: claude.HookPreToolUse, Matcher: matcher, Func: noOpinion}}
	hooks = append(o.Hooks[:len(o.Hooks):len(o.Hooks)], hooks...)
	for i, h := range hooks {
		hooks[i] = c.observed(h)
	}
	o.Hooks = append(hooks, claude.On("", c.batchEnded))
	if ask := o.CanUseTool; ask != nil {
		o.CanUseTool = func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
			result, err := ask(ctx, req)
			if err != nil || !claude.Allows(result) {
				c.deny(req.ToolUseID)
			} else if input, err := json.Marshal(allowedInput(result, req.Input)); err == nil {
				c.put(req.ToolUseID, callKey(req.ToolName, input))
			}
			return result, err
		}
	}
}

// observed is a hook whose call waits from its answer on.
func (c *correlation) observed(h claude.Hook) claude.Hook {
	inner := h.Func
	if h.Event != claude.HookPreToolUse || inner == nil {
		return h
	}
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		call, ok := in.(*claude.PreToolUseInput)
		if ok {
			c.expect(call.ToolUseID, callKey(call.ToolName, call.ToolInput))
		}
		out, err := inner(ctx, in)
		switch answer, isAnswer := out.(*claude.PreToolUseOutput); {
		case !ok:
		case err != nil || claude.Denies(out):
			c.deny(call.ToolUseID)
		case isAnswer && answer != nil && answer.UpdatedInput != nil && !answer.Async:
			if input, err := json.Marshal(answer.UpdatedInput); err == nil {
				c.put(call.ToolUseID, callKey(call.ToolName, input))
			}
		}
		return out, err
	}
	return h
}

func (c *correlation) batchEnded(_ context.Context, in *claude.PostToolBatchInput) (*claude.PostToolBatchOutput, error) {
	for _, call := range in.ToolCalls {
		c.forget(call.ToolUseID)
	}
	return nil, nil
}

func callKey(name string, input json.RawMessage) string { return voucherKey("", name, input) }

// expect lets an id wait that does not wait yet.
func (c *correlation) expect(id, call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.calls[id]; !waits {
		c.putLocked(id, call)
	}
}

// put lets an id wait for a call, and no longer for another one.
func (c *correlation) put(id, call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] != call {
		c.dropLocked(id)
		c.putLocked(id, call)
	}
}

func (c *correlation) putLocked(id, call string) {
	if denied, _ := c.denied.Get(id); denied || id == "" {
		return
	}
	c.calls[id] = call
	c.queues[call] = append(c.queues[call], id)
	c.order = append(c.order, id)
	if queue := c.queues[call]; len(queue) > queuedAlike {
		c.overflowLocked(queue[0])
	}
	for len(c.calls) > queuedIDs {
		c.overflowLocked(c.oldestLocked())
	}
	if len(c.order) > 2*queuedIDs {
		c.tidyLocked()
	}
}

// tidyLocked leaves each id that waits once in the order.
func (c *correlation) tidyLocked() {
	seen := map[string]bool{}
	c.order = slices.DeleteFunc(c.order, func(id string) bool {
		stale := c.calls[id] == "" || seen[id]
		seen[id] = true
		return stale
	})
}

// oldestLocked is the id that has waited the longest.
func (c *correlation) oldestLocked() string {
	for c.calls[c.order[0]] == "" {
		c.order = c.order[1:]
	}
	return c.order[0]
}

func (c *correlation) overflowLocked(id string) {
	c.log.Warn("claudecode: too many calls wait for their tools; the oldest one will have no id", "id", id)
	c.dropLocked(id)
}

// deny ends the waiting of an id whose call is not made. Other hooks may not have been asked about it yet.
func (c *correlation) deny(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(id)
	c.denied.Put(id, true)
}

// forget ends the waiting of an id whose call is over. Another call may have it: some services begin to count
// anew with each answer.
func (c *correlation) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(id)
	if denied, _ := c.denied.Get(id); denied {
		c.denied.Put(id, false)
	}
}

// drop ends the waiting of an id.
func (c *correlation) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(id)
}

func (c *correlation) dropLocked(id string) {
	call, waits := c.calls[id]
	if !waits {
		return
	}
	delete(c.calls, id)
	queue := slices.DeleteFunc(c.queues[call], func(other string) bool { return other == id })
	if c.queues[call] = queue; len(queue) == 0 {
		delete(c.queues, call)
	}
}

// take is the id of a call that has come, or "".
func (c *correlation) take(call string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	queue := c.queues[call]
	if len(queue) == 0 {
		return ""
	}
	id := queue[0]
	c.dropLocked(id)
	return id
}

// identify stands before a server, and tells it the ids that the CLI does not tell.
func (c *correlation) identify(server string, next handleFunc) handleFunc {
	return func(ctx context.Context, msg json.RawMessage) (json.RawMessage, error) {
		return next(ctx, c.identified(server, msg))
	}
}

// identified is the message with the id of its call. What is no call, or cannot be read, is left to the server.
func (c *correlation) identified(server string, msg json.RawMessage) json.RawMessage {
	var m struct {
		Method string                     `json:"method"`
		Params map[string]json.RawMessage `json:"params"`
	}
	if json.Unmarshal(msg, &m) != nil || m.Method != "tools/call" {
		return msg
	}
	var name, id string
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(m.Params["name"], &name)
	_ = json.Unmarshal(m.Params["_meta"], &meta)
	_ = json.Unmarshal(meta[toolUseID], &id)
	if id != "" {
		c.drop(id)
		return msg
	}
	if id = c.take(callKey(tool.NewMCPName(server, name).String(), m.Params["arguments"])); id == "" {
		return msg
	}
	return withID(msg, m.Params, meta, id)
}

// withID is the message of a call with its id.
func withID(msg json.RawMessage, params, meta map[string]json.RawMessage, id string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(msg, &all) != nil {
		return msg
	}
	set(&meta, toolUseID, encoded(id))
	params["_meta"] = encoded(meta)
	all["params"] = encoded(params)
	return encoded(all)
}

// encoded is the JSON of what was JSON before.
func encoded(v any) json.RawMessage {
	raw, _ := plainjson.Marshal(v) // it cannot fail
	return raw
}
