// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrMirrorFull is reported when entries were dropped because the store was too slow. The mirrored transcript lacks them.
var ErrMirrorFull = errors.New("transcript: mirror is full, entries were dropped")

// ErrMirrorClosed is reported for entries that came after Close.
var ErrMirrorClosed = errors.New("transcript: mirror is closed")

// MirrorOptions configure a [Mirror]. The zero value is ready to use.
type MirrorOptions struct {
	// Dir is the config directory of the CLI that sends the frames. Empty means CLAUDE_CONFIG_DIR,
	// else ~/.claude. A frame for a file elsewhere is dropped and reported.
	Dir string
	// ProjectKey is the project of all keys. Empty means the directory that a frame names. A session resumed from a store
	// keeps the project it has there.
	ProjectKey string
	// Eager appends every frame at once. By default frames are gathered until Flush or Close, or
	// until there is more than MaxEntries or MaxBytes.
	Eager bool
	// MaxEntries is the number of entries that may wait. Zero means 500.
	MaxEntries int
	// MaxBytes is the size of the entries that may wait. Zero means 1 MiB.
	MaxBytes int
	// MaxPending is the size of the entries kept for a store that does not keep up; more are dropped. Zero means 256 MiB.
	MaxPending int
	// AppendTimeout limits one append. Zero means 60 seconds.
	AppendTimeout time.Duration
	// Retries are the pauses before further attempts after a failed append. Nil means 200 ms and 800 ms. An append that
	// timed out is not tried again: it might still arrive, and entries must not be stored twice.
	Retries []time.Duration
	// OnError is called for every lost batch, with its key, and for every dropped frame, with the zero Key. The mirror calls
	// it on a goroutine of its own, or in Add for a dropped frame. It must not block for long. Nil ignores the errors.
	OnError func(key Key, err error)
}

// A Mirror copies the transcript_mirror frames of a CLI into a [Store]. Its methods may be called
// from several goroutines. It owns one goroutine, which ends with [Mirror.Close].
type Mirror struct {
	store  Store
	opts   MirrorOptions
	roots  []string // spellings of the projects directory
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	wake    chan struct{} // has room for one
	waiting []batch       // in order of the first entry
	entries int           // in waiting
	bytes   int           // in waiting
	working int           // bytes that the goroutine is appending
	flushes []chan struct{}
	closed  bool
	refused error // of the last append; nil if that succeeded
}

// A batch is the entries of one file in one append.
type batch struct {
	key     Key
	entries []json.RawMessage
	bytes   int
}

// NewMirror starts a mirror into store.
func NewMirror(store Store, opts MirrorOptions) (*Mirror, error) {
	config, err := ConfigDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	opts.MaxEntries = cmp.Or(opts.MaxEntries, 500)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, 1<<20)
	opts.MaxPending = cmp.Or(opts.MaxPending, 256<<20)
	opts.AppendTimeout = cmp.Or(opts.AppendTimeout, time.Minute)
	if opts.Retries == nil {
		opts.Retries = []time.Duration{200 * time.Millisecond, 800 * time.Millisecond}
	}
	m := &Mirror{store: store, opts: opts, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	m.roots = []string{filepath.Join(config, "projects")}
	if real, err := filepath.EvalSymlinks(config); err == nil && real != config {
		m.roots = append(m.roots, filepath.Join(real, "projects"))
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	go m.run()
	return m, nil
}

// Add takes one frame. It never blocks; the entries must not be changed afterwards.
func (m *Mirror) Add(filePath string, entries []json.RawMessage) {
	if len(entries) == 0 {
		return
	}
	key, err := m.key(filePath)
	if err == nil {
		err = m.add(key, entries)
	}
	if err != nil {
		m.report(key, err)
	}
}

func (m *Mirror) key(filePath string) (Key, error) {
	for _, root := range m.roots {
		if key, err := KeyOfFile(root, filePath); err == nil {
			key.ProjectKey = cmp.Or(m.opts.ProjectKey, key.ProjectKey)
			return key, nil
		}
	}
	return Key{}, fmt.Errorf("%w: %.200q, expected below %s; give the mirror the CLI's config directory",
		ErrOutside, filePath, m.roots[0])
}

// KeyOfFile returns the key of a transcript file below the projects directory, or [ErrOutside].
func KeyOfFile(projectsDir, file string) (Key, error) {
	outside := fmt.Errorf("%w: %.200q", ErrOutside, file)
	rel, err := filepath.Rel(projectsDir, file)
	name, isTranscript := strings.CutSuffix(filepath.ToSlash(rel), ".jsonl")
	if err != nil || !filepath.IsAbs(file) || !isTranscript {
		return Key{}, outside
	}
	project, rest, _ := strings.Cut(name, "/")
	id, sub, nested := strings.Cut(rest, "/")
	key := Key{ProjectKey: project, SessionID: id, Subpath: sub}
	if key.Validate() != nil || nested && sub == "" {
		return Key{}, outside
	}
	return key, nil
}

func (m *Mirror) add(key Key, entries []json.RawMessage) error {
	size := 0
	for _, e := range entries {
		size += len(e)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrMirrorClosed
	}
	if m.bytes+m.working+size > m.opts.MaxPending {
		return fmt.Errorf("%w: %d entries", ErrMirrorFull, len(entries))
	}
	b := m.batchLocked(key)
	b.entries = append(b.entries, entries...)
	b.bytes += size
	m.entries += len(entries)
	m.bytes += size
	if m.opts.Eager || m.entries > m.opts.MaxEntries || m.bytes > m.opts.MaxBytes {
		m.wakeLocked()
	}
	return nil
}

func (m *Mirror) batchLocked(key Key) *batch {
	for i := range m.waiting {
		if m.waiting[i].key == key {
			return &m.waiting[i]
		}
	}
	m.waiting = append(m.waiting, batch{key: key})
	return &m.waiting[len(m.waiting)-1]
}

func (m *Mirror) wakeLocked() {
	select {
	case m.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// Flush appends all entries added before, and waits until they are stored or lost. A lost batch is not an error of Flush.
// The end of ctx is, and the work goes on; if the store has refused the last append, the error is the store's.
func (m *Mirror) Flush(ctx context.Context) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return m.wait(ctx, m.done)
	}
	flushed := make(chan struct{})
	m.flushes = append(m.flushes, flushed)
	m.wakeLocked()
	m.mu.Unlock()
	err := m.wait(ctx, flushed)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.refused != nil {
		return fmt.Errorf("transcript: flushing the mirror: %w", m.refused)
	}
	return err
}

func (m *Mirror) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("transcript: flushing the mirror: %w", ctx.Err())
	}
}

// closeGrace is how long Close waits for a store to notice that its context ended.
const closeGrace = time.Second

// Close flushes, ends the mirror and waits for its goroutine. When ctx ends first, appends are
// cancelled and what is left is reported as lost. It may be called repeatedly.
func (m *Mirror) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.wakeLocked()
	m.mu.Unlock()
	err := m.wait(ctx, m.done)
	m.cancel()
	if err == nil {
		return nil
	}
	select {
	case <-m.done:
		return err
	case <-time.After(closeGrace):
		return fmt.Errorf("%w; the store does not return from Append", err)
	}
}

func (m *Mirror) run() {
	defer close(m.done)
	for range m.wake {
		for {
			batches, flushes, closed := m.take()
			for _, b := range batches {
				m.append(b)
			}
			for _, f := range flushes {
				close(f)
			}
			if len(batches) > 0 || len(flushes) > 0 {
				continue // more may have come meanwhile
			}
			if closed {
				return
			}
			break
		}
	}
}

// take returns all waiting batches if there is a reason to append them now.
func (m *Mirror) take() (batches []batch, flushes []chan struct{}, closed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.working = 0
	due := m.closed || m.opts.Eager || len(m.flushes) > 0 || m.entries > m.opts.MaxEntries || m.bytes > m.opts.MaxBytes
	if !due {
		return nil, nil, m.closed
	}
	batches, flushes = m.waiting, m.flushes
	m.working = m.bytes
	m.waiting, m.flushes, m.entries, m.bytes = nil, nil, 0, 0
	return batches, flushes, m.closed
}

// append gives a batch to the store, with retries, and reports its loss.
func (m *Mirror) append(b batch) {
	err := m.try(b)
	for _, pause := range m.opts.Retries {
		if err == nil || errors.Is(err, context.DeadlineExceeded) || m.ctx.Err() != nil {
			break
		}
		select {
		case <-time.After(pause):
			err = m.try(b)
		case <-m.ctx.Done():
		}
	}
	if err != nil {
		m.report(b.key, fmt.Errorf("transcript: %d entries of %s were not mirrored: %w", len(b.entries), b.key, err))
	}
}

func (m *Mirror) try(b batch) (err error) {
	ctx, cancel := context.WithTimeout(m.ctx, m.opts.AppendTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the store panicked: %v", p)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.refused = err
	}()
	if err = m.store.Append(ctx, b.key, b.entries); err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err) // the store's error may not wrap it
	}
	return err
}

func (m *Mirror) report(key Key, err error) {
	if m.opts.OnError != nil {
		m.opts.OnError(key, err)
	}
}
