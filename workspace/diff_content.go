// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Texts up to these sizes are compared by lines. That bounds the memory for a file: both texts, and 16 bytes a line.
const (
	maxTextBytes = 16 << 20
	maxTextLines = 1 << 20
)

// hasContent reports whether a file is one that a patch can hold: regular, or a link.
func hasContent(f *File) bool {
	return f != nil && (f.Mode.IsRegular() || isLink(f))
}

func isLink(f *File) bool { return f.Mode&fs.ModeSymlink != 0 }

// contentSize is that of a file, or of the target of a link.
func contentSize(f *File) int64 {
	switch {
	case !hasContent(f):
		return 0
	case isLink(f):
		return int64(len(f.Target))
	}
	return f.Size
}

// openContent opens the content of a file, or the target of a link. It fails if there is less or more than the file's size.
func openContent(f *File) (io.ReadCloser, error) {
	if isLink(f) {
		return io.NopCloser(strings.NewReader(f.Target)), nil
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("workspace: content of %q: %w", f.Path, err)
	}
	return &exactReader{ReadCloser: r, file: f}, nil
}

// An exactReader checks that a content has the announced length.
type exactReader struct {
	io.ReadCloser
	file *File
	n    int64
}

func (r *exactReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.n += int64(n)
	if r.n > r.file.Size || err == io.EOF && r.n < r.file.Size {
		return n, fmt.Errorf("workspace: content of %q has not the %d bytes that it had", r.file.Path, r.file.Size)
	}
	return n, err
}

// readText reads a content of at most limit bytes that can be compared by lines. It reports false for any other.
func readText(f *File, limit int64) (string, bool, error) {
	if !hasContent(f) {
		return "", true, nil
	}
	if contentSize(f) > min(limit, maxTextBytes) {
		return "", false, nil
	}
	r, err := openContent(f)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = r.Close() }()
	var text strings.Builder
	text.Grow(int(contentSize(f)))
	if _, err := io.Copy(&text, r); err != nil {
		return "", false, err
	}
	got := text.String()
	if strings.IndexByte(got, 0) >= 0 || strings.Count(got, "\n") > maxTextLines {
		return "", false, nil
	}
	return got, true, nil
}

// readTexts reads both sides of a change, and reports false unless both are text.
func readTexts(before, after *File, limit int64) (b, a string, ok bool, err error) {
	if b, ok, err = readText(before, limit); err != nil || !ok {
		return "", "", false, err
	}
	if a, ok, err = readText(after, limit); err != nil || !ok {
		return "", "", false, err
	}
	return b, a, true, nil
}

// equalContent reports whether two sides are known to be of one type and content.
func equalContent(before, after *File) bool {
	if !hasContent(before) || !hasContent(after) || isLink(before) != isLink(after) {
		return false
	}
	if isLink(before) {
		return before.Target == after.Target
	}
	return before.Hash != "" && before.Hash == after.Hash && before.Size == after.Size
}

// A part is one entry of a patch: what becomes of a file or a link. Nil means that it did not or does not exist.
type part struct{ before, after *File }

// parts returns the entries of a change in a patch: none if it has only times, owners or permissions that git does
// not know, and two where a file becomes a link or the other way round.
func parts(c Change) []part {
	before, after := c.Before, c.After
	if !hasContent(before) {
		before = nil
	}
	if !hasContent(after) {
		after = nil
	}
	switch {
	case before == nil && after == nil:
		return nil
	case before == nil || after == nil:
		return []part{{before, after}}
	case isLink(before) != isLink(after):
		return []part{{before, nil}, {nil, after}}
	case equalContent(before, after) && gitMode(before) == gitMode(after):
		return nil
	}
	return []part{{before, after}}
}
