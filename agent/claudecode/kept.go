// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

var _ agent.Keeper = (*Adapter)(nil)

// JournalStore is a store of transcripts in a journal. The names there are those of the keys.
func JournalStore(j agent.Journal) transcript.Store { return journalStore{j} }

type journalStore struct{ agent.Journal }

// Append implements [transcript.Store].
func (s journalStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	if err := key.Validate(); err != nil {
		return err
	}
	return s.Journal.Append(ctx, key.String(), entries)
}

// Load implements [transcript.Store].
func (s journalStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	return s.Journal.Load(ctx, key.String())
}

// ListSubkeys implements [transcript.SubkeyLister].
func (s journalStore) ListSubkeys(ctx context.Context, key transcript.Key) ([]string, error) {
	key.Subpath = ""
	if err := key.Validate(); err != nil {
		return nil, err
	}
	names, err := s.Names(ctx)
	var subs []string
	for _, name := range names {
		if sub, below := strings.CutPrefix(name, key.String()+"/"); below {
			subs = append(subs, sub)
		}
	}
	return subs, err
}

// keptProject is the project of all conversations of a journal: they go on in other folders.
const keptProject = "kept"

// A keptStore has the conversations of one journal. It knows which calls are kept.
type keptStore struct {
	journalStore

	mu    sync.Mutex
	calls map[string]bool
	grown chan struct{} // closed when calls has more
}

func newKeptStore(j agent.Journal) *keptStore {
	return &keptStore{journalStore: journalStore{j}, calls: map[string]bool{}, grown: make(chan struct{})}
}

// Append implements [transcript.Store].
func (s *keptStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	key.ProjectKey = keptProject
	if err := s.journalStore.Append(ctx, key, entries); err != nil {
		return err
	}
	found := transcript.CallsIn(entries)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range found {
		s.calls[id] = true
	}
	if len(found) > 0 {
		close(s.grown)
		s.grown = make(chan struct{})
	}
	return nil
}

// Load implements [transcript.Store].
func (s *keptStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	key.ProjectKey = keptProject
	entries, err := s.journalStore.Load(ctx, key)
	return transcript.WithoutRejections(entries), err
}

// ListSubkeys implements [transcript.SubkeyLister].
func (s *keptStore) ListSubkeys(ctx context.Context, key transcript.Key) ([]string, error) {
	key.ProjectKey = keptProject
	return s.journalStore.ListSubkeys(ctx, key)
}

// callKept is how long a call waits until its line is kept; it takes some 70 milliseconds.
const callKept = 5 * time.Second

// hold is a hook that holds each call of the main agent that may change something until its line is kept. What is not kept in
// time runs all the same: it is recovered like the calls of an agent without a journal. The lines of a subagent come later than its calls.
func (s *keptStore) hold(readOnly func(name string) bool) claude.Hook {
	return claude.On("", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		native, known := catalogue.Tools().Native(in.ToolName)
		if in.AgentID != "" || known && native.Risk == tool.ReadOnly && native.More == nil && !native.Caller || readOnly(in.ToolName) {
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(ctx, callKept)
		defer cancel()
		for {
			s.mu.Lock()
			kept, grown := s.calls[in.ToolUseID], s.grown
			s.mu.Unlock()
			if kept {
				return nil, nil
			}
			select {
			case <-grown:
			case <-ctx.Done():
				return nil, nil
			}
		}
	})
}

// KeptIn implements [agent.Keeper]. Nothing is kept of a base that says otherwise where conversations are, or which one goes
// on: Store, NoPersistence, Checkpointing, Resume, Continue, or a Spawner without an isolation.
func (a *Adapter) KeptIn(j agent.Journal) agent.Adapter {
	o := &a.base
	if o.Store != nil || o.NoPersistence || o.Checkpointing || o.Resume != "" || o.Continue || a.workspace(".") == "" {
		return a
	}
	own := a.In(a.isolation)
	own.base.Store, own.base.StoreEager = newKeptStore(j), true
	return own
}

// Recover implements [agent.Keeper].
func (a *Adapter) Recover(ctx context.Context, j agent.Journal, result func(event.CallID) event.ToolResult) (agent.Recovered, error) {
	r, err := recovered(ctx, j, result)
	if err != nil {
		return agent.Recovered{}, fmt.Errorf("claudecode: recovering a conversation: %w", err)
	}
	return r, nil
}

func recovered(ctx context.Context, j agent.Journal, result func(event.CallID) event.ToolResult) (r agent.Recovered, err error) {
	names, err := j.Names(ctx)
	if err != nil {
		return r, err
	}
	session := ""
	for _, name := range names { // the last one that was written to
		if project, id, ok := strings.Cut(name, "/"); ok && project == keptProject && !strings.Contains(id, "/") {
			session = id
		}
	}
	if session == "" {
		return r, nil
	}
	store, key := newKeptStore(j), transcript.Key{ProjectKey: keptProject, SessionID: session}
	entries, err := store.Load(ctx, key)
	if err != nil {
		return r, err
	}
	found := transcript.FindInterrupted(entries)
	if found.At == "" {
		return r, nil
	}
	var lines []json.RawMessage
	delegating := false
	for _, call := range found.Open {
		end := result(event.CallID(call.ID))
		lines = append(lines, found.Result(call, resultText(end), end.Status != event.ToolSuccess))
		native, known := catalogue.Tools().Native(call.Name)
		delegating = delegating || known && native.Caller
	}
	if len(lines) > 0 {
		if err := store.Append(ctx, key, lines); err != nil {
			return r, err
		}
	}
	ids := found.Calls
	if !delegating {
		more, err := subagentCalls(ctx, store, key)
		if err != nil {
			return r, err
		}
		ids = slices.Concat(ids, more)
	}
	for _, id := range ids {
		r.Calls = append(r.Calls, event.CallID(id))
	}
	r.Token = session + "@" + found.At
	return r, nil
}

func subagentCalls(ctx context.Context, store *keptStore, key transcript.Key) (ids []string, err error) {
	subs, err := store.ListSubkeys(ctx, key)
	for _, sub := range subs {
		key.Subpath = sub
		entries, failed := store.Load(ctx, key)
		if failed != nil {
			return nil, failed
		}
		ids = append(ids, transcript.CallsIn(entries)...)
	}
	return ids, err
}

// resultText is what the model reads of a result.
func resultText(r event.ToolResult) string {
	if r.Failure != nil {
		return r.Failure.Message
	}
	var text string
	var ran struct{ Stdout, Stderr *string }
	switch {
	case json.Unmarshal(r.Output, &text) == nil:
		return text
	case json.Unmarshal(r.Output, &ran) == nil && ran.Stdout != nil && ran.Stderr != nil:
		return strings.TrimSpace(*ran.Stdout + "\n" + *ran.Stderr)
	}
	return string(r.Output)
}
