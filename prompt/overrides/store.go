// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/prompt"
)

// DefaultTag is the tag of overrides that name none.
const DefaultTag = "latest"

// ErrFile is wrapped when a file of an [Store] cannot be understood. Such a file is
// never taken for one without overrides, and never written over by a setter.
var ErrFile = errors.New("the file of overrides is wrong")

// A Store keeps overrides in files below one folder: one for each template and tag.
type Store struct {
	// Dir is the folder, made by the first write. A good choice is .drover/overrides at the
	// root of the project. The file of a template is Dir/namespace/key/tag.json.
	Dir string
}

// A Template is what overrides are for: a [*prompt.Template] or a [*prompt.Prompt] of any output type.
type Template interface {
	Name() string
	Descriptor() *prompt.Descriptor
	Overridable() *prompt.Overrides
	CheckOverrides(o *prompt.Overrides) ([]prompt.StaleOverride, error)
}

// A File has the overrides of one template under one tag. It keeps nothing in memory: each
// call sees what the file has then. It is safe for use by several goroutines.
//
// The setters replace one part each, for the text as the template has it now, and keep overrides that were made for other
// texts. A part that does not exist or takes no overrides is an [*prompt.Error] that lists the valid targets.
type File struct {
	dir  string
	name string // below dir, with slashes
	of   string // the name of the template
	t    Template
	now  *prompt.Overrides // everything that can be overridden
}

// File returns the file for a template and a tag, whether it exists or not. A tag has what a key of a
// template has and is lower-cased; empty means [DefaultTag].
func (s *Store) File(of Template, tag string) (*File, error) {
	d := of.Descriptor()
	tag = strings.ToLower(cmp.Or(tag, DefaultTag))
	switch {
	case s.Dir == "":
		return nil, fmt.Errorf("overrides: %s: Store.Dir is empty", of.Name())
	case !tagPattern().MatchString(tag):
		return nil, fmt.Errorf("overrides: %s: the tag %q is not 1 to 64 letters, digits, dots, _ or -, a letter or digit first", of.Name(), tag)
	}
	return &File{s.Dir, path.Join(folderOf(d), tag+fileSuffix), of.Name(), of, of.Overridable()}, nil
}

const fileSuffix = ".json"

var tagPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })

// folderOf is where the files of a template are, below the folder of the store.
func folderOf(d *prompt.Descriptor) string { return path.Join(d.Namespace, d.Key) }

// Tags lists the tags that a template has files for, sorted.
func (s *Store) Tags(of Template) ([]string, error) {
	d := of.Descriptor()
	files, err := s.list(folderOf(d))
	if err != nil {
		return nil, fmt.Errorf("overrides: %s: %w", of.Name(), err)
	}
	var tags []string
	for _, f := range files {
		tag, ok := strings.CutSuffix(f.Name(), fileSuffix)
		if ok && !f.IsDir() && tagPattern().MatchString(tag) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags, nil
}

func (s *Store) list(folder string) ([]fs.DirEntry, error) {
	root, err := os.OpenRoot(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := fs.ReadDir(root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// Path returns the path of the file.
func (f *File) Path() string { return filepath.Join(f.dir, filepath.FromSlash(f.name)) }

// Resolve reads the overrides that are for the texts of the template as they are, ready for
// [prompt.RenderOptions]. The others are reported and left out. Without a file the result has no overrides. The error is
// an [*prompt.Error]: it wraps [ErrFile] with line and column where the file is wrong, and
// [prompt.ErrOverride] where one of its overrides cannot be applied.
func (f *File) Resolve() (*prompt.Overrides, []prompt.StaleOverride, error) {
	all, err := f.read()
	if err != nil {
		return nil, nil, err
	}
	o, stale, err := f.resolve(all)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	return o, stale, nil
}

// resolve takes the entries apart and checks those that apply.
func (f *File) resolve(all entries) (*prompt.Overrides, []prompt.StaleOverride, error) {
	o, stale := &prompt.Overrides{}, []prompt.StaleOverride(nil)
	for _, k := range all.sorted() {
		if s, isStale := f.stale(k, all[k]); isStale {
			stale = append(stale, s)
		} else if err := k.addTo(o, all[k]); err != nil {
			return nil, nil, f.wrong(0, 0, fmt.Sprintf("%s: %v", k, err))
		}
	}
	_, err := f.t.CheckOverrides(o)
	return o, stale, err
}

// Put makes o the overrides for the texts as they are now, instead of those that there were, and keeps the ones for other
// texts. An empty hash in o means the hash now; any other must be the hash now.
func (f *File) Put(ctx context.Context, o *prompt.Overrides) error {
	added, err := f.entriesOf(o)
	if err != nil {
		return err
	}
	return f.edit(ctx, func(all entries) error {
		maps.DeleteFunc(all, func(k entryKey, v entryValue) bool { _, isStale := f.stale(k, v); return !isStale })
		maps.Copy(all, added)
		return nil
	})
}

// Prune removes the overrides that apply to nothing and returns them.
func (f *File) Prune(ctx context.Context) ([]prompt.StaleOverride, error) {
	var pruned []prompt.StaleOverride
	err := f.edit(ctx, func(all entries) error {
		for _, k := range all.sorted() {
			if s, isStale := f.stale(k, all[k]); isStale {
				pruned = append(pruned, s)
				delete(all, k)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pruned, nil
}

// Seed writes a file with everything that can be overridden as it is now, for an editor to start with. As long as it is not
// edited it changes nothing but spaces in the JSON of examples. Where there is a file already, that is an error which wraps
// [fs.ErrExist], unless overwrite is set: then all that it had is lost.
func (f *File) Seed(ctx context.Context, overwrite bool) error {
	all, err := f.entriesOf(f.now)
	if err != nil {
		return err
	}
	data, err := all.encode()
	if err != nil {
		return f.failed(err)
	}
	return f.locked(ctx, func(root *os.Root) error {
		if _, err := root.Lstat(f.name); err == nil && !overwrite {
			return advice.Wrap(fmt.Errorf("overrides: %s: %s: %w", f.of, f.Path(), fs.ErrExist), "edit it, or ask to overwrite it")
		}
		return f.write(root, data)
	})
}

// Delete removes the file. It returns nil if the file does not exist.
func (f *File) Delete(ctx context.Context) error {
	return f.locked(ctx, func(root *os.Root) error {
		if err := root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f.failed(err)
		}
		return nil
	})
}
