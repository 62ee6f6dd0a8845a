// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package copytree

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

type clonable struct{}

// copyContent copies the present content of the file, without later additions.
func (c *copying) copyContent(ctx context.Context, dst, src *os.File, e filetree.Entry) error {
	const piece = 64 << 20 // between two checks of the context
	for left := e.Size; left > 0 && ctx.Err() == nil; {
		n, err := io.CopyN(dst, src, min(left, piece))
		if errors.Is(err, io.EOF) {
			return nil // it has become shorter: copied as it was read
		}
		if err != nil {
			return err
		}
		left -= n
	}
	return context.Cause(ctx)
}

func (c *copying) finishFile(_ *os.File, it *item) error { return c.setMeta(c.at(it), it.entry) }
