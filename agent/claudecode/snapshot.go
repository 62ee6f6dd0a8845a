// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/ident"
)

var _ agent.Snapshotter = (*Adapter)(nil)

// Snapshot implements [agent.Snapshotter]. The token is that of the conversation and how many entries it has in
// the store, which only adds to them.
func (a *Adapter) Snapshot(ctx context.Context, req agent.Request) (string, error) {
	dir, err := workDir(req)
	if err != nil {
		return "", err
	}
	o := a.base
	a.keep(&o)
	if o.Store == nil || !ident.ValidUUID(req.Resume) {
		return req.Resume, nil
	}
	entries, err := o.Store.Load(ctx, transcript.Key{ProjectKey: transcript.ProjectKey(cmp.Or(dir, o.Dir, ".")), SessionID: req.Resume})
	if err != nil {
		return "", fmt.Errorf("claudecode: reading the conversation %s: %w", req.Resume, err)
	}
	if len(entries) == 0 {
		return req.Resume, nil
	}
	return fmt.Sprintf("%s@%d", req.Resume, len(entries)), nil
}

// splitToken is the conversation of a token, and how many entries of it count, where zero means all, or the line at which it goes on.
func splitToken(token string) (session string, entries int, at string) {
	session, place, _ := strings.Cut(token, "@")
	if !ident.ValidUUID(session) {
		return token, 0, ""
	}
	if ident.ValidUUID(place) {
		return session, 0, place
	}
	if n, err := strconv.Atoi(place); err == nil && n > 0 {
		return session, n, ""
	}
	return token, 0, ""
}

// A snapshotStore has a conversation as it was once. It lists no subkeys: the transcripts of subagents may have gone on
// since then, and a CLI that forks does not look for them.
type snapshotStore struct {
	transcript.Store
	session string
	entries int
}

// Load implements [transcript.Store].
func (s snapshotStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	all, err := s.Store.Load(ctx, key)
	if key.SessionID == s.session && key.Subpath == "" && len(all) > s.entries {
		all = all[:s.entries]
	}
	return all, err
}

// Lock implements [transcript.Locker].
func (s snapshotStore) Lock(ctx context.Context, key transcript.Key) (unlock func() error, err error) {
	if locker, ok := s.Store.(transcript.Locker); ok {
		return locker.Lock(ctx, key)
	}
	return func() error { return nil }, nil
}
