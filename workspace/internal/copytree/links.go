// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// maxFollowed bounds the followed links to folders: a few that link to each other can make more copies than fit.
const maxFollowed = 10_000

// follow replaces a link by its target. above are the folders in which it was found, the nearest last: a link that
// leads back to them would never end.
func (p *Plan) follow(ctx context.Context, link *item, above []Source) error {
	target, err := p.opts.Follow(filepath.Join(link.root.Dir(), filepath.FromSlash(link.entry.Path)))
	if errors.Is(err, fs.ErrNotExist) && p.globs.SkipsEntry(link.rel, false) {
		return nil // it would be left out, if it led anywhere
	}
	if err != nil {
		return namedRefusal(link.rel, err)
	}
	entry, err := target.Root.Lstat(target.Path)
	if err == nil && p.globs.SkipsEntry(link.rel, entry.Kind == filetree.Dir) {
		return nil
	}
	if err != nil {
		return advice.Wrap(fmt.Errorf("following the link %q: %w", link.rel, err), "exclude it, or repair it")
	}
	if err := p.add(&item{root: target.Root, entry: entry, rel: link.rel}); err != nil || entry.Kind != filetree.Dir {
		return err
	}
	if p.followed++; p.followed > maxFollowed {
		return &Refusal{link.rel, "is one of too many links to folders", "exclude such links, or copy them as links", nil}
	}
	if leadsBack(link, target, above) {
		return &Refusal{link.rel, "leads back to a folder that it is in, in a circle", "exclude it, or copy links as links", nil}
	}
	return p.walk(ctx, target, link.rel, above)
}

// namedRefusal gives a refusal the path of the link.
func namedRefusal(rel string, err error) error {
	if refused, ok := errors.AsType[*Refusal](err); ok {
		named := *refused
		named.Path = rel
		return &named
	}
	return advice.Wrap(fmt.Errorf("following the link %q: %w", rel, err), "exclude it, or repair it")
}

// leadsBack reports whether the target holds the link, or a folder from which links led to it.
func leadsBack(link *item, target Source, above []Source) bool {
	to := absolute(target)
	at := filepath.Dir(absolute(Source{link.root, link.entry.Path}))
	return filetree.Holds(to, at) || slices.ContainsFunc(above, func(s Source) bool { return filetree.Holds(to, absolute(s)) })
}

func absolute(s Source) string { return filepath.Join(s.Root.Dir(), filepath.FromSlash(s.Path)) }

// checkLinks refuses links that lead out of the copy. Where one leads depends on the other links, so that
// each is followed as the system will follow it, through the plan.
func (p *Plan) checkLinks() error {
	for _, it := range p.items {
		if it.entry.Kind != filetree.Link {
			continue
		}
		linkAt := func(rel string) (string, bool) { target, isLink := p.links[rel]; return target, isLink }
		if !filetree.LeadsInside(path.Dir(it.rel), it.entry.Target, linkAt) {
			return &Refusal{
				it.rel, fmt.Sprintf("is a link that leads out, to %q", it.entry.Target),
				"exclude it, or set FollowSymlinks to copy what it leads to", nil,
			}
		}
	}
	return nil
}
