// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

const (
	// private is what folders allow while they are filled.
	private fs.FileMode = 0o700
	// parentPerm is for the folders above the copy, which the source has not.
	parentPerm fs.FileMode = 0o755
	// run is how many neighbours one worker takes at a time. Neighbours are mostly in one folder, which
	// the system lets only one worker change at a time.
	run = 32
	// mostWorkers is enough for any disk.
	mostWorkers = 8
)

// A Summary describes what was copied.
type Summary struct {
	Files, Folders, Links int
	// Bytes is the size of all files; one with several names counts once.
	Bytes int64
	// First are the first paths of files and links in order. A copy of a single file has its base name.
	First []string
}

type copying struct {
	plan  *Plan
	dst   *filetree.Root
	to    string
	bytes atomic.Int64
	pairs clonable
}

// Copy copies everything to a path of dst, which must not exist. The Summary has at most that many paths. After an
// error, the caller removes the partial copy.
func (p *Plan) Copy(ctx context.Context, dst *filetree.Root, to string, most int) (Summary, error) {
	c := &copying{plan: p, dst: dst, to: to}
	c.bytes.Store(p.bytes)
	if err := c.copyAll(ctx); err != nil {
		return Summary{}, err
	}
	return c.summary(most), nil
}

func (c *copying) copyAll(ctx context.Context) error {
	if parent := path.Dir(c.to); parent != "." {
		if err := c.dst.MkdirAll(parent, parentPerm); err != nil {
			return err
		}
	}
	if err := c.makeFolders(); err != nil {
		return err
	}
	if err := c.fill(ctx); err != nil {
		return err
	}
	if err := c.joinNames(ctx); err != nil {
		return err
	}
	return c.finishFolders()
}

func (c *copying) at(it *item) string { return path.Join(c.to, it.rel) }

func (c *copying) makeFolders() error {
	if !c.plan.Directory {
		return nil
	}
	if err := c.dst.Mkdir(c.to, private); err != nil {
		return err
	}
	for _, it := range c.plan.items {
		if it.entry.Kind == filetree.Dir {
			if err := c.dst.Mkdir(c.at(it), private); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill copies files and links with several workers. The first trouble ends them all.
func (c *copying) fill(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := slices.DeleteFunc(slices.Clone(c.plan.items), func(it *item) bool {
		return it.entry.Kind == filetree.Dir || it.first != nil
	})
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(max(runtime.GOMAXPROCS(0), 2), mostWorkers) {
		wg.Go(func() {
			for {
				end := int(next.Add(run))
				if end-run >= len(todo) {
					return
				}
				for _, it := range todo[end-run : min(end, len(todo))] {
					if ctx.Err() != nil {
						return
					}
					if err := c.copyItem(ctx, it); err != nil {
						cancel(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (c *copying) copyItem(ctx context.Context, it *item) error {
	if it.entry.Kind == filetree.Link {
		return c.copyLink(it)
	}
	src, now, err := it.root.OpenFile(it.entry.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		it.gone = true
		return nil
	case err != nil:
		return sourceError(it, err)
	}
	defer func() { _ = src.Close() }() // it was only read
	if isSetID(now.Perm) {
		return setIDRefusal(it.rel)
	}
	if err := c.plan.within(c.bytes.Add(now.Size - it.entry.Size)); err != nil {
		return err
	}
	it.entry = now
	return c.copyFile(ctx, src, it)
}

// sourceError is the error of a file that can no longer be opened.
func sourceError(it *item, err error) error {
	if exchanged(err) {
		return &Refusal{it.rel, "was exchanged while it was copied", "do not change the host's files meanwhile, or exclude it", err}
	}
	return advice.Wrap(fmt.Errorf("copying %q: %w", it.rel, err), "exclude it, or let this user read it")
}

// exchanged reports whether a link, or something else, is where a file or a folder was.
func exchanged(err error) bool {
	return errors.Is(err, filetree.ErrLink) || errors.Is(err, filetree.ErrNotFile) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ESTALE)
}

func (c *copying) copyFile(ctx context.Context, src *os.File, it *item) error {
	dst, err := c.dst.Create(c.at(it))
	if err != nil {
		return err
	}
	err = c.copyContent(ctx, dst, src, it.entry)
	if err == nil {
		err = c.finishFile(dst, it)
	}
	if err := errors.Join(err, dst.Close()); err != nil {
		return fmt.Errorf("copying %q: %w", it.rel, err)
	}
	return nil
}

func (c *copying) copyLink(it *item) error {
	if err := c.dst.Symlink(it.entry.Target, c.at(it)); err != nil {
		return err
	}
	return c.setMeta(c.at(it), it.entry)
}

// joinNames gives the copies of files their further names. If the first name has disappeared, the next existing one
// replaces it: a file with many names is copied once, even if one is removed meanwhile.
func (c *copying) joinNames(ctx context.Context) error {
	heirs := map[*item]*item{}
	for _, it := range c.plan.items {
		if it.first == nil {
			continue
		}
		if it.first.gone && heirs[it.first] == nil {
			if err := c.copyItem(ctx, it); err != nil {
				return err
			}
			if !it.gone {
				heirs[it.first], it.first = it, nil
			}
			continue
		}
		if it.first.gone {
			it.first = heirs[it.first]
		}
		if err := c.dst.Link(c.at(it.first), c.at(it)); err != nil {
			return err
		}
	}
	return nil
}

// finishFolders comes last, because entries change the time of a folder, and deepest first: a folder may allow nothing.
func (c *copying) finishFolders() error {
	for _, it := range slices.Backward(c.plan.items) {
		if it.entry.Kind == filetree.Dir {
			if err := c.setMeta(c.at(it), it.entry); err != nil {
				return err
			}
		}
	}
	if !c.plan.Directory {
		return nil
	}
	return c.setMeta(c.to, c.plan.top)
}

// setMeta gives an entry of the copy permissions and times, and leaves it its owner.
func (c *copying) setMeta(at string, like filetree.Entry) error {
	e, err := c.dst.Lstat(at)
	if err != nil {
		return err
	}
	if e.Kind != filetree.Link {
		e.Perm = like.Perm &^ (fs.ModeSetuid | fs.ModeSetgid)
	}
	e.ModTime = like.ModTime
	return c.dst.SetMeta(e)
}

func (c *copying) summary(most int) Summary {
	s := Summary{First: []string{}}
	for _, it := range c.plan.items {
		switch {
		case it.gone:
			continue
		case it.entry.Kind == filetree.Dir:
			s.Folders++
			continue
		case it.entry.Kind == filetree.Link:
			s.Links++
		default:
			s.Files++
			if it.first == nil {
				s.Bytes = plus(s.Bytes, it.entry.Size)
			}
		}
		if len(s.First) < most {
			s.First = append(s.First, it.name())
		}
	}
	return s
}

func (it *item) name() string {
	if it.rel == "" {
		return path.Base(it.entry.Path)
	}
	return it.rel
}
