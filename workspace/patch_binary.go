// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"compress/zlib"
	"crypto/sha1" // the names that git gives to contents
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
)

// base85 are the digits that git writes binary contents with.
const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

const literalLine = 52

// A literalWriter writes bytes as lines of git's base 85: a letter for the length, then five digits for every four bytes.
type literalWriter struct {
	w    io.Writer
	line []byte // that is not full yet
}

func (l *literalWriter) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		n := min(literalLine-len(l.line), len(p))
		l.line = append(l.line, p[:n]...)
		p = p[n:]
		if len(l.line) == literalLine {
			if err := l.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (l *literalWriter) flush() error {
	if len(l.line) == 0 {
		return nil
	}
	_, err := l.w.Write(encodeLine(l.line))
	l.line = l.line[:0]
	return err
}

// encodeLine encodes 1 to 52 bytes.
func encodeLine(data []byte) []byte {
	length := byte('A' + len(data) - 1)
	if len(data) > 26 {
		length = byte('a' + len(data) - 27)
	}
	line := append(make([]byte, 0, 2+(len(data)+3)/4*5), length)
	for len(data) > 0 {
		var word [4]byte
		data = data[copy(word[:], data):]
		n := binary.BigEndian.Uint32(word[:])
		var digits [5]byte
		for i := 4; i >= 0; i-- {
			digits[i] = base85[n%85]
			n /= 85
		}
		line = append(line, digits[:]...)
	}
	return append(line, '\n')
}

// writeLiteral writes a content as one half of a binary patch, without keeping it in memory.
func writeLiteral(w io.Writer, f *File) error {
	fmt.Fprintf(w, "literal %d\n", contentSize(f))
	lines := &literalWriter{w: w}
	packed := zlib.NewWriter(lines)
	if err := copyContent(packed, f); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	if err := lines.flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// copyContent writes the content of a file, or nothing if the file has no content.
func copyContent(w io.Writer, f *File) error {
	if !hasContent(f) {
		return nil
	}
	r, err := openContent(f)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	_, err = io.Copy(w, r)
	return err
}

// blobID is the name that git gives to a content in a repository of the usual kind.
func blobID(f *File) (string, error) {
	if !hasContent(f) {
		return hex.EncodeToString(make([]byte, sha1.Size)), nil
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", contentSize(f))
	if err := copyContent(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
