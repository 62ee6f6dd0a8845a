// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"path/filepath"
	"testing"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/session/storetest"
)

func TestMemoryStore_PassesTheSuite(t *testing.T) {
	storetest.Run(t, func(*testing.T) (session.Store, func() session.Store) {
		return session.NewMemoryStore(), nil
	})
}

func TestFileStore_PassesTheSuite(t *testing.T) {
	for _, policy := range []session.SyncPolicy{session.SyncAlways, session.SyncInterval, session.SyncNever} {
		t.Run(policy.String(), func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (session.Store, func() session.Store) {
				path := filepath.Join(t.TempDir(), "new", "log.jsonl")
				open := func() session.Store { return openLogFile(t, path, &session.FileOptions{Sync: policy}) }
				return open(), open
			})
		})
	}
}

// openLogFile opens a log that the end of the test closes.
func openLogFile(t testing.TB, path string, opts *session.FileOptions) *session.FileStore {
	t.Helper()
	s, err := session.OpenFile(path, opts)
	if err != nil {
		t.Fatalf("OpenFile = %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
