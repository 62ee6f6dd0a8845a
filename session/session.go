// SPDX-License-Identifier: Apache-2.0

package session

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/persist"
	"github.com/drover-agents/drover/internal/safelog"
)

// Options configures a [Session]. Nil and the zero value are ready to use.
type Options struct {
	// ID names the session. Empty means a new one of NewID, or the one in the store.
	ID string
	// Tags are for programs that search for sessions. A store keeps those that it was begun with.
	Tags map[string]string
	// Parent is the session that this one belongs to; see [Session.Children]. It may be closed.
	Parent *Session
	// Now gives the time of events that have none. Nil means time.Now.
	Now func() time.Time
	// NewID makes ids. Nil makes random UUIDs.
	NewID func() string
	// Logger receives failures that the caller did not cause: reducers that fail, checkpoints that cannot be
	// written. Its handler must not use the session, which waits for it. Nil discards them.
	Logger *slog.Logger
}

// A Session is a log of events and the state that reducers make of it. It is safe for concurrent use.
type Session struct {
	head  Head
	opts  Options
	store Store // nil in memory; it alone has the entries up to base

	// order is held by the goroutine that appends to the log, from the choice of the number until every
	// reducer has seen the entry. It comes before mu.
	order        logOrder
	nextTx       int64
	checkpointed int64 // the last entry of the last checkpoint
	tried        int64 // the last entry when one was tried
	warnedOfMain bool
	open         map[int64]*Tx
	abandoned    []*Tx                   // open, and to be rolled back as soon as the store allows
	routes       map[reflect.Type]*route // by the type of the event
	changed      []folded                // what reducers made of the entry at hand
	unknown      map[event.Kind]bool     // seen by reducers before their type was known

	// mu guards what readers look at. It is held for moments, never while a reducer or a store works. A goroutine
	// that changes these holds order too, so that either lock is enough to read them; children alone belong to mu.
	mu       sync.RWMutex
	closed   bool
	log      persist.Vector[*Entry] // those above base
	base     int64                  // the store alone has the entries up to it
	last     int64
	state    *state
	logCells []cell // of the slices of policy Log
	slices   map[reflect.Type]*slice
	types    map[event.Kind]reflect.Type // of slices, and of events that were dispatched or have reducers
	grown    chan struct{}               // closed by the next append; nil while no reader waits
	children []*Session
	saved    *checkpoint // from the store: slices that fit it are not folded from the beginning
}

// New makes a session in memory.
func New(opts *Options) *Session {
	s := newSession(opts)
	s.head = s.newHead()
	s.join()
	return s
}

func newSession(opts *Options) *Session {
	s := &Session{
		open: map[int64]*Tx{}, slices: map[reflect.Type]*slice{}, routes: map[reflect.Type]*route{},
		types: map[event.Kind]reflect.Type{}, unknown: map[event.Kind]bool{}, state: &state{},
	}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Now, s.opts.NewID = orElse(s.opts.Now, time.Now), orElse(s.opts.NewID, ident.NewUUID)
	s.opts.Logger = safelog.Logger(s.opts.Logger)
	registerBuiltin(s)
	return s
}

func (s *Session) newHead() Head {
	head := Head{Version: EncodingVersion, ID: s.opts.ID, Tags: maps.Clone(s.opts.Tags), Created: s.opts.Now()}
	if head.ID == "" {
		head.ID = s.opts.NewID()
	}
	if s.opts.Parent != nil {
		head.Parent = s.opts.Parent.ID()
	}
	return head
}

// join makes a session known to its parent, when it is ready.
func (s *Session) join() {
	if s.opts.Parent == nil {
		return
	}
	s.opts.Parent.mu.Lock()
	defer s.opts.Parent.mu.Unlock()
	s.opts.Parent.children = append(s.opts.Parent.children, s)
}

func (s *Session) leave() {
	if s.opts.Parent == nil {
		return
	}
	s.opts.Parent.mu.Lock()
	defer s.opts.Parent.mu.Unlock()
	s.opts.Parent.children = slices.DeleteFunc(s.opts.Parent.children, func(c *Session) bool { return c == s })
}

// ID is the name of the session.
func (s *Session) ID() string { return s.head.ID }

// Tags returns a copy of the tags.
func (s *Session) Tags() map[string]string { return maps.Clone(s.head.Tags) }

// Parent is the session that this one belongs to, or nil.
func (s *Session) Parent() *Session { return s.opts.Parent }

// Children are the open sessions that were made with this one as their parent, in order.
func (s *Session) Children() []*Session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.children)
}

// Now is the time by the session's clock.
func (s *Session) Now() time.Time { return s.opts.Now() }

// NewID makes an id by the session's source of ids.
func (s *Session) NewID() string { return s.opts.NewID() }

// Last is the number of the last entry, or zero.
func (s *Session) Last() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last
}

// Close ends the session: nothing can be dispatched any more, readers end, and the store is closed. The slices that
// were queried, and the log above the checkpoint that the session was opened with, can still be read. The log below
// it is in the store: [Session.After] and [View.Err] return an error for it. Open transactions do not end: opening
// the store again rolls them back. Close may be called more than once.
func (s *Session) Close() error {
	s.order.Lock()
	defer s.order.Unlock()
	if s.closed {
		return nil
	}
	s.checkpointLocked()
	s.mu.Lock()
	s.closed = true
	s.wakeLocked()
	s.mu.Unlock()
	s.leave()
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}
