// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/statefolder"
)

// conversations are what --resume continues. The home of a run is gone with the run, so they are kept in
// a folder of the user's. The zero value keeps nothing.
type conversations struct {
	store *transcript.FileStore
	// project is the folder that they belong to, if it is not the one that the agent works in.
	project string
}

// conversations opens the folder, unless the run has no model to talk of.
func (o *runOptions) conversations(model *modelSource) (*conversations, error) {
	if model.pretended {
		return &conversations{}, nil
	}
	dir, err := o.state, error(nil)
	if dir == "" {
		dir, err = statefolder.Path()
	}
	if err == nil {
		var store *transcript.FileStore
		if store, err = transcript.NewFileStore(filepath.Join(dir, "conversations")); err == nil {
			return &conversations{store: store}, nil
		}
	}
	return nil, fmt.Errorf("the folder in which conversations are kept: %w\n  next: set XDG_STATE_HOME to a folder that can be written to", err)
}

func (c *conversations) close() error {
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// keep has the CLI's conversation kept, at every step: one that breaks off can be continued too.
func (c *conversations) keep(base *claude.Options) {
	if c.store == nil {
		base.NoPersistence = true
		return
	}
	base.Store, base.StoreEager = c.store, true
	if c.project != "" {
		base.Store = projectStore{c.store, transcript.ProjectKey(c.project)}
	}
}

// A projectStore keeps the conversations of every folder as those of one project. Workspaces are never in
// the same folder twice.
type projectStore struct {
	*transcript.FileStore
	project string
}

// Append implements [transcript.Store].
func (s projectStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	key.ProjectKey = s.project
	return s.FileStore.Append(ctx, key, entries)
}

// Load implements [transcript.Store].
func (s projectStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	key.ProjectKey = s.project
	return s.FileStore.Load(ctx, key)
}

// ListSubkeys implements [transcript.SubkeyLister].
func (s projectStore) ListSubkeys(ctx context.Context, key transcript.Key) ([]string, error) {
	key.ProjectKey = s.project
	return s.FileStore.ListSubkeys(ctx, key)
}

// ListSessions implements [transcript.SessionLister].
func (s projectStore) ListSessions(ctx context.Context, _ string) ([]transcript.StoredSession, error) {
	return s.FileStore.ListSessions(ctx, s.project)
}

// ListSummaries implements [transcript.SummaryLister].
func (s projectStore) ListSummaries(ctx context.Context, _ string) ([]transcript.Summary, error) {
	return s.FileStore.ListSummaries(ctx, s.project)
}

// Delete implements [transcript.Deleter].
func (s projectStore) Delete(ctx context.Context, key transcript.Key) error {
	key.ProjectKey = s.project
	return s.FileStore.Delete(ctx, key)
}
