// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/drover-agents/drover/advice"
)

// A buffer holds a small content, and one byte more to detect a larger one.
type buffer struct{ bytes [maxSmall + 1]byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func newBuffer() *buffer { return buffers.Get().(*buffer) }

func (b *buffer) free() { buffers.Put(b) }

// small reads a whole content into the buffer, unless it is large.
func (b *buffer) small(src io.ReaderAt) (content []byte, isSmall bool, err error) {
	n, err := src.ReadAt(b.bytes[:], 0)
	if errors.Is(err, io.EOF) {
		return b.bytes[:n], true, nil
	}
	return nil, false, err
}

// Put stores the content of a file, from its start to its end regardless of its offset, and takes one reference. It
// returns the hash and the length of the stored content. If the file changes meanwhile, the stored content is a mix
// of its versions. The size is the expected one, and only decides where to begin.
//
// It fails with a [*FullError] if there is no room. Then, and when the context ends, it stores nothing.
func (s *Store) Put(ctx context.Context, f *os.File, size int64) (Hash, int64, error) {
	return s.putFrom(ctx, f, size)
}

func (s *Store) putFrom(ctx context.Context, src io.ReaderAt, size int64) (Hash, int64, error) {
	s.puts.RLock()
	h, n, err := s.put(ctx, src, size)
	s.puts.RUnlock()
	if _, full := errors.AsType[*FullError](err); full {
		// Others may be about to find that they write what is there already, and give the room back.
		s.puts.Lock()
		h, n, err = s.put(ctx, src, size)
		s.puts.Unlock()
	}
	if err != nil {
		return Hash{}, 0, putError(err)
	}
	return h, n, nil
}

func putError(err error) error {
	_, full := errors.AsType[*FullError](err)
	if full || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("objects: %w", err)
	}
	return advice.Wrap(fmt.Errorf("objects: keeping a content: %w", err),
		"see that the file can be read, and that there is room on the disk of the store")
}

func (s *Store) put(ctx context.Context, src io.ReaderAt, size int64) (Hash, int64, error) {
	if size <= maxSmall {
		buf := newBuffer()
		defer buf.free()
		content, isSmall, err := buf.small(src)
		if err != nil {
			return Hash{}, 0, err
		}
		if isSmall {
			h := Hash(sha256.Sum256(content))
			return h, int64(len(content)), s.putSmall(h, content)
		}
	}
	return s.putLarge(ctx, src)
}

// Sum is the hash and the length of the content of a file, which is not kept.
func (s *Store) Sum(ctx context.Context, f *os.File) (Hash, int64, error) {
	h, n, err := s.sum(ctx, f)
	if err != nil {
		return Hash{}, 0, advice.Wrap(fmt.Errorf("objects: reading a content: %w", err), "see that the file can be read")
	}
	return h, n, nil
}

func (s *Store) sum(ctx context.Context, f *os.File) (Hash, int64, error) {
	buf := newBuffer()
	defer buf.free()
	content, isSmall, err := buf.small(f)
	if err != nil {
		return Hash{}, 0, err
	}
	if isSmall {
		return Hash(sha256.Sum256(content)), int64(len(content)), nil
	}
	r := newReading(ctx, f, buf)
	if err := r.run(); err != nil {
		return Hash{}, 0, err
	}
	return sumOf(r.digest), r.size, nil
}
