// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// A keptFile is what became of a path of a workspace, which need not be UTF-8.
type keptFile struct {
	Path    []byte      `json:"path"`
	Gone    bool        `json:"gone,omitzero"`
	Mode    fs.FileMode `json:"mode,omitzero"`
	ModTime time.Time   `json:"modTime,omitzero"`
	Target  []byte      `json:"target,omitempty"`
	Data    []byte      `json:"data,omitempty"` // the content, or Hash is that of an object
	Hash    string      `json:"hash,omitzero"`
}

// inlineFile bounds the contents that are not objects.
const inlineFile = 16 << 10

// files are those of the workspace of a run. What a call has changed is in the log before the record that the call has finished.
type files struct {
	l    *Log
	w    *workspace.Workspace
	last *workspace.Checkpoint // what the log has
}

// filesOf puts the files of earlier attempts into the workspace of a run. Without one whose files can be found it returns nil.
// Opened is how many workspaces the session had before this attempt: those of a worker that does not know yet that it has lost the
// run may be open too.
func filesOf[T any](ctx context.Context, a agent.Adapter, p *prompt.Prompt[T], o *drover.Options, j *journal, opened int) (f *files, closed func(), err error) {
	closed = func() {}
	w := o.Workspace
	if w == nil {
		described, err := p.Workspace(&prompt.RenderOptions{Session: o.Session})
		if err != nil {
			return nil, closed, err
		}
		w, _ = described.(*workspace.Workspace)
		if w == nil && described != nil {
			return nil, closed, nil
		}
	}
	if w == nil && workspacesOf(o.Session) > opened {
		w, _ = workspace.OfSession(o.Session)
	}
	if in, ok := a.(interface{ Dir() string }); w == nil && (o.Dir != "" || ok && in.Dir() != "") {
		return nil, closed, nil
	}
	if w == nil {
		if w, err = workspace.Open(ctx, &workspace.Options{Session: o.Session, Logger: j.l.f.log}); err != nil {
			return nil, closed, err
		}
		o.Workspace = w
		closed = func() {
			if err := w.Close(); err != nil {
				j.l.f.log.Warn("removing the workspace of a run", "run", j.l.id, "error", err)
			}
		}
	}
	if w.Tree() == nil {
		return nil, closed, nil
	}
	f = &files{l: j.l, w: w}
	if err := f.restore(ctx, j); err != nil {
		return nil, closed, fmt.Errorf("fleet: restoring the files of the run %s: %w", j.l.id, err)
	}
	f.last, err = w.Tree().Checkpoint(ctx)
	return f, closed, err
}

func workspacesOf(s *session.Session) int { return session.Query[workspace.Record](s).Len() }

// before keeps what has changed, if a call has finished. It is called by the one goroutine that appends.
func (f *files) before(records []session.Record) error {
	if f == nil || !slices.ContainsFunc(records, finishes) {
		return nil
	}
	if err := f.keep(f.l.f.ctx); err != nil {
		return fmt.Errorf("fleet: keeping the files of the run %s: %w", f.l.id, err)
	}
	return nil
}

func finishes(r session.Record) bool {
	var entry struct {
		Event struct {
			Type    event.Kind
			Payload session.ToolInvoked
		}
	}
	kind := session.ToolInvoked{}.EventKind()
	return bytes.Contains(r.Data, []byte(kind)) && json.Unmarshal(r.Data, &entry) == nil && entry.Event.Type == kind && entry.Event.Payload.Success()
}

func (f *files) keep(ctx context.Context) error {
	now, err := f.w.Tree().Checkpoint(ctx)
	if err != nil {
		return err
	}
	changes, err := f.w.Tree().Changes(f.last, now)
	if err != nil {
		return err
	}
	var all []keptFile
	for _, c := range changes {
		kept, err := f.kept(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		all = append(all, kept)
	}
	if len(all) > 0 {
		if err := f.l.note(kindFiles, all); err != nil {
			return err
		}
	}
	f.last.Release()
	f.last = now
	return nil
}

// kept makes what is kept of a change, with its content.
func (f *files) kept(ctx context.Context, c workspace.Change) (k keptFile, err error) {
	k = keptFile{Path: []byte(c.Path), Gone: c.After == nil}
	if k.Gone {
		return k, nil
	}
	k.Mode, k.ModTime, k.Target = c.After.Mode, c.After.ModTime, []byte(c.After.Target)
	if !k.Mode.IsRegular() {
		return k, nil
	}
	if c.After.Size > inlineFile {
		k.Hash = c.After.Hash
		if _, err := f.l.f.objects.GetInfo(ctx, contentName(f.l.id, k.Hash)); !errors.Is(err, jetstream.ErrObjectNotFound) {
			return k, err
		}
	}
	content, err := c.After.Open()
	if err != nil {
		return k, err
	}
	defer func() { _ = content.Close() }() // it was only read
	if c.After.Size <= inlineFile {
		k.Data, err = io.ReadAll(content)
		return k, err
	}
	_, err = f.l.f.objects.Put(ctx, jetstream.ObjectMeta{Name: contentName(f.l.id, k.Hash)}, content)
	return k, err
}

// contentName is that of the object with the content of a file, which belongs to a run as others of it do.
func contentName(run, hash string) string { return run + ".content." + hash }

// restore makes the workspace what it was, as far as calls have changed it.
func (f *files) restore(ctx context.Context, j *journal) error {
	kept, err := j.keptFiles(ctx)
	if err != nil || len(kept) == 0 {
		return err
	}
	root, err := os.OpenRoot(f.w.Root())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // a handle on a folder has nothing to lose
	paths := slices.Sorted(maps.Keys(kept))
	for _, p := range paths { // a folder before what is in it
		info, err := root.Lstat(p)
		if err != nil || info.IsDir() && kept[p].Mode.IsDir() {
			continue // nothing is there, or what belongs there
		}
		if err := root.RemoveAll(p); err != nil {
			return err
		}
	}
	for _, p := range paths {
		if err := f.put(ctx, root, p, kept[p]); err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(paths) { // a folder after what is in it
		if k := kept[p]; !k.Gone && (k.Mode.IsDir() || k.Mode.IsRegular()) {
			if err := errors.Join(root.Chmod(p, k.Mode.Perm()), root.Chtimes(p, k.ModTime, k.ModTime)); err != nil {
				return err
			}
		}
	}
	return nil
}

// put makes a path what was kept of it. Pipes are left out.
func (f *files) put(ctx context.Context, root *os.Root, p string, k keptFile) (err error) {
	if k.Gone {
		return nil
	}
	if err := root.MkdirAll(path.Dir(p), 0o700); err != nil {
		return err
	}
	switch k.Mode.Type() {
	case fs.ModeDir:
		return root.MkdirAll(p, 0o700)
	case fs.ModeSymlink:
		return root.Symlink(string(k.Target), p)
	case 0:
	default:
		return nil
	}
	content := io.Reader(bytes.NewReader(k.Data))
	if k.Hash != "" {
		object, err := f.l.f.objects.Get(ctx, contentName(f.l.id, k.Hash))
		if err != nil {
			return fmt.Errorf("the content of %q: %w", p, err)
		}
		defer func() { _ = object.Close() }() // it was only read
		content = object
	}
	file, err := root.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
