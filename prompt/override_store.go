// SPDX-License-Identifier: Apache-2.0

package prompt

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
	"slices"
	"strings"
)

// DefaultTag is the tag of overrides that name none.
const DefaultTag = "latest"

// ErrOverrideFile is wrapped when a file of an [OverrideStore] cannot be understood. Such a file is
// never taken for one without overrides, and never written over by a setter.
var ErrOverrideFile = errors.New("the file of overrides is wrong")

// An OverrideStore keeps overrides on disk: one JSON file for each template and tag, which people may
// edit and keep under version control. Promises:
//
//   - An override is kept with the hash of the text that it was made for and applies to that text
//     alone. Overrides for several versions of a text live side by side.
//   - Any number of processes may read and write. A change is made under a lock and takes the place
//     of the whole file at once, so that readers see it before or after, and a crash loses at most the
//     change that was not confirmed.
//   - What a setter has written can be applied: it is checked like the template itself.
//   - Nothing outside Dir is read or written, whatever names and links there are.
//   - A file has at most 16 MiB; what would be larger is not written.
//
// Beside the files there is one named ".lock", and after a crash there may be one that ends in
// ".tmp"; they need not be kept.
type OverrideStore struct {
	// Dir is the folder, made when something is written. A good place is .drover/overrides at the
	// root of the project. The file of a template is Dir/namespace/key/tag.json.
	Dir string
}

// Overridable is a [*Template] or a [*Prompt] of any output type.
type Overridable interface {
	Descriptor() *Descriptor
	compiled() *template
}

func (t *Template[Out]) compiled() *template { return t.t }
func (p *Prompt[Out]) compiled() *template   { return p.b.t }

// An OverrideFile has the overrides of one template under one tag. It keeps nothing in memory: each
// call sees what the file has then. It is safe for use by several goroutines.
//
// The setters replace one thing each, for the text as the template has it now, and keep overrides
// that were made for other texts. What the template does not have, and what takes no overrides, is an
// [*Error] that says what there is.
type OverrideFile struct {
	dir  string
	name string // below dir, with slashes
	t    *template
}

// File returns the file for a template and a tag, whether it exists or not. A tag has what a key of a
// template has and is lower-cased; empty means [DefaultTag].
func (s *OverrideStore) File(of Overridable, tag string) (*OverrideFile, error) {
	t := of.compiled()
	tag = strings.ToLower(cmp.Or(tag, DefaultTag))
	switch {
	case s.Dir == "":
		return nil, fmt.Errorf("prompt: overrides of %s: OverrideStore.Dir is empty", t.name)
	case !namePattern().MatchString(tag):
		return nil, fmt.Errorf("prompt: overrides of %s: the tag %q is not 1 to 64 letters, digits, dots, _ or -, a letter or digit first", t.name, tag)
	}
	return &OverrideFile{s.Dir, path.Join(folderOf(t), tag+fileSuffix), t}, nil
}

const fileSuffix = ".json"

// folderOf is where the files of a template are, below the folder of the store.
func folderOf(t *template) string { return path.Join(t.namespace, t.key) }

// Tags lists the tags that a template has files for, sorted.
func (s *OverrideStore) Tags(of Overridable) ([]string, error) {
	t := of.compiled()
	files, err := s.list(folderOf(t))
	if err != nil {
		return nil, fmt.Errorf("prompt: overrides of %s: %w", t.name, err)
	}
	var tags []string
	for _, f := range files {
		tag, ok := strings.CutSuffix(f.Name(), fileSuffix)
		if ok && !f.IsDir() && namePattern().MatchString(tag) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags, nil
}

func (s *OverrideStore) list(folder string) ([]fs.DirEntry, error) {
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

// Path is where the file is.
func (f *OverrideFile) Path() string { return filepath.Join(f.dir, filepath.FromSlash(f.name)) }

// Resolve reads the overrides that are for the texts of the template as they are, ready for
// [RenderOptions]. The others are reported and left out. Without a file there are none. The error is
// an [*Error]: it wraps [ErrOverrideFile] with line and column where the file is wrong, and
// [ErrOverride] where one of its overrides cannot be applied.
func (f *OverrideFile) Resolve() (*Overrides, []StaleOverride, error) {
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
func (f *OverrideFile) resolve(all entries) (*Overrides, []StaleOverride, error) {
	o, stale := &Overrides{}, []StaleOverride(nil)
	for _, k := range all.sorted() {
		if s, isStale := f.t.stale(k); isStale {
			stale = append(stale, s)
		} else if err := k.addTo(o, all[k]); err != nil {
			return nil, nil, f.wrong(0, 0, fmt.Sprintf("%s: %v", k, err))
		}
	}
	return o, stale, f.t.checkOverrides(o)
}

// Put makes o the overrides for the texts as they are now, instead of those that there were, and
// keeps the ones for other texts. A hash in o that is empty stands for the hash now; any other must
// be the hash now.
func (f *OverrideFile) Put(ctx context.Context, o *Overrides) error {
	added, err := f.t.entriesOf(o)
	if err != nil {
		return err
	}
	return f.edit(ctx, func(all entries) error {
		maps.DeleteFunc(all, func(k entryKey, _ entryValue) bool { _, isStale := f.t.stale(k); return !isStale })
		maps.Copy(all, added)
		return nil
	})
}

// Prune removes the overrides that apply to nothing and returns them.
func (f *OverrideFile) Prune(ctx context.Context) ([]StaleOverride, error) {
	var pruned []StaleOverride
	err := f.edit(ctx, func(all entries) error {
		for _, k := range all.sorted() {
			if s, isStale := f.t.stale(k); isStale {
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

// Seed writes a file with everything that can be overridden as it is now, for an editor to start
// with. As long as it is not edited it changes nothing but spaces in the JSON of examples. Where there
// is a file already, that is an error which wraps [fs.ErrExist], unless overwrite is set: then all
// that it had is lost.
func (f *OverrideFile) Seed(ctx context.Context, overwrite bool) error {
	all, err := f.t.seeds()
	if err != nil {
		return err
	}
	data, err := all.encode()
	if err != nil {
		return f.failed(err)
	}
	return f.locked(ctx, func(root *os.Root) error {
		if _, err := root.Lstat(f.name); err == nil && !overwrite {
			return fmt.Errorf("prompt: overrides of %s: %s: %w\n  next: edit it, or ask to overwrite it", f.t.name, f.Path(), fs.ErrExist)
		}
		return f.write(root, data)
	})
}

// Delete removes the file. It is no error if there is none.
func (f *OverrideFile) Delete(ctx context.Context) error {
	return f.locked(ctx, func(root *os.Root) error {
		if err := root.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return f.failed(err)
		}
		return nil
	})
}
