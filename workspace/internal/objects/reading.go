// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"math"
	"os"
)

// zeros is what a hole reads as.
var zeros [64 << 10]byte

// A reading goes through a large content once. Holes are not read.
type reading struct {
	ctx    context.Context
	src    io.ReaderAt
	buf    *buffer
	digest hash.Hash
	size   int64 // what was read so far, with holes
	data   int64 // without
	// write is given each piece of data, never a hole. Nil: the content is only hashed.
	write func(piece []byte, offset int64) error
}

func newReading(ctx context.Context, src io.ReaderAt, buf *buffer) *reading {
	return &reading{ctx: ctx, src: src, buf: buf, digest: sha256.New()}
}

// run reads until the end of the content, wherever that is by then.
func (r *reading) run() error {
	for {
		start, end, err := dataFrom(r.src, r.size)
		if err != nil {
			return err
		}
		if err := r.hole(start); err != nil {
			return err
		}
		if end <= start {
			return nil
		}
		if err := r.piece(end); errors.Is(err, io.EOF) {
			if end == math.MaxInt64 {
				return nil
			}
			continue // it became shorter; ask again what there is
		} else if err != nil {
			return err
		}
	}
}

// hole goes on to an offset without reading. To hash a hole of a terabyte takes a quarter of an hour.
func (r *reading) hole(end int64) error {
	for r.size < end {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n := min(int64(len(zeros)), end-r.size)
		r.digest.Write(zeros[:n])
		r.size += n
	}
	return nil
}

// piece reads the data up to an offset. It fails with [io.EOF] if the content ends before.
func (r *reading) piece(end int64) error {
	for r.size < end {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		piece := r.buf.bytes[:min(maxSmall, end-r.size)]
		n, err := r.src.ReadAt(piece, r.size)
		if n > 0 {
			r.digest.Write(piece[:n])
			if r.write != nil {
				if err := r.write(piece[:n], r.size); err != nil {
					return err
				}
			}
			r.size += int64(n)
			r.data += int64(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dataFrom returns where the next data begins and ends, seen from an offset. After the last data, both are the end
// of the content. Where that is unknown, all is data.
func dataFrom(src io.ReaderAt, offset int64) (start, end int64, err error) {
	f, ok := src.(*os.File)
	if !ok {
		return offset, math.MaxInt64, nil
	}
	return fileData(f, offset)
}
