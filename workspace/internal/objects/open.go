// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/drover-agents/drover/advice"
)

// Open reads a content. It stays readable until it is closed, also when it is released meanwhile. A
// small one is checked against its hash, and in memory then.
func (s *Store) Open(h Hash) (io.ReadSeekCloser, error) {
	o, err := s.find(h)
	if err != nil {
		return nil, readError(h, err)
	}
	if o.file != nil {
		r, err := s.openFile(o)
		if err != nil {
			return nil, readError(h, err)
		}
		return r, nil
	}
	content := make([]byte, o.size)
	if err := o.read(h, content); err != nil {
		return nil, readError(h, err)
	}
	return memory{bytes.NewReader(content)}, nil
}

func readError(h Hash, err error) error {
	return advice.Wrap(fmt.Errorf("objects: reading the content %s: %w", h, err),
		"see that no other program writes to the folder of the store or removes files from it")
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// found is where a content is, which stays there until it is let go.
type found struct {
	size   int64
	pack   *pack // locked for reading
	offset int64
	file   *file // counts one reader
}

// find holds a content where it is. The caller reads the pack with read, or opens the file.
func (s *Store) find(h Hash) (found, error) {
	if h == empty {
		return found{}, nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o := s.objects[h]
	switch {
	case s.closed:
		return found{}, ErrClosed
	case o == nil:
		return found{}, ErrNotKept
	case o.file != nil:
		o.file.readers.Add(1)
	default:
		o.pack.reading.RLock()
	}
	return found{size: o.size, pack: o.pack, offset: o.offset, file: o.file}, nil
}

// read reads a small content into a slice of its size, and lets go of the pack.
func (o found) read(h Hash, content []byte) error {
	if o.pack == nil {
		return nil
	}
	defer o.pack.reading.RUnlock()
	if n, err := o.pack.file.ReadAt(content, o.offset); n < len(content) {
		return err
	}
	if sha256.Sum256(content) != h {
		return ErrDamaged
	}
	return nil
}

type fileReader struct {
	*os.File
	close func() error
}

// Close lets the file be removed if the content is dead.
func (r *fileReader) Close() error { return r.close() }

func (s *Store) openFile(o found) (*fileReader, error) {
	f, err := s.root.Open(o.file.name)
	if err != nil {
		s.closeFile(o.file)
		return nil, err
	}
	return &fileReader{f, sync.OnceValue(func() error {
		err := f.Close()
		s.closeFile(o.file)
		return err
	})}, nil
}

// WriteTo replaces the content of a file. The file shares blocks with the store where the file system can, and has
// the holes that the content came with.
func (s *Store) WriteTo(h Hash, dst *os.File) error {
	o, err := s.find(h)
	if err != nil {
		return readError(h, err)
	}
	if o.file == nil {
		return s.writeSmall(h, o, dst)
	}
	src, err := s.openFile(o)
	if err != nil {
		return readError(h, err)
	}
	defer func() { _ = src.Close() }()
	if err := s.writeLarge(src.File, o.size, dst); err != nil {
		return writeError(h, dst, err)
	}
	return nil
}

func writeError(h Hash, dst *os.File, err error) error {
	return advice.Wrap(fmt.Errorf("objects: writing the content %s to %s: %w", h, dst.Name(), err), "see that there is room on its disk")
}

func (s *Store) writeSmall(h Hash, o found, dst *os.File) error {
	buf := newBuffer()
	defer buf.free()
	content := buf.bytes[:o.size]
	if err := o.read(h, content); err != nil {
		return readError(h, err)
	}
	if _, err := s.sys.writeAt(dst, content, 0); err != nil {
		return writeError(h, dst, err)
	}
	if info, err := dst.Stat(); err == nil && info.Size() == o.size {
		return nil
	}
	if err := dst.Truncate(o.size); err != nil {
		return writeError(h, dst, err)
	}
	return nil
}

// writeLarge copies without reading holes, by the system alone where it can.
func (s *Store) writeLarge(src *os.File, size int64, dst *os.File) error {
	if info, err := src.Stat(); err != nil || info.Size() != size {
		return ErrDamaged
	}
	if err := dst.Truncate(0); err != nil { // no data where holes belong
		return err
	}
	if s.sys.clone(dst, src) == nil {
		return nil
	}
	for at := int64(0); ; {
		start, end, err := fileData(src, at)
		if err != nil {
			return err
		}
		if end = min(end, size); end <= start {
			return dst.Truncate(size)
		}
		if err := s.copyRange(dst, src, start, end); err != nil {
			return err
		}
		at = end
	}
}

func (s *Store) copyRange(dst, src *os.File, start, end int64) error {
	done, err := s.sys.copyRange(dst, src, start, end)
	if err == nil || start+done >= end {
		return err
	}
	buf := newBuffer()
	defer buf.free()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.NewOffsetWriter(dst, start+done)},
		struct{ io.Reader }{io.NewSectionReader(src, start+done, end-start-done)}, buf.bytes[:])
	return err
}
