// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

func clone(dst, src *os.File) error {
	return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
}

func copyRange(dst, src *os.File, start, end int64) (int64, error) {
	from, to := start, start
	for from < end {
		n, err := unix.CopyFileRange(int(src.Fd()), &from, int(dst.Fd()), &to, int(min(end-from, math.MaxInt32)), 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return from - start, err
		}
	}
	return end - start, nil
}

// fileData is where the next data of a file begins and ends, seen from an offset. After the last
// data, both are the end of the file.
func fileData(f *os.File, offset int64) (start, end int64, err error) {
	start, err = unix.Seek(int(f.Fd()), offset, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // only a hole, or nothing
		info, err := f.Stat()
		if err != nil {
			return 0, 0, err
		}
		end = max(offset, info.Size())
		return end, end, nil
	}
	if err == nil {
		end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
	}
	if err != nil || end <= start { // not on this file system, or cut off at this moment
		return offset, math.MaxInt64, nil
	}
	return start, end, nil
}
