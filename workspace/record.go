// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/session"
)

// KindOpened is the kind of a [Record] in the log of a session.
const KindOpened event.Kind = "workspace:opened"

// A Record is the event of a workspace that was opened for a session: the latest is the one in use. Names in it that
// are not UTF-8 do not survive a log on disk.
type Record struct {
	// TempDir is the folder in which the agent works.
	TempDir   string    `json:"tempDir"`
	Previews  []Preview `json:"previews"`
	CreatedAt time.Time `json:"createdAt"`
	SessionID string    `json:"sessionId,omitzero"`
}

// EventKind implements [event.Payload].
func (Record) EventKind() event.Kind { return KindOpened }

// String is the folder, and how many mounts are in it.
func (r Record) String() string { return r.TempDir + ", " + safetext.Plural(len(r.Previews), "mount") }

func (w *Workspace) record(ctx context.Context, s *session.Session) error {
	if s == nil {
		return nil
	}
	record := Record{TempDir: w.root, Previews: w.Previews(), CreatedAt: w.created, SessionID: s.ID()}
	if _, err := s.Dispatch(ctx, record); err != nil {
		return err
	}
	_, err := s.Dispatch(ctx, session.Workspace{Root: w.root})
	return err
}
