// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"os"
	"sync"
)

// A pack is a file of many small contents, one after the other.
type pack struct {
	file *os.File
	name string
	// reading is held by readers, so that what they read is not cut off. It is taken after Store.mu, as the last lock.
	reading sync.RWMutex

	objects []*object // in the order of their offsets, also dead ones; guarded by Store.appending
	// Both are changed with Store.appending and Store.mu held; live also with Store.mu alone.
	end, live int64
}

// halfDead reports whether rewriting the pack frees at least as much as it copies, and enough. It needs Store.mu.
func (s *Store) halfDead(p *pack) bool {
	dead := p.end - p.live
	return p.live == 0 || dead >= p.live && dead >= s.packSize/64
}

func (p *pack) close() error {
	p.reading.Lock()
	defer p.reading.Unlock()
	return p.file.Close()
}

// putSmall keeps a content that is in memory, unless it is there.
func (s *Store) putSmall(h Hash, content []byte) error {
	if h == empty || s.hold(h) {
		return nil
	}
	s.appending.Lock()
	defer s.appending.Unlock()
	if s.hold(h) { // another goroutine was faster
		return nil
	}
	size := int64(len(content))
	if !s.take(size) {
		if s.makeRoom(size); !s.take(size) {
			return s.full(size)
		}
	}
	o := &object{refs: 1, size: size}
	if err := s.appendLocked(o, content); err != nil {
		s.give(size)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[h] = o
	s.contents += size
	return nil
}

// appendLocked writes a content to the end of a pack, and sets its position in the object. A failed write leaves nothing.
func (s *Store) appendLocked(o *object, content []byte) error {
	p, err := s.packForLocked(o.size)
	if err != nil {
		return err
	}
	if _, err := s.sys.writeAt(p.file, content, p.end); err != nil {
		_ = p.file.Truncate(p.end) // else the next content does away with it
		return err
	}
	p.objects = append(p.objects, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.refs > 0 { // else it died while it was moved
		if o.pack != nil {
			o.pack.live -= o.size
		}
		p.live += o.size
	}
	o.pack, o.offset = p, p.end
	p.end += o.size
	return nil
}

// packForLocked is a pack with room for n bytes.
func (s *Store) packForLocked(n int64) (*pack, error) {
	if p := s.current; p != nil && p.end+n <= s.packSize {
		return p, nil
	}
	f, name, err := s.create("pack")
	if err != nil {
		return nil, err
	}
	p := &pack{file: f, name: name}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packs[p] = true
	s.current = p
	return p, nil
}
