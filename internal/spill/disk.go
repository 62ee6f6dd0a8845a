// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/drover-agents/drover/advice"
)

const (
	headerSize  = 12       // length of the data, tag
	writeBuffer = 64 << 10 // bytes collected before they are written
	readBatch   = 1 << 20  // bytes brought back at once
)

// disk is a queue of items in temporary files. It is not safe for concurrent use.
type disk struct {
	dir         string
	segmentSize int64
	segments    []*segment // oldest first; the last one is written to
	count       int
	err         error // of the disk; nothing works after it
}

type segment struct {
	file        *os.File
	pending     []byte // written by us, not yet by the system
	size        int64  // of the file, without pending
	read        int64  // offset of the next item
	count       int    // items not yet read
	readHeader  [headerSize]byte
	writeHeader [headerSize]byte
}

func (d *disk) write(it Item) error {
	if d.err != nil {
		return d.err
	}
	s, err := d.tail()
	if err == nil {
		err = s.append(it)
	}
	if err != nil {
		d.err = advice.Wrap(fmt.Errorf("spill: cannot keep %d bytes on disk: %w", len(it.Data), err),
			"free space in %s, or consume faster", cmp.Or(d.dir, os.TempDir()))
		return d.err
	}
	d.count++
	return nil
}

func (d *disk) tail() (*segment, error) {
	if n := len(d.segments); n > 0 {
		last := d.segments[n-1]
		if last.size < d.segmentSize {
			return last, nil
		}
		if err := last.flush(); err != nil {
			return nil, err
		}
	}
	file, err := createUnnamed(d.dir)
	if err != nil {
		return nil, err
	}
	s := &segment{file: file}
	d.segments = append(d.segments, s)
	return s, nil
}

func (s *segment) append(it Item) error {
	binary.LittleEndian.PutUint32(s.writeHeader[:], uint32(len(it.Data)))
	binary.LittleEndian.PutUint64(s.writeHeader[4:], it.Tag)
	s.pending = append(s.pending, s.writeHeader[:]...)
	s.count++
	if len(it.Data) < writeBuffer {
		s.pending = append(s.pending, it.Data...)
		if len(s.pending) < writeBuffer {
			return nil
		}
		return s.flush()
	}
	if err := s.flush(); err != nil {
		return err
	}
	n, err := s.file.WriteAt(it.Data, s.size)
	s.size += int64(n)
	return err
}

func (s *segment) flush() error {
	n, err := s.file.WriteAt(s.pending, s.size)
	s.size += int64(n)
	s.pending = s.pending[:0]
	return err
}

// read returns the oldest item. The caller has checked that there is one.
func (d *disk) read() (Item, error) {
	s := d.segments[0]
	it, err := s.next()
	if err != nil {
		// What could not be written cannot be read: the first error is the cause.
		d.err = cmp.Or(d.err, fmt.Errorf("spill: cannot read back what was kept on disk in %s: %w", cmp.Or(d.dir, os.TempDir()), err))
		return Item{}, d.err
	}
	d.count--
	if s.count > 0 {
		return it, nil
	}
	if len(d.segments) > 1 {
		d.segments = d.segments[1:]
		_ = s.file.Close() // the file is gone with it
		return it, nil
	}
	// An exhausted segment becomes empty, so that a consumer that keeps up costs no disk space.
	s.size, s.read = 0, 0
	_ = s.file.Truncate(0) // if it fails the old bytes are written over
	return it, nil
}

func (s *segment) next() (Item, error) {
	if s.read == s.size {
		if err := s.flush(); err != nil {
			return Item{}, err
		}
	}
	if _, err := s.file.ReadAt(s.readHeader[:], s.read); err != nil {
		return Item{}, err
	}
	it := Item{
		Data: make([]byte, binary.LittleEndian.Uint32(s.readHeader[:])),
		Tag:  binary.LittleEndian.Uint64(s.readHeader[4:]),
	}
	if len(it.Data) > 0 {
		if _, err := s.file.ReadAt(it.Data, s.read+headerSize); err != nil {
			return Item{}, err
		}
	}
	s.read += headerSize + int64(len(it.Data))
	s.count--
	return it, nil
}

func (d *disk) close() {
	for _, s := range d.segments {
		_ = s.file.Close() // the file is gone with it
	}
	d.segments = nil
	d.count = 0
}
