// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"context"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/pathglob"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A Source is a file or folder below a root.
type Source struct {
	Root *filetree.Root
	// Path is relative to the root. "." is the root itself.
	Path string
}

// Options narrows a [Plan]. The zero value copies everything, and links as links.
type Options struct {
	// Include and Exclude are globs relative to the source, with ** for any number of folders. Without
	// Include everything is copied that Exclude does not name. A folder that Exclude names is not
	// opened. The only file of a source that is a file goes by its base name.
	Include, Exclude []string
	// MaxBytes bounds the content that is copied. Nil means no limit.
	MaxBytes *int64
	// Follow finds what the link at an absolute path of the host leads to. It refuses what may not be
	// read. Nil means that links are copied as links.
	Follow func(link string) (Source, error)
}

// A Plan is what there is to copy.
type Plan struct {
	// Directory is false if the source is a single file.
	Directory bool

	opts  Options
	globs *pathglob.Matcher
	items []*item // sorted by rel: what is in a folder comes after it
	links map[string]string
	bytes int64
	top   filetree.Entry
	// followed counts the links to folders, which may multiply.
	followed int
}

type item struct {
	root  *filetree.Root
	entry filetree.Entry // Path is that in the source's root
	rel   string         // in the copy
	first *item          // of the names of one file; nil for the first itself and for all other files
	gone  bool           // it disappeared before it was copied
}

// isSetID reports the bits that lend the rights of another user.
func isSetID(perm fs.FileMode) bool { return perm&(fs.ModeSetuid|fs.ModeSetgid) != 0 }

// NewPlan reads the source. It fails with a [Refusal], with [TooLarge], or with an error of the system.
func NewPlan(ctx context.Context, src Source, opts Options) (*Plan, error) {
	globs, err := pathglob.New(opts.Include, opts.Exclude)
	if err != nil {
		return nil, err
	}
	p := &Plan{opts: opts, globs: globs, links: map[string]string{}}
	if err := p.look(ctx, src); err != nil {
		return nil, err
	}
	p.dropEmptyFolders()
	p.joinNames()
	return p, p.checkBytes()
}

func (p *Plan) look(ctx context.Context, src Source) error {
	top, err := src.Root.Lstat(src.Path)
	if err != nil {
		return err
	}
	p.top = top
	if top.Kind == filetree.Dir {
		p.Directory = true
		if err := p.walk(ctx, src, "", nil); err != nil {
			return err
		}
		byPath := func(a, b *item) int { return filetree.ComparePaths(a.rel, b.rel) }
		if !slices.IsSortedFunc(p.items, byPath) {
			slices.SortFunc(p.items, byPath)
		}
		return p.checkLinks()
	}
	if top.Kind == filetree.Link { // which would not be checked
		return &Refusal{"", "is a link, or became one while it was looked at", "mount what it leads to", nil}
	}
	if p.globs.SkipsEntry(path.Base(src.Path), false) {
		return nil
	}
	return p.add(&item{root: src.Root, entry: top})
}

// add refuses what is neither a file, nor a folder, nor a link.
func (p *Plan) add(it *item) error {
	switch kind := it.entry.Kind; {
	case kind == filetree.File && isSetID(it.entry.Perm):
		return setIDRefusal(it.rel)
	case kind == filetree.Link:
		p.links[it.rel] = it.entry.Target
	case kind != filetree.File && kind != filetree.Dir:
		return &Refusal{it.rel, "is a " + kind.String() + ", which has no content to copy", "exclude it", nil}
	}
	p.items = append(p.items, it)
	return nil
}

func setIDRefusal(rel string) error {
	return &Refusal{rel, "runs with the rights of its owner or group (set-id)", "take the bit away with chmod ug-s, or exclude it", nil}
}

// walk adds what is below a folder, which the copy has at a path. above are the real folders that lead to it through links.
func (p *Plan) walk(ctx context.Context, src Source, at string, above []Source) error {
	rel := func(e filetree.Entry) string { return path.Join(at, below(src.Path, e.Path)) }
	entries, err := src.Root.Walk(ctx, &filetree.WalkOptions{
		From: src.Path, NoXattrs: true, Exchanges: true,
		Skip: func(e filetree.Entry) bool { return p.skips(rel(e), e.Kind) },
	})
	if exchanged(err) {
		return &Refusal{at, "has a folder that was exchanged while it was looked at", "do not change the host's files meanwhile, or exclude it", err}
	}
	if err != nil {
		return advice.Wrap(err, "exclude what cannot be read, or let this user read it")
	}
	p.items = slices.Grow(p.items, len(entries))
	for _, e := range entries {
		it := &item{root: src.Root, entry: e, rel: rel(e)}
		if e.Kind == filetree.Link && p.opts.Follow != nil {
			err = p.follow(ctx, it, append(above, src))
		} else {
			err = p.add(it)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// skips reports entries that are left out before they are read. The target of a followed link may be a file or a
// folder, for which the globs differ.
func (p *Plan) skips(rel string, kind filetree.Kind) bool {
	if kind == filetree.Link && p.opts.Follow != nil {
		return p.globs.SkipsEntry(rel, false) && p.globs.SkipsEntry(rel, true)
	}
	return p.globs.SkipsEntry(rel, kind == filetree.Dir)
}

func below(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// dropEmptyFolders leaves out the folders in which nothing was included.
func (p *Plan) dropEmptyFolders() {
	if len(p.opts.Include) == 0 {
		return
	}
	needed := map[string]bool{}
	for _, it := range p.items {
		if it.entry.Kind == filetree.Dir {
			continue
		}
		for dir := path.Dir(it.rel); dir != "." && !needed[dir]; dir = path.Dir(dir) {
			needed[dir] = true
		}
	}
	p.items = slices.DeleteFunc(p.items, func(it *item) bool { return it.entry.Kind == filetree.Dir && !needed[it.rel] })
}

// joinNames finds the files that have several names in the source.
func (p *Plan) joinNames() {
	type inode struct{ dev, ino uint64 }
	first := map[inode]*item{}
	for _, it := range p.items {
		stamp := it.entry.Stamp
		if it.entry.Kind != filetree.File || stamp.Links < 2 {
			continue
		}
		if known := first[inode{stamp.Dev, stamp.Ino}]; known == nil {
			first[inode{stamp.Dev, stamp.Ino}] = it
		} else if known.entry.Path != it.entry.Path { // a link was followed to the same name
			it.first = known
		}
	}
}

// checkBytes also adds up. A file with several names counts once.
func (p *Plan) checkBytes() error {
	for _, it := range p.items {
		if it.first == nil {
			p.bytes = plus(p.bytes, it.entry.Size)
		}
	}
	return p.within(p.bytes)
}

// plus stops at the largest number. Two files with nothing but holes can be larger than that.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func (p *Plan) within(bytes int64) error {
	if limit := p.opts.MaxBytes; limit != nil && bytes > *limit {
		return &TooLarge{bytes, *limit}
	}
	return nil
}
