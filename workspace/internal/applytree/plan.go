// SPDX-License-Identifier: Apache-2.0

package applytree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A fate is what becomes of a folder that has steps below it.
type fate uint8

const (
	stays   fate = iota + 1
	made         // it is not there yet: nothing is below it
	leaves       // everything below it goes with it
	blocked      // it is not there, and the plan does not make it
)

// A planner compares the steps with the tree and decides what to do about each path.
type planner struct {
	root  *filetree.Root
	j     *journal
	work  string
	steps map[string]*Step
	ops   map[string]*op
	fates map[string]fate
	// folders has the index in j.Folders of each path.
	folders map[string]int
}

func newPlanner(root *filetree.Root, j *journal, work string) *planner {
	return &planner{
		root: root, j: j, work: work, steps: map[string]*Step{}, ops: map[string]*op{},
		fates: map[string]fate{".": stays}, folders: map[string]int{},
	}
}

// plan fills the journal with operations. Steps are sorted.
func (p *planner) plan(steps []Step) error {
	for i := range steps {
		p.steps[steps[i].Path] = &steps[i]
	}
	for i := range steps {
		if err := p.decide(&steps[i]); err != nil {
			return fmt.Errorf("applytree: %q: %w", steps[i].Path, err)
		}
	}
	for _, o := range p.j.Ops {
		if err := p.settleLink(o); err != nil {
			return err
		}
	}
	err := p.touchAll()
	slices.SortFunc(p.j.Folders, func(a, b folder) int { return strings.Compare(a.path(), b.path()) })
	return err
}

// decide looks at the path of one step. Folders were decided before what is in them.
func (p *planner) decide(s *Step) error {
	fate, err := p.fate(path.Dir(s.Path))
	if err != nil {
		return err
	}
	o := &op{Path: s.Path, Expect: s.Expect, Want: s.Want, Hash: s.Hash, write: s.Write}
	p.fates[s.Path] = leaves
	switch fate {
	case leaves:
		if s.Want != nil {
			return errors.New("is wanted, but not the folder it is in")
		}
		o.Covered = true
		p.add(o)
		return nil
	case blocked:
		p.fates[s.Path] = blocked
		if s.Want != nil || s.Expect != nil {
			p.note(o, "is in a folder that is not there any more", s.Want != nil)
		}
		return nil
	case stays:
		if o.Now, err = p.look(s.Path); err != nil {
			return err
		}
	}
	if err := p.choose(s, o); err != nil {
		return err
	}
	p.add(o)
	return nil
}

// look is for paths of the tree. The root was looked at before we put a hidden folder there.
func (p *planner) look(path string) (*filetree.Entry, error) {
	if path == "." {
		return &p.j.Root, nil
	}
	return look(p.root, path)
}

// fate returns what becomes of a folder. Existing folders without a step stay.
func (p *planner) fate(dir string) (fate, error) {
	if f := p.fates[dir]; f != 0 {
		return f, nil
	}
	above, err := p.fate(path.Dir(dir))
	if err != nil {
		return 0, err
	}
	switch above {
	case made:
		above = blocked
	case stays:
		e, err := look(p.root, dir)
		if err != nil {
			return 0, err
		}
		if !isKind(e, filetree.Dir) {
			above = blocked
		}
	}
	p.fates[dir] = above
	return above, nil
}

func (p *planner) choose(s *Step, o *op) error {
	surprise := difference(s.Expect, o.Now)
	if surprise != "" && (o.Now != nil || s.Want != nil || p.j.AllOrNothing) {
		defer func() {
			if surprise != "" {
				p.note(o, surprise, o.skip)
			}
		}()
	}
	switch {
	case s.Want == nil:
		o.Displace = o.Now != nil
	case s.Want.Kind == filetree.Dir:
		p.chooseFolder(o)
	case s.Want.Kind == filetree.Socket || s.Want.Kind == filetree.Device:
		o.Meta = isKind(o.Now, s.Want.Kind) && surprise == ""
		if !o.Meta {
			o.skip = true
			p.note(o, "is a "+s.Want.Kind.String()+", which cannot be made again", true)
		}
	case s.Link != "":
		o.Link = s.Link // settled when all are known
	case s.Want.Kind == filetree.File && s.Write == nil:
		o.Meta = surprise == "" || s.Hash != "" && hasContent(p.root, s.Path, s.Hash)
		o.skip = !o.Meta
		if o.Meta {
			surprise = ""
		}
	case s.Want.Kind != filetree.File && isKind(o.Now, s.Want.Kind) && o.Now.Target == s.Want.Target:
		o.Meta = true // of a link or a pipe only the rest differs
	default:
		p.stage(o)
		return p.move(s, o)
	}
	return nil
}

// stage plans that the present entry makes room for a new one.
func (p *planner) stage(o *op) {
	o.Displace, o.Stage = o.Now != nil, strconv.Itoa(len(p.j.Ops))
}

// move takes a file from elsewhere in the tree, if it is untouched there.
func (p *planner) move(s *Step, o *op) error {
	from := p.steps[s.From]
	if s.From == "" || from == nil || !isKind(from.Expect, filetree.File) {
		return nil
	}
	now, err := look(p.root, s.From)
	if err != nil || now == nil || now.Stamp.Links > 1 || !untouched(from.Expect, now) || now.Size != s.Want.Size {
		return err
	}
	o.From, o.Staged = s.From, *now
	return nil
}

func (p *planner) chooseFolder(o *op) {
	if isKind(o.Now, filetree.Dir) {
		p.fates[o.Path] = stays
		p.setFolder(o.Path, folder{Before: o.Now, After: o.Want})
		return
	}
	p.fates[o.Path] = made
	p.setFolder(o.Path, folder{After: o.Want})
	p.stage(o)
}

// settleLink finds the file that a hard link leads to in the end, and whether the link is there already.
func (p *planner) settleLink(o *op) error {
	if o.Link == "" {
		return nil
	}
	leader := o.Link
	for range len(p.steps) + 1 {
		s := p.steps[leader]
		if s == nil || s.Link == "" {
			return p.linkTo(o, leader, s)
		}
		leader = s.Link
	}
	return fmt.Errorf("applytree: %q: its hard link leads to itself", o.Path)
}

func (p *planner) linkTo(o *op, leader string, s *Step) error {
	if s != nil && !isKind(s.Want, filetree.File) {
		return fmt.Errorf("applytree: %q: it must be a hard link to %q, which is not to be a file", o.Path, leader)
	}
	o.Link = leader
	stays := p.ops[leader] == nil || p.ops[leader].Meta
	if stays && o.Now != nil {
		e, err := look(p.root, leader)
		if err != nil {
			return err
		}
		if e != nil && sameInode(e, o.Now) {
			o.Link, o.Meta = "", true
			return nil
		}
	}
	o.Displace = o.Now != nil
	return nil
}

// touchAll lists the folders whose times will change because something in them does.
func (p *planner) touchAll() error {
	if p.j.Hidden != "" {
		if err := p.touch("."); err != nil {
			return err
		}
	}
	for _, o := range p.j.Ops {
		if o.Displace || o.Stage != "" || o.Link != "" {
			if err := p.touch(path.Dir(o.Path)); err != nil {
				return err
			}
		}
		if o.From != "" {
			if err := p.touch(path.Dir(o.From)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *planner) touch(dir string) error {
	if _, known := p.folders[dir]; known {
		return nil
	}
	e, err := p.look(dir)
	if err != nil || e == nil {
		return err
	}
	if p.fates[dir] == leaves {
		p.setFolder(dir, folder{Before: e})
		return nil
	}
	p.setFolder(dir, folder{Before: e, After: e})
	return nil
}

func (p *planner) setFolder(dir string, f folder) {
	p.folders[dir] = len(p.j.Folders)
	p.j.Folders = append(p.j.Folders, f)
}

func (p *planner) add(o *op) {
	p.ops[o.Path] = o
	p.j.Ops = append(p.j.Ops, o)
}

func (p *planner) note(o *op, reason string, failed bool) {
	n := note{Conflict{Path: o.Path, Reason: reason}, failed}
	if o.Displace || o.Link != "" && o.Now != nil {
		n.Aside = filepath.Join(p.work, filepath.FromSlash(p.j.Aside), filepath.FromSlash(o.Path))
	}
	p.j.Notes = append(p.j.Notes, n)
}

// strangers notes entries of folders that are to go which are not in the plan, or changed meanwhile.
func (p *planner) strangers(ctx context.Context) error {
	for _, o := range p.j.Ops {
		if !o.Displace || !isKind(o.Now, filetree.Dir) {
			continue
		}
		entries, err := p.root.Walk(ctx, &filetree.WalkOptions{From: o.Path, NoXattrs: true})
		if err != nil {
			return err
		}
		for i := range entries {
			if reason := strange(p.ops[entries[i].Path], &entries[i]); reason != "" {
				p.note(&op{Path: entries[i].Path}, reason, true)
			}
		}
	}
	return nil
}

func strange(o *op, now *filetree.Entry) string {
	if o == nil {
		return difference(nil, now)
	}
	return difference(o.Expect, now)
}

func hasContent(r *filetree.Root, path, hash string) bool {
	f, _, err := r.OpenFile(path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return err == nil && hex.EncodeToString(h.Sum(nil)) == hash
}
