// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"maps"
	"slices"
)

// rewriteHalfDead reclaims the room of dead contents of a pack. A failure is retried when its next content dies.
func (s *Store) rewriteHalfDead(p *pack) {
	s.appending.Lock()
	defer s.appending.Unlock()
	s.mu.RLock()
	wanted := s.packs[p] && s.halfDead(p)
	s.mu.RUnlock()
	if wanted {
		_ = s.rewriteLocked(p)
	}
}

// makeRoom makes the room of all dead contents free, if a content of that size fits then. It needs appending.
func (s *Store) makeRoom(size int64) {
	for _, p := range s.roomIn(size) {
		if s.rewriteLocked(p) != nil {
			return
		}
	}
}

// roomIn is which packs must be rewritten so that a content of that size fits: those first that cost
// least. It returns no packs if all of them would not be enough.
func (s *Store) roomIn(size int64) (packs []*pack) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	missing := s.used + size - s.max
	for _, p := range slices.SortedFunc(maps.Keys(s.packs), func(a, b *pack) int { return cmp.Compare(a.live, b.live) }) {
		if missing <= 0 {
			return packs
		}
		if dead := p.end - p.live; dead > 0 {
			packs = append(packs, p)
			missing -= dead
		}
	}
	if missing > 0 {
		return nil
	}
	return packs
}

// rewriteLocked moves the live contents of a pack to another one, from its end on, and cuts them off as it goes, so
// that at most one MiB is there twice. A failure loses nothing.
func (s *Store) rewriteLocked(p *pack) error {
	if s.current == p {
		s.current = nil
	}
	buf := newBuffer()
	defer buf.free()
	for moved := int64(0); len(p.objects) > 0; {
		o := p.objects[len(p.objects)-1]
		if s.lives(o) {
			if moved+o.size > maxSmall {
				s.cutLocked(p, o.offset+o.size)
				moved = 0
			}
			if err := s.moveLocked(o, buf.bytes[:o.size]); err != nil {
				return err
			}
			moved += o.size
		}
		p.objects = p.objects[:len(p.objects)-1]
	}
	return s.removePackLocked(p)
}

func (s *Store) lives(o *object) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return o.refs > 0
}

// moveLocked writes a content to another pack. Its bytes count twice until it is cut off here.
func (s *Store) moveLocked(o *object, content []byte) error {
	if _, err := o.pack.file.ReadAt(content, o.offset); err != nil {
		return err
	}
	if err := s.appendLocked(o, content); err != nil {
		return err
	}
	s.give(-o.size)
	return nil
}

// cutLocked makes a pack end earlier. Its readers have moved elsewhere or hold reading.
func (s *Store) cutLocked(p *pack, end int64) {
	p.reading.Lock()
	err := p.file.Truncate(end)
	p.reading.Unlock()
	if err != nil {
		return // it is removed soon
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= p.end - end
	p.end = end
}

func (s *Store) removePackLocked(p *pack) error {
	s.mu.Lock()
	delete(s.packs, p)
	s.mu.Unlock()
	_ = p.close()
	if err := s.root.Remove(p.name); err != nil {
		return err
	}
	s.give(p.end)
	return nil
}
