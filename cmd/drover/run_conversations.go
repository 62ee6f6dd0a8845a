// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/leftover"
)

// conversations are what --resume continues. The home of a run is gone with the run, so they are kept in
// a folder of the user's. The zero value keeps nothing.
type conversations struct {
	store *transcript.FileStore
	dir   string // of the store
	// project is the folder that they belong to: the one that drover was started in.
	project string
}

// conversations opens the folder, unless no model answers in the run.
func (o *runOptions) conversations(model *modelSource) (*conversations, error) {
	if model.pretended {
		return &conversations{}, nil
	}
	dir, err := o.state, error(nil)
	if dir == "" {
		dir, err = leftover.StateFolder()
	}
	if err == nil {
		c := &conversations{dir: filepath.Join(dir, "conversations")}
		if c.store, err = transcript.NewFileStore(c.dir); err == nil {
			return c, nil
		}
	}
	return nil, advice.Wrap(fmt.Errorf("the folder in which conversations are kept: %w", err),
		"set XDG_STATE_HOME to a folder that can be written to")
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
	store := newProjectStore(c.store, c.project)
	store.dir = c.dir
	base.Store, base.StoreEager = store, true
}

// A projectStore keeps all conversations as those of one folder: workspaces are never in the same folder twice.
//
// The CLI's own names for folders are not unique: a/b and a-b have the same. The keys here have a hash of the path besides.
// A conversation that an earlier version stored under the CLI's name stays there, and goes on in its folder.
type projectStore struct {
	sessionStore
	dir          string // of the store
	folder       string
	project, old string
	other        func() string // another folder with the same old key, or ""

	mu   sync.Mutex
	keys map[string]string // the project key of each session so far
}

type sessionStore interface {
	transcript.Store
	transcript.SessionLister
	transcript.SummaryLister
	transcript.Deleter
	transcript.SubkeyLister
	transcript.Locker
}

func newProjectStore(store sessionStore, folder string) *projectStore {
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	name := transcript.ProjectKey(folder)
	hash := sha256.Sum256([]byte(folder))
	return &projectStore{
		sessionStore: store, folder: folder, project: name + "-" + hex.EncodeToString(hash[:16]), old: name,
		other: sync.OnceValue(func() string {
			return sameKey(filepath.VolumeName(folder)+string(filepath.Separator), name, folder)
		}),
		keys: map[string]string{},
	}
}

// sameKey is a folder below dir, not this one, that has the key, or "".
func sameKey(dir, key, folder string) string {
	entries, _ := os.ReadDir(dir) // what cannot be listed is left out
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		got := transcript.ProjectKey(path)
		if got == key && path != folder {
			return path
		}
		if strings.HasPrefix(key, got+"-") {
			if found := sameKey(path, key, folder); found != "" {
				return found
			}
		}
	}
	return ""
}

// home is the key of a conversation in the store. It is chosen once: conversations do not move.
func (s *projectStore) home(ctx context.Context, key transcript.Key) (transcript.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	project, known := s.keys[key.SessionID]
	if !known {
		var err error
		if project, err = s.choose(ctx, key.SessionID); err != nil {
			return key, err
		}
		s.keys[key.SessionID] = project
	}
	key.ProjectKey = project
	return key, nil
}

// choose is the old project key for a conversation of this folder that has it, else the new one. The first folder that the
// conversation names decides. One that names only a workspace is of this folder if no other folder has the old key.
func (s *projectStore) choose(ctx context.Context, session string) (project string, err error) {
	entries, err := s.sessionStore.Load(ctx, transcript.Key{ProjectKey: s.old, SessionID: session})
	cwd := transcript.Summary{}.Fold(entries).CWD
	switch {
	case err != nil:
		return "", err
	case len(entries) == 0, cwd != s.folder && cwd != "" && transcript.ProjectKey(cwd) == s.old:
		return s.project, nil
	case cwd != s.folder && s.other() != "":
		from, to := filepath.Join(s.dir, s.old, session), filepath.Join(s.dir, s.project)
		return "", advice.Wrap(fmt.Errorf("%w: conversation %s is of this folder or of %s, and does not name either", transcript.ErrNotFound, session, s.other()),
			"if it is of this folder, move %s.jsonl, and %[1]s if it is there, to the folder %s", from, to)
	}
	return s.old, nil
}

// Append implements [transcript.Store].
func (s *projectStore) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	key, err := s.home(ctx, key)
	if err != nil {
		return err
	}
	return s.sessionStore.Append(ctx, key, entries)
}

// Load implements [transcript.Store].
func (s *projectStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	key, err := s.home(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.sessionStore.Load(ctx, key)
}

// Lock implements [transcript.Locker].
func (s *projectStore) Lock(ctx context.Context, key transcript.Key) (unlock func() error, err error) {
	if key, err = s.home(ctx, key); err != nil {
		return nil, err
	}
	return s.sessionStore.Lock(ctx, key)
}

// ListSubkeys implements [transcript.SubkeyLister].
func (s *projectStore) ListSubkeys(ctx context.Context, key transcript.Key) ([]string, error) {
	key, err := s.home(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.sessionStore.ListSubkeys(ctx, key)
}

// ListSessions implements [transcript.SessionLister].
func (s *projectStore) ListSessions(ctx context.Context, _ string) ([]transcript.StoredSession, error) {
	return listed(ctx, s, s.sessionStore.ListSessions, func(l transcript.StoredSession) string { return l.SessionID })
}

// ListSummaries implements [transcript.SummaryLister].
func (s *projectStore) ListSummaries(ctx context.Context, _ string) ([]transcript.Summary, error) {
	return listed(ctx, s, s.sessionStore.ListSummaries, func(l transcript.Summary) string { return l.SessionID })
}

// listed are the conversations of the folder under both keys. Those that may be of another folder are left out.
func listed[T any](ctx context.Context, s *projectStore, list func(context.Context, string) ([]T, error), id func(T) string) ([]T, error) {
	var all []T
	for _, project := range []string{s.project, s.old} {
		found, err := list(ctx, project)
		if err != nil {
			return nil, err
		}
		for _, l := range found {
			key, err := s.home(ctx, transcript.Key{SessionID: id(l)})
			if err != nil && !errors.Is(err, transcript.ErrNotFound) {
				return nil, err
			}
			if key.ProjectKey == project {
				all = append(all, l)
			}
		}
	}
	return all, nil
}

// Delete implements [transcript.Deleter].
func (s *projectStore) Delete(ctx context.Context, key transcript.Key) error {
	key, err := s.home(ctx, key)
	if err != nil {
		return err
	}
	return s.sessionStore.Delete(ctx, key)
}
