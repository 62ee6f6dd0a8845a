// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/pathglob"
	"github.com/drover-agents/drover/workspace/internal/applytree"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// A writeBackPlan is the wanted state of the host.
type writeBackPlan struct {
	ctx     context.Context
	w       *Workspace
	opts    *WriteBackOptions
	targets *targets
	only    *pathglob.Matcher
	now     time.Time

	skipped   []SkippedPath
	git       map[string]int  // changes that stay behind, by folder of a repository
	bare      map[string]bool // whether folders are repositories, as far as that was looked at
	conflicts []plannedConflict
}

type plannedStep struct {
	applytree.Step
	ours    *side
	mounted *side
	parent  bool // it is a folder that is only made on the way
}

// A plannedConflict can be resolved by Force only if it is about one file, link or nothing on the host.
type plannedConflict struct {
	Conflict
	hard   bool
	target *target
	rel    string
}

func newWriteBackPlan(ctx context.Context, w *Workspace, opts *WriteBackOptions, ts *targets) (*writeBackPlan, error) {
	only, err := pathglob.New(opts.Only, nil)
	if err != nil {
		return nil, fmt.Errorf("workspace: writing back: %w", err)
	}
	for _, t := range ts.all {
		t.plan = map[string]*plannedStep{}
	}
	return &writeBackPlan{
		ctx: ctx, w: w, opts: opts, targets: ts, only: only, now: time.Now(), git: map[string]int{}, bare: map[string]bool{},
	}, nil
}

// make plans all changes. Later passes see to what depends on several paths.
func (p *writeBackPlan) make(changes []Change) error {
	for _, c := range changes {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if p.only.Skips(c.Path, false) {
			continue
		}
		if err := p.add(c.Path, sideOf(c.Before), sideOf(c.After)); err != nil {
			return err
		}
	}
	for _, t := range p.targets.all {
		p.refuseLinks(t)
		if err := p.keepFilledFolders(t); err != nil {
			return err
		}
		if err := p.makeParents(t); err != nil {
			return err
		}
	}
	p.refuseTwice()
	p.refuseLost()
	p.nameGit()
	return p.checkAccess()
}

func (p *writeBackPlan) skip(name, reason string) {
	p.skipped = append(p.skipped, SkippedPath{name, reason})
}

func (p *writeBackPlan) conflict(t *target, rel, reason string, hard bool) {
	c := Conflict{Path: t.workspacePath(rel), Reason: reason}
	p.conflicts = append(p.conflicts, plannedConflict{c, hard, t, rel})
}

func (p *writeBackPlan) add(name string, before, ours *side) error {
	t, rel := p.targets.of(name)
	mounted := before
	if t != nil {
		if written, ok := p.w.backs.sides[t.way(rel)]; ok {
			before = written
		}
	}
	switch {
	case !differs(before, ours):
		return nil
	case t == nil && ours == nil:
		return nil // a folder that only led to mounts
	case t == nil:
		p.skip(name, "is in no mount")
		return nil
	case p.skipGit(t, rel):
		return nil
	case t.root == nil && !t.export:
		p.conflict(t, rel, "the folder that was mounted is gone from the host", true)
		return nil
	}
	if reason := t.untouchable(rel, ours); reason != "" {
		p.skip(name, reason)
		return nil
	}
	if ours != nil && ours.Kind > filetree.Link {
		p.skip(name, "is a "+ours.Kind.String()+", which is never written back")
		return nil
	}
	err := p.compare(t, rel, before, ours)
	if step := t.plan[rel]; step != nil {
		step.mounted = mounted
	}
	return err
}

// untouchable returns why the mounted folder or file itself stays unchanged.
func (t *target) untouchable(rel string, ours *side) string {
	switch {
	case rel == "." && (ours == nil || ours.Kind == filetree.Dir):
		return "is the mounted folder itself, which stays as it is"
	case rel == ".":
		return "has become a " + ours.Kind.String() + ", and a folder was mounted"
	case t.single != "" && ours != nil && ours.Kind != filetree.File:
		return "has become a " + ours.Kind.String() + ", and a file was mounted"
	}
	return ""
}

// compare decides about a path by what was mounted, what the workspace has and what the host has.
func (p *writeBackPlan) compare(t *target, rel string, before, ours *side) error {
	host, err := t.look(rel)
	if errors.Is(err, errBehind) {
		if ours == nil || t.plan[path.Dir(rel)] != nil {
			host, err = nil, nil // what is in the way goes, or is a conflict of its own
		} else {
			p.conflict(t, rel, err.Error(), true)
			return nil
		}
	}
	if err != nil {
		return err
	}
	switch {
	case ours == nil && host == nil:
	case ours == nil && p.opts.NoDelete:
		p.skip(t.workspacePath(rel), "was deleted, and NoDelete is set")
	case ours.same(host):
		p.mergePerm(t, rel, before, ours, host)
	case host.same(before), host == nil && t.export:
		p.put(t, rel, before, ours, host)
	case before == nil && t.leftOut.Skips(rel, host.Kind == filetree.Dir):
		p.skip(t.workspacePath(rel), "is on the host too, where the mount left it out")
	default:
		p.conflict(t, rel, conflictReason(before, ours, host), host != nil && host.Kind != filetree.File && host.Kind != filetree.Link)
		p.put(t, rel, before, ours, host)
	}
	return nil
}

func conflictReason(before, ours, host *side) string {
	switch {
	case host == nil:
		return "was changed in the workspace, and is gone from the host"
	case before == nil:
		return "was made in the workspace, and a " + host.Kind.String() + " on the host that is not the same"
	case host.Kind != before.Kind:
		return "is a " + host.Kind.String() + " on the host now, and a " + before.Kind.String() + " was mounted"
	case ours == nil:
		return "was deleted in the workspace, and changed on the host"
	}
	return "was changed in the workspace, and on the host"
}

// mergePerm plans the permissions of what has the right content already.
func (p *writeBackPlan) mergePerm(t *target, rel string, before, ours, host *side) {
	if ours.Kind == filetree.Link {
		return
	}
	perm := p.perm(t, rel, before, ours, host)
	if perm == host.Perm {
		return
	}
	want := host.Entry
	want.Perm = perm
	t.plan[rel] = &plannedStep{Step: applytree.Step{Path: rel, Want: &want, Expect: &host.Entry, Hash: ours.hash}, ours: ours}
}

// perm returns the wanted permissions of a path: ours if the workspace changed them, else the host's. Set-id bits
// never come from the workspace, and no file with another content keeps them.
func (p *writeBackPlan) perm(t *target, rel string, before, ours, host *side) fs.FileMode {
	perm := ours.Perm
	if before != nil && host != nil && before.Kind == ours.Kind && host.Kind == ours.Kind && before.Perm == ours.Perm {
		return host.Perm &^ lostSetID(ours, host)
	}
	if perm&setID != 0 && (before == nil || before.Perm&setID != perm&setID) {
		p.skip(t.workspacePath(rel), "is written without its set-id bits")
	}
	perm &^= setID
	if host != nil && host.Kind == ours.Kind {
		perm |= host.Perm & setID &^ lostSetID(ours, host)
	}
	return perm
}

// lostSetID are the bits that a file of the host loses because its content becomes another.
func lostSetID(ours, host *side) fs.FileMode {
	if ours.Kind == filetree.File && !ours.same(host) {
		return setID
	}
	return 0
}

func (p *writeBackPlan) put(t *target, rel string, before, ours, host *side) {
	step := &plannedStep{Step: applytree.Step{Path: rel}, ours: ours}
	if host != nil {
		step.Expect = &host.Entry
	}
	if ours != nil {
		want := filetree.Entry{
			Path: rel, Kind: ours.Kind, Size: ours.Size, Target: ours.Target, ModTime: p.now.UnixNano(),
			UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		}
		if host != nil && host.Kind == ours.Kind {
			want.UID, want.GID, want.Xattrs = host.UID, host.GID, host.Xattrs
		}
		want.Perm = 0o777
		if ours.Kind != filetree.Link {
			want.Perm = p.perm(t, rel, before, ours, host)
		}
		step.Want, step.Hash = &want, ours.hash
		if ours.Kind == filetree.File {
			step.Write = p.contentWriter(ours.file)
		}
	}
	t.plan[rel] = step
}

// keepFilledFolders takes folders out of the plan that have something on the host which stays.
func (p *writeBackPlan) keepFilledFolders(t *target) error {
	for _, rel := range slices.Backward(t.planned()) {
		step := t.plan[rel]
		if step.Expect == nil || step.Expect.Kind != filetree.Dir || step.Want != nil && step.Want.Kind == filetree.Dir {
			continue
		}
		stays, err := t.stays(rel)
		if err != nil {
			return err
		}
		if stays == "" {
			continue
		}
		reason := fmt.Sprintf("stays, because the host has %q in it", stays)
		delete(t.plan, rel)
		if step.Want == nil || p.opts.NoDelete {
			p.skip(t.workspacePath(rel), reason)
		} else {
			p.conflict(t, rel, "has become a "+step.Want.Kind.String()+" in the workspace; the folder "+reason, true)
		}
	}
	return nil
}

// stays names something in a folder of the host that the plan does not take away.
func (t *target) stays(rel string) (string, error) {
	inside, err := t.root.ReadDir(rel)
	if err != nil {
		return "", fmt.Errorf("workspace: reading the folder %q: %w", t.host(rel), err)
	}
	for _, e := range inside {
		if step := t.plan[e.Path]; step == nil || step.Want != nil {
			return path.Base(e.Path), nil
		}
	}
	return "", nil
}

// planned are the paths of the plan, folders before what is in them.
func (t *target) planned() []string {
	return slices.SortedFunc(maps.Keys(t.plan), func(a, b string) int { return Path{a}.Compare(Path{b}) })
}

// makeParents plans the folders that are needed for what is written and that the host does not have.
func (p *writeBackPlan) makeParents(t *target) error {
	for _, rel := range t.planned() {
		if t.plan[rel].Want == nil {
			continue
		}
		if err := p.makeParent(t, rel); err != nil {
			return err
		}
	}
	return nil
}

func (p *writeBackPlan) makeParent(t *target, rel string) error {
	for parent := path.Dir(rel); parent != "."; parent = path.Dir(parent) {
		if step := t.plan[parent]; step != nil {
			if step.Want == nil || step.Want.Kind != filetree.Dir {
				p.conflict(t, rel, fmt.Sprintf("cannot be written, because %q is not a folder on the host", parent), true)
			}
			return nil
		}
		host, err := t.look(parent)
		switch {
		case errors.Is(err, errBehind), err == nil && host != nil && host.Kind != filetree.Dir:
			p.conflict(t, rel, errBehind.Error(), true)
			return nil
		case err != nil:
			return err
		case host != nil:
			return nil
		}
		want := filetree.Entry{
			Path: parent, Kind: filetree.Dir, Perm: 0o755, ModTime: p.now.UnixNano(),
			UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()),
		}
		t.plan[parent] = &plannedStep{Step: applytree.Step{Path: parent, Want: &want}, parent: true}
	}
	return nil
}

// refuseTwice makes conflicts of paths of the host that two mounts lead to.
func (p *writeBackPlan) refuseTwice() {
	seen := map[string]string{}
	for _, t := range p.targets.all {
		for _, rel := range t.planned() {
			name, host := t.workspacePath(rel), t.host(rel)
			if other, twice := seen[host]; twice {
				p.conflict(t, rel, fmt.Sprintf("goes to %q on the host, and so does %q", host, other), true)
			}
			seen[host] = name
		}
	}
}

// refuseLost makes conflicts of folders that one mount takes away and another writes to.
func (p *writeBackPlan) refuseLost() {
	for _, t := range p.targets.all {
		for _, rel := range t.planned() {
			step := t.plan[rel]
			if step.Expect == nil || step.Expect.Kind != filetree.Dir || step.Want != nil && step.Want.Kind == filetree.Dir {
				continue
			}
			for _, other := range p.targets.all {
				if other != t && len(other.plan) > 0 && filetree.Holds(t.host(rel), other.dir) {
					p.conflict(t, rel, fmt.Sprintf("is gone from the workspace, and %q goes there on the host", other.mount), true)
				}
			}
		}
	}
}

// makes reports whether the plan makes a folder that the host does not have.
func (t *target) makes(dir string) bool {
	step := t.plan[dir]
	return step != nil && (step.Expect == nil || step.Expect.Kind != filetree.Dir)
}

// checkAccess finds folders that cannot be written to before anything is written.
func (p *writeBackPlan) checkAccess() error {
	for _, t := range p.targets.all {
		checked := map[string]bool{}
		for _, rel := range t.planned() {
			parent := path.Dir(rel)
			if checked[parent] || t.makes(parent) {
				continue
			}
			checked[parent] = true
			dir := t.host(parent)
			if t.above != nil {
				dir = t.above.Dir()
			}
			if err := canWrite(dir); err != nil {
				return advice.Wrap(fmt.Errorf("workspace: nothing was written back, because the folder %q cannot be written to: %w", dir, err),
					"change its permissions, or write to another Dir")
			}
		}
	}
	return nil
}
