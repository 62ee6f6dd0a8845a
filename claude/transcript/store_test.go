// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"testing"

	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/claude/transcript/storetest"
)

func TestMemoryStore_Suite(t *testing.T) {
	storetest.RunStoreSuite(t, func(t *testing.T) transcript.Store { return transcript.NewMemoryStore() })
}

func TestFileStore_Suite(t *testing.T) {
	storetest.RunStoreSuite(t, func(t *testing.T) transcript.Store { return newFileStore(t, t.TempDir()) })
}

// bare hides the optional interfaces of a store.
type bare struct{ transcript.Store }

func TestStore_WithoutOptionalInterfaces(t *testing.T) {
	storetest.RunStoreSuite(t, func(t *testing.T) transcript.Store { return bare{transcript.NewMemoryStore()} })
}

func newFileStore(t *testing.T, dir string) *transcript.FileStore {
	t.Helper()
	s, err := transcript.NewFileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
