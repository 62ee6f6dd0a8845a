// SPDX-License-Identifier: Apache-2.0

package record

import (
	"iter"

	"github.com/drover-agents/drover/session"
)

// Slices yields the built-in parts of a session's state that have a value, with their names.
func Slices(s *session.Session) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		_ = latest[session.Plan]("plan", s, yield) &&
			latest[session.ModifiedFiles]("modifiedFiles", s, yield) &&
			latest[session.PolicyState]("policyState", s, yield) &&
			latest[session.ToolPermissions]("toolPermissions", s, yield) &&
			latest[session.VisibilityOverrides]("visibility", s, yield) &&
			latest[session.Workspace]("workspace", s, yield)
	}
}

func latest[T any](name string, s *session.Session, yield func(string, any) bool) bool {
	value, ok := session.Query[T](s).Latest()
	return !ok || yield(name, value)
}

// SessionAt makes the session as it was after an entry of the log; zero means the last one. At is the position of that entry. The
// session has no store, and must be closed.
func (r *Run) SessionAt(pos int64) (s *session.Session, at int64, err error) {
	store := session.NewMemoryStore()
	if err := store.Init(session.Head{Version: session.EncodingVersion, ID: r.Session, Created: r.Began}); err != nil {
		return nil, 0, err
	}
	for entry, err := range r.Entries() {
		if err != nil {
			return nil, 0, err
		}
		if pos > 0 && entry.Pos > pos {
			break
		}
		kept, err := entry.Record()
		if err == nil {
			err = store.Append([]session.Record{kept})
		}
		if err != nil {
			return nil, 0, err
		}
		at = entry.Pos
	}
	s, err = session.Open(store, nil)
	return s, at, err
}
