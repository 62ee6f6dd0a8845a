// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package copytree

import (
	"io"
	"os"

	"github.com/drover-agents/drover/internal/filetree"
)

type clonable struct{}

// copyContent copies what the file has now, and not what somebody adds meanwhile.
func (c *copying) copyContent(dst, src *os.File, e filetree.Entry) error {
	_, err := io.Copy(dst, io.LimitReader(src, e.Size))
	return err
}

// finishFile gives the copy the permissions and the time of the file.
func (c *copying) finishFile(_ *os.File, it *item) error { return c.setMeta(c.at(it), it.entry) }
