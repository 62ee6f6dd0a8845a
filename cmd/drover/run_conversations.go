// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	// project is the folder that they belong to: the one that drover was started in.
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
	base.Store, base.StoreEager = newProjectStore(c.store, c.project), true
}

// A projectStore keeps all conversations as those of one folder: workspaces are never in the same folder twice.
//
// The CLI's own names for folders are not unique: a/b and a-b have the same. The keys here have a hash of the
// path besides. A conversation that an earlier version stored under the CLI's name stays there, and goes on in
// the folder that its lines name.
type projectStore struct {
	*transcript.FileStore
	folder       string
	project, old string
}

func newProjectStore(store *transcript.FileStore, folder string) projectStore {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	name := transcript.ProjectKey(folder)
	hash := sha256.Sum256([]byte(folder))
	return projectStore{FileStore: store, folder: folder, project: name + "-" + hex.EncodeToString(hash[:16]), old: name}
}

// home is the key of a conversation in the store.
func (s projectStore) home(ctx context.Context, key transcript.Key) (transcript.Key, error) {
	main := transcript.Key{ProjectKey: s.old, SessionID: key.SessionID}
	entries, err := s.FileStore.Load(ctx, main)
	key.ProjectKey = s.project
	if err == nil && s.beganHere(entries) {
		key.ProjectKey = s.old
	}
	return key, err
}

// beganHere reports whether a conversation under an old key is one of this folder: its first line with a folder
// names it. One that names a folder of another key was held in a workspace.
func (s projectStore) beganHere(entries []json.RawMessage) bool {
	for _, line := range entries {
		if e, err := transcript.ParseEntry(line); err == nil && e.CWD != "" {
			return e.CWD == s.folder || transcript.ProjectKey(e.CWD) != s.old
		}
	}
	return false
}

// Append implements [transcript.Store].
func (s projectStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	key, err := s.home(ctx, key)
	if err != nil {
		return err
	}
	return s.FileStore.Append(ctx, key, entries)
}

// Load implements [transcript.Store].
func (s projectStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	key, err := s.home(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.FileStore.Load(ctx, key)
}

// Lock implements [transcript.Locker].
func (s projectStore) Lock(ctx context.Context, key transcript.Key) (unlock func() error, err error) {
	if key, err = s.home(ctx, key); err != nil {
		return nil, err
	}
	return s.FileStore.Lock(ctx, key)
}

// ListSubkeys implements [transcript.SubkeyLister].
func (s projectStore) ListSubkeys(ctx context.Context, key transcript.Key) ([]string, error) {
	key, err := s.home(ctx, key)
	if err != nil {
		return nil, err
	}
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
	key, err := s.home(ctx, key)
	if err != nil {
		return err
	}
	return s.FileStore.Delete(ctx, key)
}
