// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Subagent is a conversation that a session's agent started for a part of its work.
type Subagent struct {
	ID string
	// Subpath is its path below the session, without suffix: "subagents/agent-<ID>", or deeper. It
	// is also its [Key.Subpath] in a store.
	Subpath string
	// The rest comes from its sidecar file and is empty without one.
	Type          string          `json:"agentType"`
	Description   string          `json:"description"`
	ToolUseID     string          `json:"toolUseId"`
	ParentAgentID string          `json:"parentAgentId"`
	SpawnDepth    int             `json:"spawnDepth"`
	Meta          json.RawMessage `json:"-"` // the whole sidecar
}

// Subagents lists the subagents of a session by subpath.
func Subagents(ctx context.Context, id string, opts Options) ([]Subagent, error) {
	p, s, err := open(ctx, id, opts)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.subagents(ctx, s)
}

// SubagentMessages returns the messages of one subagent, oldest first, each with the tool call that started it.
func SubagentMessages(ctx context.Context, id, agentID string, opts MessagesOptions) ([]Entry, error) {
	p, s, err := open(ctx, id, opts.Options)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	agents, err := p.subagents(ctx, s)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(agents, func(a Subagent) bool { return a.ID == agentID })
	if at < 0 {
		return nil, fmt.Errorf("%w: subagent %.80q of session %s", ErrNotFound, agentID, id)
	}
	data, err := p.readAll(ctx, path.Join(s.dir(), agents[at].Subpath)+".jsonl")
	if err != nil {
		return nil, fmt.Errorf("transcript: reading subagent %s: %w", agentID, err)
	}
	return opts.page(agents[at].messages(parseEntries(splitLines(data)), opts.System)), nil
}

// messages rebuilds the conversation: here the last message is the leaf, and every entry is of a side chain.
func (a Subagent) messages(entries []Entry, system bool) []Entry {
	links := make(map[string]int, len(entries))
	leaf := -1
	for i, e := range entries {
		if !e.isChain() {
			continue
		}
		links[e.UUID] = i
		if e.isTurn() {
			leaf = i
		}
	}
	found := slices.DeleteFunc(walk(entries, links, leaf), func(e Entry) bool {
		return e.IsMeta || !e.isTurn() && !(system && e.Type == "system")
	})
	for i := range found {
		found[i].ParentToolUseID, found[i].ParentAgentID = a.ToolUseID, a.ParentAgentID
	}
	return found
}

func (p *projects) subagents(ctx context.Context, s session) ([]Subagent, error) {
	var agents []Subagent
	err := p.walkJSONL(ctx, path.Join(s.dir(), "subagents"), 0, func(name string) {
		id, ok := strings.CutPrefix(path.Base(name), "agent-")
		if !ok {
			return
		}
		a := p.sidecar(ctx, name)
		a.ID, a.Subpath = id, strings.TrimPrefix(name, s.dir()+"/")
		agents = append(agents, a)
	})
	slices.SortFunc(agents, func(a, b Subagent) int { return cmp.Compare(a.Subpath, b.Subpath) })
	return agents, err
}

// sidecar reads <name>.meta.json. A missing or malformed file leaves the fields empty.
func (p *projects) sidecar(ctx context.Context, name string) Subagent {
	var a Subagent
	data, err := p.readAll(ctx, name+".meta.json")
	if err != nil || !json.Valid(data) {
		return a
	}
	_ = json.Unmarshal(data, &a) // a field of another type stays empty
	a.Meta = data
	return a
}

// maxDepth bounds the depth of the search for subagents below a session.
const maxDepth = 8

// walkJSONL calls visit with the name, without suffix, of every transcript at or below dir. A
// missing dir has none. Symbolic links are not followed.
func (p *projects) walkJSONL(ctx context.Context, dir string, depth int, visit func(name string)) error {
	if err := ctx.Err(); err != nil || depth > maxDepth {
		return err
	}
	entries, err := p.readDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("transcript: listing subagents: %w", err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			if err := p.walkJSONL(ctx, name, depth+1, visit); err != nil {
				return err
			}
		} else if base, ok := strings.CutSuffix(name, ".jsonl"); ok && e.Type().IsRegular() {
			visit(base)
		}
	}
	return nil
}
