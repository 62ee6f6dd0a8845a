// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"
)

const sumSize = sha256.Size

// A bundledFile is a file of a run in a bundle.
type bundledFile struct {
	bundle  *bundle
	fact    manifestFact
	entry   zipEntry
	sum     []byte
	problem error // why it cannot be opened
}

// there is how many of its compressed bytes the bundle has.
func (f *bundledFile) there() int64 { return max(0, min(f.entry.packed, f.bundle.size-f.entry.data)) }

func (f *bundledFile) cut() bool { return f.there() < f.entry.packed }

func (f *bundledFile) open() *bundleReader {
	return &bundleReader{file: f, src: f.entry.contents(f.bundle.src, f.bundle.size), hash: sha256.New(), left: f.fact.Size}
}

// A bundleReader reads a file of a bundle. It returns at most as many bytes as the manifest declares, and [io.EOF] only if they have
// the hash that the manifest has. What comes before another error can end within a line.
type bundleReader struct {
	file *bundledFile
	src  io.ReadCloser
	hash hash.Hash
	left int64 // declared bytes that were not read yet
	err  error
}

func (r *bundleReader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	if r.left == 0 {
		r.err = r.end()
		return 0, r.err
	}
	n, err := r.src.Read(p[:min(int64(len(p)), r.left)])
	_, _ = r.hash.Write(p[:n])
	r.left -= int64(n)
	if err != nil && r.left > 0 {
		r.err = r.fail(r.why(err))
	}
	return n, r.err
}

// why is the reason why the file ends before its declared size.
func (r *bundleReader) why(err error) error {
	read := r.file.fact.Size - r.left
	switch early := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); {
	case early && r.file.cut():
		return fmt.Errorf("it is cut off after %d of %d bytes", read, r.file.fact.Size)
	case early:
		return fmt.Errorf("it ends after %d bytes, the manifest declares %d", read, r.file.fact.Size)
	}
	return fmt.Errorf("it is damaged after %d of %d bytes: %w", read, r.file.fact.Size, err)
}

func (r *bundleReader) end() error {
	if n, _ := io.ReadFull(r.src, make([]byte, 1)); n > 0 {
		return r.fail(fmt.Errorf("it has more bytes than the %d that the manifest declares", r.file.fact.Size))
	}
	if !bytes.Equal(r.hash.Sum(nil), r.file.sum) {
		return r.fail(errors.New("its SHA-256 is not that of the manifest"))
	}
	return io.EOF
}

func (r *bundleReader) fail(err error) error {
	return damaged(&fs.PathError{Op: "read", Path: r.file.fact.Name, Err: err})
}

func (r *bundleReader) Close() error { return r.src.Close() }

func (r *bundleReader) Stat() (fs.FileInfo, error) { return bundledInfo{r.file}, nil }

type bundledInfo struct{ file *bundledFile }

func (i bundledInfo) Name() string       { return i.file.fact.Name }
func (i bundledInfo) Size() int64        { return i.file.fact.Size }
func (i bundledInfo) Mode() fs.FileMode  { return 0o400 }
func (i bundledInfo) ModTime() time.Time { return i.file.bundle.manifest.Made }
func (i bundledInfo) IsDir() bool        { return false }
func (i bundledInfo) Sys() any           { return nil }
