// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/drover-agents/drover/internal/plainjson"
)

// importBatch is how many entries go to the store at once.
const importBatch = 500

// ErrExists is returned by [Import] when the store has the session already.
var ErrExists = errors.New("transcript: session exists in the store")

// Import copies a session on disk, with its subagents, into store and returns its key. It refuses,
// with [ErrExists], a session that the store has, since entries must not be stored twice. An import that
// fails half way can be undone with the store's [Deleter]. Lines that are not JSON objects are skipped.
func Import(ctx context.Context, store Store, id string, opts Options) (Key, error) {
	p, s, err := open(ctx, id, opts)
	if err != nil {
		return Key{}, err
	}
	defer p.Close()
	key := Key{ProjectKey: s.key, SessionID: s.id}
	if have, err := store.Load(ctx, key); err != nil {
		return key, fmt.Errorf("transcript: importing %s: %w", key, err)
	} else if len(have) > 0 {
		return key, fmt.Errorf("%w: %s; delete it there first", ErrExists, key)
	}
	if err := p.importAll(ctx, store, s, key); err != nil {
		return key, fmt.Errorf("transcript: importing %s: %w", key, err)
	}
	return key, nil
}

// importAll sends the subagents first: a store that has the main conversation has everything.
func (p *projects) importAll(ctx context.Context, store Store, s session, key Key) error {
	agents, err := p.subagents(ctx, s)
	if err != nil {
		return err
	}
	for _, a := range agents {
		entries, err := p.rawEntries(ctx, path.Join(s.dir(), a.Subpath)+".jsonl")
		if err != nil {
			return err
		}
		if meta, err := parseObject(a.Meta); err == nil {
			line := append(object{}.set("type", metadataType), meta.without("type")...)
			entries = append([]json.RawMessage{line.bytes()}, entries...)
		}
		if err := appendBatches(ctx, store, Key{key.ProjectKey, key.SessionID, a.Subpath}, entries); err != nil {
			return err
		}
	}
	entries, err := p.rawEntries(ctx, s.file())
	if err != nil {
		return err
	}
	return appendBatches(ctx, store, key, entries)
}

func (p *projects) rawEntries(ctx context.Context, name string) ([]json.RawMessage, error) {
	data, err := p.readAll(ctx, name)
	if err != nil {
		return nil, err
	}
	var entries []json.RawMessage
	for _, line := range splitLines(data) {
		if plainjson.IsObject(line) {
			entries = append(entries, line)
		}
	}
	return entries, nil
}

func appendBatches(ctx context.Context, store Store, key Key, entries []json.RawMessage) error {
	for batch := range slices.Chunk(entries, importBatch) {
		if err := store.Append(ctx, key, batch); err != nil {
			return err
		}
	}
	return nil
}
