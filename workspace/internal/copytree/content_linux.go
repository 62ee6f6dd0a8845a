// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

const (
	// small files are read and written; nothing is quicker for them.
	small = 64 << 10
	// piece is how much is copied between two checks of the context.
	piece = 64 << 20
)

// clonable remembers between which file systems blocks cannot be shared.
type clonable struct{ not sync.Map } // [2]uint64 to true

var buffers = sync.Pool{New: func() any { return new([small]byte) }}

// copyContent copies the present content of the file, without later additions.
func (c *copying) copyContent(ctx context.Context, dst, src *os.File, e filetree.Entry) error {
	switch {
	case e.Size == 0:
		return nil
	case e.Size <= small && !isSparse(src, e.Size):
		return copySmall(dst, src, e.Size)
	}
	if shared, err := c.pairs.clone(dst, src, e); shared || err != nil {
		return err
	}
	return copyData(ctx, dst, src, e.Size)
}

// isSparse reports whether a file takes less disk than its size. The holes of a file of a few blocks do not count.
func isSparse(f *os.File, size int64) bool {
	const block, few = 4096, 4 * 4096
	if size <= few {
		return false
	}
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Blocks*512 < size-block
}

func copySmall(dst, src *os.File, size int64) error {
	buf := buffers.Get().(*[small]byte)
	defer buffers.Put(buf)
	n, err := io.ReadFull(src, buf[:size])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = dst.Write(buf[:n]) // a file that has become shorter is copied as it is
	return err
}

// clone shares the blocks of a file, where the file system can.
func (c *clonable) clone(dst, src *os.File, e filetree.Entry) (bool, error) {
	var to unix.Stat_t
	if err := unix.Fstat(int(dst.Fd()), &to); err != nil {
		return false, err
	}
	pair := [2]uint64{e.Stamp.Dev, uint64(to.Dev)} //nolint:unconvert // it is smaller on other processors
	if _, known := c.not.Load(pair); known {
		return false, nil
	}
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) != nil {
		c.not.Store(pair, true)
		return false, nil
	}
	if err := unix.Fstat(int(dst.Fd()), &to); err != nil || to.Size <= e.Size {
		return true, err
	}
	return true, dst.Truncate(e.Size)
}

// copyData copies the data between the holes.
func copyData(ctx context.Context, dst, src *os.File, size int64) error {
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(src.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // the rest is a hole
		}
		end := size
		if err != nil {
			start = at // the file system knows of no holes
		} else if hole, err := unix.Seek(int(src.Fd()), start, unix.SEEK_HOLE); err == nil {
			end = min(hole, size)
		}
		if start >= size {
			break
		}
		more, err := copyRange(ctx, dst, src, start, end)
		if err != nil {
			return err
		}
		if !more {
			return nil // it has become shorter: copied as it was read
		}
		at = end
	}
	return extend(dst, size)
}

// extend gives a file the hole at its end.
func extend(dst *os.File, size int64) error {
	info, err := dst.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return dst.Truncate(size)
}

// copyRange copies a range to the same offset. It reports false at the end of the file.
func copyRange(ctx context.Context, dst, src *os.File, from, to int64) (bool, error) {
	for from < to && ctx.Err() == nil {
		n, err := copyPiece(dst, src, from, min(to-from, piece))
		if err != nil || n == 0 {
			return false, err
		}
		from += n
	}
	return true, context.Cause(ctx)
}

// copyPiece copies at most n bytes, within the system if it can between these file systems.
func copyPiece(dst, src *os.File, at, n int64) (int64, error) {
	in, out := at, at
	if copied, err := unix.CopyFileRange(int(src.Fd()), &in, int(dst.Fd()), &out, int(n), 0); err == nil {
		return int64(copied), nil
	}
	return io.Copy(io.NewOffsetWriter(dst, at), io.NewSectionReader(src, at, n))
}

// finishFile gives the copy the permissions and the time of the file, by its handle: that costs less than by its path.
func (c *copying) finishFile(dst *os.File, it *item) error {
	if err := dst.Chmod(it.entry.Perm.Perm()); err != nil {
		return err
	}
	ts := unix.NsecToTimespec(it.entry.ModTime)
	err := unix.UtimesNanoAt(int(dst.Fd()), "", []unix.Timespec{{Nsec: unix.UTIME_OMIT}, ts}, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) { // a system before Linux 5.8
		return c.setMeta(c.at(it), it.entry)
	}
	return err
}
