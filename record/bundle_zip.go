// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Bundles are read without archive/zip: it reads all of a directory into memory, whatever its end record declares, and cannot read a
// zip that is cut off. Bundles need less: few files, no zip64, no data descriptors.

// The limits of the zip of a bundle. A bundle has seven files; others are ignored.
const (
	maxEntries   = 64
	maxDirectory = 64 << 10
	maxComment   = 1<<16 - 1
)

// The records of a zip, by their signatures and lengths.
const (
	localSignature, localLength         = 0x04034b50, 30
	directorySignature, directoryLength = 0x02014b50, 46
	endSignature, endLength             = 0x06054b50, 22
	end64Signature, end64Length         = 0x07064b50, 20 // the locator of a zip64 end record

	elsewhere16, elsewhere32 = 1<<16 - 1, 1<<32 - 1 // the number is in a zip64 record
)

const (
	methodStore   = 0
	methodDeflate = 8

	flagEncrypted  = 1 << 0
	flagDescriptor = 1 << 3 // sizes and checksum are behind the file
)

// A zipEntry is a file in a zip. Nothing in it is confirmed.
type zipEntry struct {
	name          string
	method, flags uint16
	crc           uint32
	packed, size  int64
	header, data  int64 // offsets of the local header and of the contents
	regular       bool
}

var (
	errManyFiles = fmt.Errorf("it has more than %d files, or a directory of more than %d bytes", maxEntries, maxDirectory)
	errZip64     = errors.New("it is a zip64 archive, which a bundle is not")
)

// readDirectory returns the files that the central directory lists. whole is false if it is missing or damaged, and files may be
// missing then. An error means that the zip cannot be a bundle, or that reading fails.
func readDirectory(src io.ReaderAt, size int64) (found []zipEntry, whole bool, err error) {
	tail := make([]byte, min(size, endLength+maxComment))
	if err := readFull(src, tail, size-int64(len(tail))); err != nil {
		return nil, false, err
	}
	at := len(tail) - endLength
	for ; at >= 0; at-- {
		if end := tail[at:]; u32(end, 0) == endSignature && endLength+int(u16(end, 20)) == len(end) {
			break
		}
	}
	if at < 0 {
		return nil, false, nil
	}
	end := tail[at:]
	count, length, start := u16(end, 10), u32(end, 12), u32(end, 16)
	if count == elsewhere16 || length == elsewhere32 || start == elsewhere32 || at >= end64Length && u32(tail, at-end64Length) == end64Signature {
		return nil, false, errZip64
	}
	if count > maxEntries || length > maxDirectory {
		return nil, false, errManyFiles
	}
	if int64(start)+int64(length) != size-int64(len(end)) || u32(end, 4) != 0 || u16(end, 8) != count {
		return nil, false, nil
	}
	directory := make([]byte, length)
	if err := readFull(src, directory, int64(start)); err != nil {
		return nil, false, err
	}
	whole = true
	for range count {
		e, rest, ok := directoryEntry(directory)
		if !ok {
			return nil, false, nil
		}
		directory = rest
		if e.packed == elsewhere32 || e.size == elsewhere32 || e.header == elsewhere32 {
			return nil, false, errZip64
		}
		if isBundled(e.name) {
			local, ok, err := localEntry(src, size, e.header)
			if err != nil {
				return nil, false, err
			}
			if !ok || local.name != e.name || local.method != e.method {
				whole = false
				continue
			}
			e.data = local.data
		}
		found = append(found, e)
	}
	return found, whole && len(directory) == 0, nil
}

func directoryEntry(b []byte) (e zipEntry, rest []byte, ok bool) {
	if len(b) < directoryLength || u32(b, 0) != directorySignature {
		return e, nil, false
	}
	nameEnd := directoryLength + int(u16(b, 28))
	end := nameEnd + int(u16(b, 30)) + int(u16(b, 32))
	if len(b) < end {
		return e, nil, false
	}
	return zipEntry{
		name: string(b[directoryLength:nameEnd]), flags: u16(b, 8), method: u16(b, 10), crc: u32(b, 16),
		packed: int64(u32(b, 20)), size: int64(u32(b, 24)), header: int64(u32(b, 42)), regular: isRegular(b[5], u32(b, 38)),
	}, b[end:], true
}

// isRegular reports whether the attributes of a file are those of a regular one. Only systems like Unix have links.
func isRegular(system byte, attributes uint32) bool {
	const unix, darwin = 3, 19
	const typeMask, typeNone, typeRegular = 0o170000, 0, 0o100000
	kind := attributes >> 16 & typeMask
	return system != unix && system != darwin || kind == typeNone || kind == typeRegular
}

// scanHeaders returns the files from the first one on, as far as each local header leads to the next.
func scanHeaders(src io.ReaderAt, size int64) (found []zipEntry, err error) {
	for at := int64(0); at < size; {
		e, ok, err := localEntry(src, size, at)
		if err != nil {
			return nil, err
		}
		if !ok || e.flags&flagDescriptor != 0 || e.packed == elsewhere32 {
			break
		}
		if len(found) == maxEntries {
			return nil, errManyFiles
		}
		found = append(found, e)
		at = e.data + e.packed
	}
	return found, nil
}

// localEntry reads the local header at an offset. ok is false without one.
func localEntry(src io.ReaderAt, size, at int64) (e zipEntry, ok bool, err error) {
	if at+localLength > size {
		return e, false, nil
	}
	b := make([]byte, localLength)
	if err := readFull(src, b, at); err != nil || u32(b, 0) != localSignature {
		return e, false, err
	}
	name := make([]byte, u16(b, 26))
	e = zipEntry{
		flags: u16(b, 6), method: u16(b, 8), crc: u32(b, 14), packed: int64(u32(b, 18)), size: int64(u32(b, 22)),
		header: at, data: at + localLength + int64(len(name)) + int64(u16(b, 28)), regular: true,
	}
	if e.data > size {
		return e, false, nil
	}
	err = readFull(src, name, at+localLength)
	e.name = string(name)
	return e, err == nil, err
}

// unsupported is why the contents cannot be read, or nil.
func (e *zipEntry) unsupported() error {
	switch {
	case e.flags&flagEncrypted != 0:
		return errors.New("it is encrypted")
	case e.method != methodStore && e.method != methodDeflate:
		return fmt.Errorf("its compression method %d is not supported", e.method)
	}
	return nil
}

// contents returns the contents of a supported entry, as far as the zip has them.
func (e *zipEntry) contents(src io.ReaderAt, size int64) io.ReadCloser {
	packed := io.NewSectionReader(src, e.data, max(0, min(e.packed, size-e.data)))
	if e.method == methodStore {
		return io.NopCloser(packed)
	}
	return flate.NewReader(bufio.NewReaderSize(packed, 32<<10))
}

// checked returns the contents if they have the declared size and checksum. The caller has bounded the size.
func (e *zipEntry) checked(src io.ReaderAt, size int64) ([]byte, error) {
	if err := e.unsupported(); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_, err := io.Copy(&text, io.LimitReader(e.contents(src, size), e.size+1))
	switch {
	case err != nil:
		return nil, err
	case int64(text.Len()) != e.size || crc32.ChecksumIEEE(text.Bytes()) != e.crc:
		return nil, errors.New("its size or checksum is not that of the zip")
	}
	return text.Bytes(), nil
}

// readFull reads all of b. A source that is shorter than before is an error.
func readFull(src io.ReaderAt, b []byte, at int64) error {
	if n, err := src.ReadAt(b, at); n < len(b) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

func u16(b []byte, at int) uint16 { return binary.LittleEndian.Uint16(b[at:]) }
func u32(b []byte, at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
