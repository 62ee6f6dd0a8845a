// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/objects"
)

// ErrNotText is why [Workspace.ReadText] refuses a file.
var ErrNotText = errors.New("workspace: not a text in UTF-8")

// Content opens a content by its hash, as a [VirtualFile] has it. Contents are there as long as the
// workspace is open and a checkpoint has them: those that were mounted, and those of the last [Sync].
func (w *Workspace) Content(ctx context.Context, hash string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.tree == nil {
		return nil, ErrNoCheckpoints
	}
	h, err := parseHash(hash)
	if err != nil {
		return nil, err
	}
	content, err := w.tree.objects.Open(h)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("workspace: the content %.12s: %w", hash, err), "sync, and take the file of that view")
	}
	return content, nil
}

func parseHash(text string) (h objects.Hash, err error) {
	if n, err := hex.Decode(h[:], []byte(text)[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*len(h) {
		return h, advice.Wrap(fmt.Errorf("workspace: %q is no hash of a content", text), "take that of a file of the view")
	}
	return h, nil
}

// ReadText reads the content of a text. It is [ErrNotText] for one that is binary.
func (w *Workspace) ReadText(ctx context.Context, f VirtualFile) (string, error) {
	if f.Encoding != UTF8 {
		return "", advice.Wrap(fmt.Errorf("%w: %s", ErrNotText, f.Path), "read its Content")
	}
	content, err := w.Content(ctx, f.Hash)
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }()
	text, err := io.ReadAll(content)
	return string(text), err
}

// virtualFiles returns the regular files of a list, as new files. Contents are read to detect text, several at a time.
func virtualFiles(ctx context.Context, files []*File, at time.Time) (VirtualFileSystem, error) {
	encodings, err := encodingsOf(ctx, files)
	if err != nil {
		return VirtualFileSystem{}, err
	}
	var all VirtualFileSystem
	for i, f := range files {
		if !f.Mode.IsRegular() {
			continue
		}
		path, err := ParsePath(f.Path)
		if err != nil {
			return VirtualFileSystem{}, err
		}
		all = all.with(VirtualFile{
			Path: path, Hash: f.Hash, SizeBytes: f.Size, Encoding: encodings[i], Mode: f.Mode.Perm(),
			Version: 1, CreatedAt: at, UpdatedAt: at,
		})
	}
	return all, nil
}

func encodingsOf(ctx context.Context, files []*File) ([]Encoding, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	encodings := make([]Encoding, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(8, 2*runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(files) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if !files[i].Mode.IsRegular() {
					continue
				}
				var err error
				if encodings[i], err = encodingOf(files[i]); err != nil {
					stop(err)
				}
			}
		})
	}
	wg.Wait()
	return encodings, context.Cause(ctx)
}

// encodingOf reads a content until it is certain that it is not UTF-8.
func encodingOf(f *File) (Encoding, error) {
	if f.Size == 0 {
		return UTF8, nil
	}
	content, err := f.Open()
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }()
	text, err := isUTF8(content)
	if err != nil {
		return "", err
	}
	if text {
		return UTF8, nil
	}
	return Binary, nil
}

var chunks = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func isUTF8(r io.Reader) (bool, error) {
	chunk := chunks.Get().(*[32 << 10]byte)
	defer chunks.Put(chunk)
	kept := 0 // bytes of a character whose end has not come yet
	for {
		n, err := r.Read(chunk[kept:])
		n += kept
		end := n
		if err == nil {
			end = wholeRunes(chunk[:n])
		}
		if !utf8.Valid(chunk[:end]) {
			return false, nil
		}
		kept = copy(chunk[:], chunk[end:n])
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// wholeRunes is how many bytes there are before a character that is cut off at the end.
func wholeRunes(b []byte) int {
	for back := 1; back <= min(len(b), utf8.UTFMax-1); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if utf8.FullRune(b[at:]) {
				return len(b)
			}
			return at
		}
	}
	return len(b)
}
