// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io/fs"
	"sync"
	"time"
)

type playedBody struct {
	ctx    context.Context
	chunks []chunk
	end    error // after the chunks
	pace   bool
	began  time.Time

	once   sync.Once
	closed chan struct{}
	open   []byte // of the chunk that is being read
}

// Read gives one recorded chunk, or what fits of it.
func (b *playedBody) Read(p []byte) (int, error) {
	for len(b.open) == 0 {
		if len(b.chunks) == 0 {
			return 0, b.end
		}
		if err := b.wait(b.chunks[0].MS); err != nil {
			return 0, err
		}
		b.open, b.chunks = b.chunks[0].bytes(), b.chunks[1:]
	}
	n := copy(p, b.open)
	b.open = b.open[n:]
	return n, nil
}

// Close ends a Read that waits.
func (b *playedBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// wait returns when the recorded moment has come, or at once without pace.
func (b *playedBody) wait(ms int64) error {
	if b.began.IsZero() {
		b.began = time.Now()
	}
	var left time.Duration
	if b.pace {
		left = time.Until(b.began.Add(time.Duration(ms) * time.Millisecond))
	}
	select {
	case <-b.closed:
		return fs.ErrClosed
	case <-b.ctx.Done():
		return b.ctx.Err()
	default:
	}
	if left <= 0 {
		return nil
	}
	select {
	case <-time.After(left):
		return nil
	case <-b.closed:
		return fs.ErrClosed
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}
