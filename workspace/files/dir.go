// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/workspace"
)

// A DirFS is an [FS] over a folder. The folder is held open: moved elsewhere, it is still the same.
type DirFS struct {
	*rooted
	root *os.Root
}

// OpenDirFS opens a folder as a file system.
//
// A file is written in its folder under a name that begins with ".drover-", and then renamed: a kill in the middle
// leaves such a file. Nothing waits for the disk. A file that is replaced keeps its permissions and, where this
// process may give files away, its owner; its other hard links keep the old content.
func OpenDirFS(dir string, opts *Options) (*DirFS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	_, escapes := root.Lstat("..")
	return &DirFS{rooted: newRooted(&dirStore{root: root, escapes: bareError(escapes)}, opts), root: root}, nil
}

// Close gives up the handle. Files that are open stay so.
func (d *DirFS) Close() error { return d.root.Close() }

// dirStore keeps files in a folder. The system's rooted handles see to it that nothing leaves it.
type dirStore struct {
	root    *os.Root
	escapes error // what root answers where a name leads out
}

// explain returns the error that names the link that leads out, instead of the system's.
func (d *dirStore) explain(name string, err error) error {
	if err == nil || !errors.Is(bareError(err), d.escapes) {
		return err
	}
	if _, named := resolve(d, name, true); errors.Is(named, workspace.ErrSecurity) {
		return named
	}
	return leadsOut(name)
}

func (d *dirStore) Lstat(name string) (fs.FileInfo, error) { return look(d, name, d.root.Lstat) }

func (d *dirStore) stat(name string) (fs.FileInfo, error) { return look(d, name, d.root.Stat) }

func (d *dirStore) ReadLink(name string) (string, error) {
	target, err := look(d, name, d.root.Readlink)
	if err != nil && !errors.Is(err, workspace.ErrSecurity) {
		if info, lerr := d.Lstat(name); lerr == nil && info.Mode()&fs.ModeSymlink == 0 {
			return "", errNoLink
		}
	}
	return target, err
}

func look[T any](d *dirStore, name string, do func(string) (T, error)) (T, error) {
	local, err := localName(name)
	if err != nil {
		var none T
		return none, err
	}
	got, err := do(local)
	return got, d.explain(name, err)
}

// localName spells a name as the system does. A link may lead to one that is not UTF-8.
func localName(name string) (string, error) {
	if os.PathSeparator == '/' {
		return name, nil
	}
	local, err := filepath.Localize(name)
	if err != nil {
		return "", &refusal{"is not a name on this system", fs.ErrInvalid}
	}
	return local, nil
}

func (d *dirStore) open(name string) (fs.File, error) {
	file, err := look(d, name, d.openFile)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return dirFile{file}, nil
}

// A dirFile only reads. A file of the system could also be given other permissions, past every view of the file system.
type dirFile struct{ file *os.File }

func (f dirFile) Stat() (fs.FileInfo, error)                { return f.file.Stat() }
func (f dirFile) Read(p []byte) (int, error)                { return f.file.Read(p) }
func (f dirFile) ReadAt(p []byte, off int64) (int, error)   { return f.file.ReadAt(p, off) }
func (f dirFile) Seek(off int64, whence int) (int64, error) { return f.file.Seek(off, whence) }
func (f dirFile) ReadDir(n int) ([]fs.DirEntry, error)      { return f.file.ReadDir(n) }
func (f dirFile) Close() error                              { return f.file.Close() }

// openFile opens a file for reading, never a pipe or a device; one that replaces a file at this moment does not block.
func (d *dirStore) openFile(local string) (*os.File, error) {
	if info, err := d.root.Stat(local); err != nil {
		return nil, err
	} else if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	file, err := d.root.OpenFile(local, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errors.Join(err, errNoFile)
	}
	return file, nil
}

func (d *dirStore) readDir(name string) ([]fs.DirEntry, error) {
	folder, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	if info, err := folder.Stat(); err == nil && !info.IsDir() {
		return nil, errNoFolder
	}
	entries, err := folder.(fs.ReadDirFile).ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (d *dirStore) write(name string, data []byte, old fs.FileInfo, opts WriteOptions) error {
	// A handle on the folder: also if the folder is renamed, the new file is made, renamed and, if that fails,
	// removed in the same folder.
	folder, err := look(d, path.Dir(name), d.root.OpenRoot)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	base, err := localName(path.Base(name))
	if err != nil {
		return err
	}
	temp := ".drover-" + ident.NewUUID()
	err = writeTemp(folder, temp, base, data, old, opts)
	if err == nil {
		err = giveName(folder, temp, base, opts.CreateOnly)
	}
	if err != nil {
		_ = folder.Remove(temp)
	}
	return err
}

// giveName names a written file. With createOnly a name taken meanwhile is an error, if the file system has hard links.
func giveName(folder *os.Root, temp, base string, createOnly bool) error {
	if createOnly {
		if err := folder.Link(temp, base); err == nil {
			return folder.Remove(temp)
		} else if errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return folder.Rename(temp, base)
}

func writeTemp(folder *os.Root, temp, base string, data []byte, old fs.FileInfo, opts WriteOptions) (err error) {
	file, err := folder.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, opts.Perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if old != nil {
		keepOwner(file, old)
		if err := file.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
		if opts.Append {
			if err := copyFrom(file, folder, base); err != nil {
				return err
			}
		}
	}
	_, err = file.Write(data)
	return err
}

func copyFrom(file *os.File, folder *os.Root, base string) error {
	before, err := (&dirStore{root: folder}).openFile(base)
	if err != nil {
		return err
	}
	defer func() { _ = before.Close() }()
	_, err = io.Copy(file, before)
	return err
}

func (d *dirStore) mkdir(name string) error {
	return d.do(name, func(local string) error { return d.root.Mkdir(local, 0o755) })
}

func (d *dirStore) removeAll(name string) error { return d.do(name, d.root.RemoveAll) }

func (d *dirStore) rename(oldName, newName string) error {
	return d.do(oldName, func(from string) error {
		return d.do(newName, func(to string) error { return d.root.Rename(from, to) })
	})
}

func (d *dirStore) do(name string, change func(local string) error) error {
	_, err := look(d, name, func(local string) (struct{}, error) { return struct{}{}, change(local) })
	return err
}
