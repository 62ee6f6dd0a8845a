// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
)

// A file is a large content on the disk. Its fields but the first two are guarded by Store.mu, of which readers
// are added with a share.
type file struct {
	name    string
	disk    int64 // bytes without holes
	readers atomic.Int32
	dead    bool // the last reader removes it
}

// A claim is room that was taken for a content before it is written.
type claim struct {
	s    *Store
	size int64
}

// grow makes the claim at least n bytes.
func (c *claim) grow(n int64) error {
	more := n - c.size
	if more <= 0 {
		return nil
	}
	if !c.s.take(more) {
		c.s.appending.Lock()
		c.s.makeRoom(more)
		c.s.appending.Unlock()
		if !c.s.take(more) {
			return c.s.full(n)
		}
	}
	c.size = n
	return nil
}

// settle makes the claim exactly n bytes, of which it has more.
func (c *claim) settle(n int64) {
	c.s.give(c.size - n)
	c.size = n
}

// putLarge keeps a content in a file of its own. It is written while it is read, and removed if it is there already.
func (s *Store) putLarge(ctx context.Context, src io.ReaderAt) (Hash, int64, error) {
	room := &claim{s: s}
	size, data := extent(src)
	err := room.grow(data)
	var r *reading
	var f *file
	if err == nil {
		r, f, err = s.newFile(ctx, src, room)
	}
	if err != nil {
		room.settle(0)
		if _, full := errors.AsType[*FullError](err); full {
			return s.holdEqual(ctx, src, size, err)
		}
		return Hash{}, 0, err
	}
	room.settle(r.data)
	h := sumOf(r.digest)
	if !s.keepFile(h, r.size, f) {
		s.removeFile(f)
	}
	return h, r.size, nil
}

// newFile writes a content to a file, and leaves none if it fails.
func (s *Store) newFile(ctx context.Context, src io.ReaderAt, room *claim) (*reading, *file, error) {
	dst, name, err := s.create("file")
	if err != nil {
		return nil, nil, err
	}
	r, err := s.write(ctx, dst, src, room)
	if closing := dst.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = s.root.Remove(name)
		return nil, nil, err
	}
	return r, &file{name: name, disk: r.data}, nil
}

// holdEqual is for a content without room: none is needed if it is there already. That is only looked
// at if there is one of its size, because it means to read it.
func (s *Store) holdEqual(ctx context.Context, src io.ReaderAt, size int64, full error) (Hash, int64, error) {
	if !s.hasSize(size) {
		return Hash{}, 0, full
	}
	buf := newBuffer()
	defer buf.free()
	r := newReading(ctx, src, buf)
	if err := r.run(); err != nil {
		return Hash{}, 0, err
	}
	h := sumOf(r.digest)
	if !s.hold(h) {
		return Hash{}, 0, full
	}
	return h, r.size, nil
}

func (s *Store) hasSize(size int64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, o := range s.objects {
		if o.size == size {
			return true
		}
	}
	return false
}

// write makes dst equal to src, and returns what was read.
func (s *Store) write(ctx context.Context, dst *os.File, src io.ReaderAt, room *claim) (*reading, error) {
	buf := newBuffer()
	defer buf.free()
	if f, ok := src.(*os.File); ok && s.sys.clone(dst, f) == nil {
		// The clone cannot change any more, and is hashed.
		r := newReading(ctx, dst, buf)
		if err := r.run(); err != nil {
			return nil, err
		}
		return r, room.grow(r.data)
	}
	r := newReading(ctx, src, buf)
	r.write = func(piece []byte, offset int64) error {
		if err := room.grow(r.data + int64(len(piece))); err != nil {
			return err
		}
		_, err := s.sys.writeAt(dst, piece, offset)
		return err
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	return r, dst.Truncate(r.size) // it may end with a hole
}

// keepFile puts a file into the index. It reports false if the content is there already, which then has one more reference.
func (s *Store) keepFile(h Hash, size int64, f *file) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[h]; o != nil {
		o.refs++
		return false
	}
	s.objects[h] = &object{refs: 1, size: size, file: f}
	s.contents += size
	return true
}

// extent is the size of a content now, and how much of it is data, as far as the system knows.
func extent(src io.ReaderAt) (size, data int64) {
	switch src := src.(type) {
	case *os.File:
		info, err := src.Stat()
		if err != nil {
			return 0, 0 // reading returns the error
		}
		return info.Size(), dataIn(src, info.Size())
	case interface{ Size() int64 }:
		return src.Size(), src.Size()
	}
	return 0, 0
}

// dataIn is how many bytes of a file are not holes.
func dataIn(f *os.File, size int64) (data int64) {
	for at := int64(0); at < size; {
		start, end, err := fileData(f, at)
		if err != nil || end <= start {
			break
		}
		data += min(end, size) - min(start, size)
		at = end
	}
	return data
}

// closeFile ends a reader, and removes the content if it was the last one of a dead content.
func (s *Store) closeFile(f *file) {
	s.mu.Lock()
	last := f.readers.Add(-1) == 0 && f.dead
	s.mu.Unlock()
	if last {
		s.removeFile(f)
	}
}

// removeFile removes a dead content without readers.
func (s *Store) removeFile(f *file) {
	if s.root.Remove(f.name) == nil {
		s.give(f.disk)
	}
}
