// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/persist"
	"github.com/drover-agents/drover/internal/uuid"
)

// Options configures a [Session]. Nil and the zero value are ready to use.
type Options struct {
	// ID names the session. Empty means a new one of NewID, or the one in the store.
	ID string
	// Tags are for whoever looks for sessions. A store keeps those that it was begun with.
	Tags map[string]string
	// Parent is the session that this one belongs to; see [Session.Children].
	Parent *Session
	// Now gives the time of events that have none. Nil means time.Now.
	Now func() time.Time
	// NewID makes ids. Nil makes random UUIDs.
	NewID func() string
	// Logger hears of what is not the caller's fault: reducers that fail, checkpoints that cannot be
	// written. Nil discards.
	Logger *slog.Logger
}

// A Session is a log of events and the state that reducers make of it. It is safe for concurrent use.
type Session struct {
	head   Head
	opts   Options
	parent *Session
	store  Store // nil in memory
	// archive has the entries up to base.
	archive Store

	// order is held by whoever appends to the log, from the choice of the number until every reducer
	// has seen the entry. It comes before mu.
	order        sync.Mutex
	nextTx       int64
	checkpointed int64
	open         map[int64]*Tx

	// mu guards what readers look at. It is held for moments, never while a reducer or a store works.
	mu       sync.RWMutex
	closed   bool
	log      persist.Vector[*Entry] // those above base
	base     int64                  // the store alone has the entries up to it
	last     int64
	state    *state
	logCells []cell // of the slices of policy Log
	slices   map[reflect.Type]*slice
	routes   map[reflect.Type][]*slice   // by the type of the event
	types    map[event.Kind]reflect.Type // of slices and of the events of reducers
	grown    chan struct{}               // closed by the next append; nil while nobody waits
	children []*Session
	saved    *checkpoint // from the store: slices that fit it are not folded from the beginning
}

// New makes a session in memory.
func New(opts *Options) *Session {
	s := newSession(opts)
	s.head = Head{Version: EncodingVersion, ID: s.opts.ID, Tags: maps.Clone(s.opts.Tags), Created: s.opts.Now()}
	if s.head.ID == "" {
		s.head.ID = s.opts.NewID()
	}
	s.join(s.opts.Parent)
	return s
}

func newSession(opts *Options) *Session {
	s := &Session{
		open: map[int64]*Tx{}, slices: map[reflect.Type]*slice{}, routes: map[reflect.Type][]*slice{},
		types: map[event.Kind]reflect.Type{}, state: &state{},
	}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.NewID == nil {
		s.opts.NewID = uuid.New
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	registerBuiltin(s)
	return s
}

func (s *Session) join(parent *Session) {
	if parent == nil {
		return
	}
	s.parent, s.head.Parent = parent, parent.ID()
	parent.mu.Lock()
	defer parent.mu.Unlock()
	parent.children = append(parent.children, s)
}

// ID is the name of the session.
func (s *Session) ID() string { return s.head.ID }

// Tags returns a copy of the tags.
func (s *Session) Tags() map[string]string { return maps.Clone(s.head.Tags) }

// Parent is the session that this one belongs to, or nil.
func (s *Session) Parent() *Session { return s.parent }

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

// Dispatch appends an event to the log and returns its number. It takes an [event.Event], a payload, or
// a value of any other type, which becomes the payload; pointers count as what they point to. A value
// must not be changed afterwards.
//
// The context tells which tool call dispatches: the transaction in it, or else the call that a tool's
// handler is answering. An error means that nothing was kept and nothing has changed. The context does
// not interrupt: an entry is appended whole or, if the context has ended before, not at all.
func (s *Session) Dispatch(ctx context.Context, v any) (int64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, fmt.Errorf("session: dispatching %T: %w", v, err)
	}
	e, err := s.envelope(v)
	if err != nil {
		return 0, err
	}
	s.order.Lock()
	defer s.order.Unlock()
	entry := &Entry{Event: e}
	if err := s.causeLocked(ctx, entry); err != nil {
		return 0, err
	}
	if err := s.appendLocked(entry); err != nil {
		return 0, err
	}
	return entry.Pos, nil
}

// envelope makes an event of anything.
func (s *Session) envelope(v any) (event.Event, error) {
	if e, ok := v.(*event.Event); ok && e != nil {
		v = *e
	}
	e, ok := v.(event.Event)
	if ok {
		v = e.Payload
	}
	payload, err := payloadOf(v)
	if err != nil {
		return event.Event{}, err
	}
	e.Payload, e.Kind = payload, payload.EventKind()
	if e.Time.IsZero() {
		e.Time = s.opts.Now()
	}
	return e, nil
}

// appendLocked numbers an entry, keeps it, and lets every reducer see it.
func (s *Session) appendLocked(entry *Entry) error {
	if err := s.keepLocked(entry); err != nil {
		return err
	}
	s.noteOverlapLocked(entry)
	changed, failed := s.foldLocked(entry, State, Log)
	s.publishLocked(entry, func() {
		s.state = s.state.thaw()
		s.state.live = s.state.live.Append(entry.Pos)
		for _, f := range changed {
			s.setItemsLocked(f)
		}
	})
	s.reportLocked(entry, failed)
	s.checkpointIfDueLocked()
	return nil
}

// keepLocked gives the entry its number and puts it into the store.
func (s *Session) keepLocked(entry *Entry) error {
	if s.closed {
		return ErrClosed
	}
	entry.Pos = s.last + 1
	if s.store == nil {
		return nil
	}
	record, err := encode(entry)
	if err != nil {
		return err
	}
	if err := s.store.Append([]Record{record}); err != nil {
		return fmt.Errorf("session: %s was not kept and has changed nothing: %w", entry.Event.Kind, err)
	}
	return nil
}

// publishLocked makes an entry, and the state after it, visible.
func (s *Session) publishLocked(entry *Entry, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.log, s.last = s.log.Append(entry), entry.Pos
	if s.grown != nil {
		close(s.grown)
		s.grown = nil
	}
}

// Close ends the session: nothing can be dispatched any more, readers come to their end, and the store
// is closed. What was dispatched can still be read. It may be called more than once.
func (s *Session) Close() error {
	s.order.Lock()
	defer s.order.Unlock()
	if s.closed {
		return nil
	}
	if s.store != nil {
		s.checkpointLocked()
	}
	s.mu.Lock()
	s.closed = true
	if s.grown != nil {
		close(s.grown)
		s.grown = nil
	}
	s.mu.Unlock()
	s.leave()
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

func (s *Session) leave() {
	if s.parent == nil {
		return
	}
	s.parent.mu.Lock()
	defer s.parent.mu.Unlock()
	s.parent.children = slices.DeleteFunc(s.parent.children, func(c *Session) bool { return c == s })
}
