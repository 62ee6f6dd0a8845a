// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// MessagesOptions select a part of a conversation. The zero value means all of it.
type MessagesOptions struct {
	Options
	// Limit is the greatest number of messages returned. Zero means all.
	Limit int
	// Offset is the number of messages to skip, oldest first.
	Offset int
	// System adds the system entries of the conversation (compaction, API errors and others).
	System bool
}

// Messages returns the user and assistant messages of a session in the order of the conversation: the branch that was
// continued last, without abandoned ones. Summaries made by compaction are part of it; hidden and subagent messages are not.
func Messages(ctx context.Context, id string, opts MessagesOptions) ([]Entry, error) {
	entries, err := Entries(ctx, id, opts.Options)
	if err != nil {
		return nil, err
	}
	return opts.page(visible(chain(entries), opts.System)), nil
}

// Entries returns every line of a session as it is on disk. Lines that are not JSON objects are skipped.
func Entries(ctx context.Context, id string, opts Options) ([]Entry, error) {
	p, s, err := open(ctx, id, opts)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	data, err := p.readAll(ctx, s.file())
	if err != nil {
		return nil, fmt.Errorf("transcript: reading session %s: %w", id, err)
	}
	return parseEntries(splitLines(data)), nil
}

// Conversation is [Messages] for entries from a [Store].
func Conversation(raw []json.RawMessage) []Entry {
	return visible(chain(parseEntries(raw)), false)
}

// chain returns the branch that ends in the best leaf, root first. It follows parentUuid alone: the
// logical parent of a compaction leads to messages that the model no longer sees.
func chain(entries []Entry) []Entry {
	links := make(map[string]int, len(entries)) // uuid to its last position
	for i, e := range entries {
		if e.isChain() {
			links[e.UUID] = i
		}
	}
	return walk(entries, links, bestLeaf(entries, links))
}

// walk collects the entries from the one at position leaf up to its root. A loop ends it.
func walk(entries []Entry, links map[string]int, leaf int) []Entry {
	var path []Entry
	seen := make(map[int]bool)
	for at, ok := leaf, leaf >= 0; ok && !seen[at]; at, ok = links[entries[at].ParentUUID] {
		seen[at] = true
		path = append(path, entries[at])
	}
	slices.Reverse(path)
	return path
}

// bestLeaf returns the position of the user or assistant message in which the conversation ends, or
// -1. Each entry without a child leads to its nearest message; messages of the main conversation go
// before all others, and then the later line.
func bestLeaf(entries []Entry, links map[string]int) int {
	parents := make(map[string]bool, len(links))
	for _, at := range links {
		parents[entries[at].ParentUUID] = true
	}
	best, bestMain := -1, false
	for uuid, at := range links {
		if parents[uuid] {
			continue
		}
		turn := nearestTurn(entries, links, at)
		if turn < 0 {
			continue
		}
		if main := isMain(entries[turn]); best < 0 || main && !bestMain || main == bestMain && turn > best {
			best, bestMain = turn, main
		}
	}
	return best
}

func nearestTurn(entries []Entry, links map[string]int, at int) int {
	seen := make(map[int]bool)
	for ok := true; ok && !seen[at]; at, ok = links[entries[at].ParentUUID] {
		if entries[at].isTurn() {
			return at
		}
		seen[at] = true
	}
	return -1
}

func isMain(e Entry) bool { return !e.IsSidechain && e.TeamName == "" && !e.IsMeta }

func visible(path []Entry, system bool) []Entry {
	return slices.DeleteFunc(path, func(e Entry) bool {
		return !isMain(e) || !e.isTurn() && !(system && e.Type == "system")
	})
}

func (o MessagesOptions) page(all []Entry) []Entry {
	all = all[min(max(o.Offset, 0), len(all)):]
	if o.Limit > 0 && o.Limit < len(all) {
		all = all[:o.Limit]
	}
	return all
}
