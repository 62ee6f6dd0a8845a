// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/drover-agents/drover/advice"
)

const (
	// maxSmall is the size of the largest content that goes into a pack.
	maxSmall = 1 << 20
	// maxPack is where a pack ends and the next one begins.
	maxPack = 64 << 20
)

// Options configures a [Store]. The zero value is ready to use.
type Options struct {
	// MaxBytes is the most that the contents may take on the disk. Zero means no limit.
	MaxBytes int64
}

// A Store keeps contents by their hash.
type Store struct {
	root     *os.Root
	max      int64
	packSize int64
	sys      system

	puts sync.RWMutex // held for reading by each Put, for writing by one that must be alone
	// appending is held by the goroutine that adds to packs or rewrites them. It is taken before mu.
	appending sync.Mutex
	current   *pack // the one that is added to; nil before the first

	mu       sync.RWMutex
	closed   bool
	files    int // how many were made, for their names
	objects  map[Hash]*object
	packs    map[*pack]bool
	contents int64 // bytes of all contents
	used     int64 // bytes on the disk, and those that are about to be written
}

// An object is one content. Its fields are guarded by Store.mu.
type object struct {
	refs int // none: the content is dead, and not in Store.objects
	size int64
	// A small content is in a pack, a large one in a file of its own.
	pack   *pack
	offset int64
	file   *file
}

// Open makes a store in a folder, which is made if it is missing and must be empty.
func Open(dir string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, advice.Wrap(fmt.Errorf("objects: making the store's folder: %w", err), "name a folder that can be written to")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("objects: opening the store's folder: %w", err), "name a folder that can be written to")
	}
	return &Store{
		root: root, max: opts.MaxBytes, packSize: maxPack, sys: realSystem,
		objects: map[Hash]*object{}, packs: map[*pack]bool{},
	}, nil
}

func (s *Store) create(kind string) (*os.File, string, error) {
	s.mu.Lock()
	s.files++
	name := fmt.Sprintf("%s-%06d", kind, s.files)
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, "", ErrClosed
	}
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	return f, name, err
}

// hold adds a reference to a content if it is kept, and reports whether it is.
func (s *Store) hold(h Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[h]
	if o != nil {
		o.refs++
	}
	return o != nil
}

// Retain adds a reference to a content. It panics if the content is not kept. After Close it does nothing.
func (s *Store) Retain(h Hash) {
	if h != empty && !s.hold(h) && !s.isClosed() {
		panic("objects: Retain of a content that is not kept")
	}
}

// Release gives back one reference. With the last one the content is dead, and its room is made free:
// that may rewrite a pack before Release returns. Giving back more than there are is a mistake of the
// caller, and panics. After Close it does nothing.
func (s *Store) Release(h Hash) {
	if h == empty {
		return
	}
	p, f := s.drop(h)
	if f != nil {
		s.removeFile(f)
	}
	if p != nil {
		s.rewriteHalfDead(p)
	}
}

// drop gives up a reference, and returns what is to be removed: a file, or a pack that may be rewritten.
func (s *Store) drop(h Hash) (*pack, *file) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil
	}
	o := s.objects[h]
	if o == nil {
		panic("objects: Release of a content that is not kept")
	}
	if o.refs--; o.refs > 0 {
		return nil, nil
	}
	delete(s.objects, h)
	s.contents -= o.size
	if o.file != nil {
		o.file.dead = true
		if o.file.readers.Load() > 0 {
			return nil, nil // the last of them removes it
		}
		return nil, o.file
	}
	o.pack.live -= o.size
	if !s.halfDead(o.pack) {
		return nil, nil
	}
	return o.pack, nil
}

// take takes n bytes of the room, if they are there.
func (s *Store) take(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.max > 0 && s.used+n > s.max {
		return false
	}
	s.used += n
	return true
}

func (s *Store) give(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
}

func (s *Store) full(size int64) *FullError {
	_, used := s.Usage()
	return &FullError{Size: size, Used: used, Limit: s.max}
}

// Usage is how many bytes all contents have, each counted once and with its holes, and how many the
// store takes on the disk: dead contents and what is being written belong to it, holes do not. Blocks
// that are shared with other files count, because they are the store's when those change.
func (s *Store) Usage() (contents, disk int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.contents, s.used
}

func (s *Store) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// Close closes the files of the store and leaves the folder, which is the caller's. Open readers of large contents go on.
func (s *Store) Close() error {
	s.puts.Lock()
	defer s.puts.Unlock()
	s.appending.Lock()
	defer s.appending.Unlock()
	s.mu.Lock()
	packs, closed := s.packs, s.closed
	s.closed, s.packs, s.objects = true, nil, nil
	s.current, s.contents, s.used = nil, 0, 0
	s.mu.Unlock()
	if closed {
		return nil
	}
	var problems []error
	for p := range packs {
		problems = append(problems, p.close())
	}
	return errors.Join(append(problems, s.root.Close())...)
}
