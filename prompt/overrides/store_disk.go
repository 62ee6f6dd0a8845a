// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/prompt"
)

const (
	lockName = ".lock"
	lockPoll = 2 * time.Millisecond

	// maxFile is far more than a prompt can have.
	maxFile  = 16 << 20
	tooLarge = "the file is larger than 16 MiB"
)

func (f *File) failed(err error) error {
	return fmt.Errorf("overrides: %s: %s: %w", f.of, f.Path(), err)
}

func (f *File) wrong(line, column int, reason string) error {
	return &prompt.Error{
		Prompt: f.of, Part: f.Path(), Line: line, Column: column, Reason: reason, Err: ErrFile,
		Next: "correct the file, or delete it",
	}
}

// read returns the entries of the file; without a file it returns no entries.
func (f *File) read() (entries, error) {
	root, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return entries{}, nil
	}
	if err != nil {
		return nil, f.failed(err)
	}
	defer root.Close()
	all, _, err := f.readIn(root)
	return all, err
}

func (f *File) readIn(root *os.Root) (all entries, data []byte, err error) {
	info, err := root.Stat(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entries{}, nil, nil
	case err != nil:
		return nil, nil, f.failed(err)
	case !info.Mode().IsRegular(): // to read a pipe could wait for ever
		return nil, nil, f.wrong(0, 0, "it is not a regular file")
	case info.Size() > maxFile:
		return nil, nil, f.wrong(0, 0, tooLarge)
	}
	data, err = root.ReadFile(f.name)
	if errors.Is(err, fs.ErrNotExist) { // deleted just now
		return entries{}, nil, nil
	}
	if err != nil {
		return nil, nil, f.failed(err)
	}
	all, err = decodeEntries(data)
	if flaw, ok := errors.AsType[*flawInFile](err); ok {
		line, column := lineOf(string(data), flaw.offset)
		return nil, nil, f.wrong(line, column, flaw.reason)
	}
	return all, data, err
}

// edit changes the content under the lock. It writes nothing if the result cannot be resolved, or equals the file.
func (f *File) edit(ctx context.Context, change func(entries) error) error {
	return f.locked(ctx, func(root *os.Root) error {
		all, old, err := f.readIn(root)
		if err != nil {
			return err
		}
		if err := change(all); err != nil {
			return err
		}
		if _, _, err := f.resolve(all); err != nil {
			return err
		}
		data, err := all.encode()
		if err != nil || bytes.Equal(data, old) {
			return err
		}
		return f.write(root, data)
	})
}

// locked runs a function under the lock of the store. The lock file stays: another process may be waiting for it.
func (f *File) locked(ctx context.Context, do func(*os.Root) error) error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return f.failed(err)
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return f.failed(err)
	}
	defer root.Close()
	lock, err := root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return f.failed(err)
	}
	defer lock.Close()
	if err := filelock.Lock(ctx, lock, lockPoll); err != nil {
		return f.failed(err)
	}
	err = do(root)
	if unlockErr := filelock.Unlock(lock); err == nil && unlockErr != nil {
		return f.failed(unlockErr)
	}
	return err
}

// write replaces the file. Under the lock one temporary name is enough, so
// a crash leaves one file at most, which the next change removes.
func (f *File) write(root *os.Root, data []byte) error {
	if len(data) > maxFile {
		return f.failed(advice.Wrap(errors.New(tooLarge), "take out what is stale, with Prune"))
	}
	folder, file := path.Split(f.name)
	temp := folder + "." + file + ".tmp"
	if err := root.MkdirAll(path.Clean(folder), 0o755); err != nil {
		return f.failed(err)
	}
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.failed(err)
	}
	if err := writeSynced(root, temp, data); err != nil {
		return f.failed(err)
	}
	if err := root.Rename(temp, f.name); err != nil {
		return f.failed(err)
	}
	return f.syncFolders(root)
}

func writeSynced(root *os.Root, name string, data []byte) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close())
}

// syncFolders makes the new name last, and the folders that may be new too. Windows does this by itself.
func (f *File) syncFolders(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	for folder := path.Dir(f.name); ; folder = path.Dir(folder) {
		d, err := root.Open(folder)
		if err != nil {
			return f.failed(err)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return f.failed(err)
		}
		if folder == "." {
			return nil
		}
	}
}

// lineOf returns the position of an offset in a text, counted from 1 in characters.
func lineOf(text string, offset int) (line, column int) {
	before := text[:offset]
	line = 1 + strings.Count(before, "\n")
	return line, 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}
