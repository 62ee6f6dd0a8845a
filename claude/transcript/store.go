// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A Key names one transcript in a [Store].
type Key struct {
	// ProjectKey names the project; [ProjectKey] makes it from a working directory.
	ProjectKey string `json:"projectKey"`
	// SessionID is the session's UUID.
	SessionID string `json:"sessionId"`
	// Subpath names a transcript below the session, such as "subagents/agent-a1". Empty means the main conversation.
	Subpath string `json:"subpath,omitempty"`
}

func (k Key) String() string {
	s := k.ProjectKey + "/" + k.SessionID
	if k.Subpath != "" {
		s += "/" + k.Subpath
	}
	return s
}

// Validate refuses, with [ErrBadKey], a key whose path could lead out of the store on any operating
// system: absolute or empty parts, "..", backslashes, colons, control characters.
func (k Key) Validate() error {
	if err := checkID(k.SessionID); err != nil {
		return fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	if strings.Contains(k.ProjectKey, "/") || !safePath(k.ProjectKey) {
		return fmt.Errorf("%w: project %.80q", ErrBadKey, k.ProjectKey)
	}
	if k.Subpath != "" && !safePath(k.Subpath) {
		return fmt.Errorf("%w: subpath %.80q", ErrBadKey, k.Subpath)
	}
	return nil
}

// safePath reports whether every part of a slash-separated path is a plain name.
func safePath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		bad := func(r rune) bool { return r == '\\' || r == ':' || unicode.IsControl(r) }
		if part == "" || part == "." || part == ".." || strings.ContainsFunc(part, bad) {
			return false
		}
	}
	return filepath.IsLocal(filepath.FromSlash(path))
}

// A Store keeps transcripts outside of the CLI's disk. Its methods may be called from
// several goroutines; appends to one key come one after the other. A method returns soon after its
// context ends. Every key must pass [Key.Validate]. The package storetest checks all of this.
//
// A store may also be a [SessionLister], a [SummaryLister], a [Deleter], a [SubkeyLister] and a [Locker].
type Store interface {
	// Append adds entries, each a JSON object, after those that key has. Without entries it does
	// nothing; this package never calls it so. After an error the entries may or may not be stored.
	Append(ctx context.Context, key Key, entries []json.RawMessage) error
	// Load returns all entries of key in the order in which they were appended, each equal as JSON
	// to the appended one. A key without entries is not an error.
	Load(ctx context.Context, key Key) ([]json.RawMessage, error)
}

// A StoredSession is a session that a store has.
type StoredSession struct {
	SessionID string
	Modified  time.Time // of the last append to the main conversation
}

// A SessionLister lists the sessions of a project in any order: those with a main conversation.
type SessionLister interface {
	ListSessions(ctx context.Context, projectKey string) ([]StoredSession, error)
}

// A SummaryLister lists the sessions of a project with their summaries, in any order.
type SummaryLister interface {
	ListSummaries(ctx context.Context, projectKey string) ([]Summary, error)
}

// A Deleter removes transcripts. A key without subpath removes the session and all below it, a key
// with a subpath only that transcript. Deleting a missing key is not an error.
type Deleter interface {
	Delete(ctx context.Context, key Key) error
}

// A SubkeyLister lists the subpaths of a session, in any order. It ignores the subpath of key.
type SubkeyLister interface {
	ListSubkeys(ctx context.Context, key Key) ([]string, error)
}

// A Locker keeps two programs from continuing one session at once: each would store its turns after those
// of the other, and the conversation would lose the turns of one.
type Locker interface {
	// Lock returns [ErrInUse] at once if another user has the lock. The lock is held until unlock is called
	// or the process ends; a second call of unlock does nothing. The subpath of key is ignored.
	Lock(ctx context.Context, key Key) (unlock func() error, err error)
}

// checkEntries refuses entries that a line-based store could not return.
func checkEntries(key Key, entries []json.RawMessage) error {
	if err := key.Validate(); err != nil {
		return err
	}
	for i, e := range entries {
		if !plainjson.IsObject(e) {
			return fmt.Errorf("transcript: entry %d for %s is not a JSON object", i, key)
		}
	}
	return nil
}
