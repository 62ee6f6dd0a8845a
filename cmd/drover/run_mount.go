// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/internal/pathglob"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/workspace"
)

// mountFlags choose the paths of the host that are copied into a workspace, and the use of the copies.
type mountFlags struct {
	mounts          mountList
	writeBack, diff bool
	// incomplete writes back also what is not complete.
	incomplete bool
	// file is where mounts are named besides the flags. Empty means nowhere.
	file string
	// roots are the only folders to mount from. Nil means that every path was named on the command line.
	roots []string
	// only are globs of what is written back. Nil means all.
	only []string
}

func (f *mountFlags) check(json bool) error {
	switch {
	case f.writeBack && len(f.mounts) == 0:
		return advice.Wrap(usageError("--write-back brings changes back to what --mount has copied, and there is no --mount"),
			"name a folder to mount: --mount .")
	case f.incomplete && !f.writeBack:
		return advice.Wrap(usageError("--write-back-incomplete has no meaning without --write-back"), "add --write-back")
	case f.diff && len(f.mounts) == 0:
		return advice.Wrap(usageError("--diff compares with what --mount has copied, and there is no --mount"),
			"name a folder to mount: --mount .")
	case f.diff && json:
		return advice.Wrap(usageError("--diff prints a patch, and --json prints nothing but events"), "choose one")
	}
	return nil
}

// A mountList has the mounts of --mount, one for each use of the flag.
type mountList []workspace.HostMount

func (l *mountList) Type() string { return "host[:path]" }

func (l *mountList) String() string {
	var all []string
	for _, m := range *l {
		all = append(all, m.HostPath)
	}
	return strings.Join(all, ",")
}

func (l *mountList) Set(value string) error {
	host, path := cutMount(value)
	if strings.TrimSpace(host) == "" {
		return advice.Wrap(errors.New("it names no file or folder"), "give one, as in --mount src or --mount src:project/src")
	}
	*l = append(*l, workspace.HostMount{HostPath: host, MountPath: path})
	return nil
}

// rootsOfFlags returns the smallest folders that have the paths of the flags.
func (f *mountFlags) rootsOfFlags() []string {
	var roots []string
	for _, m := range f.mounts {
		root := realPath(m.HostPath)
		switch info, err := os.Stat(root); {
		case err != nil:
			continue // the mount reports a missing path
		case !info.IsDir():
			root = filepath.Dir(root)
		}
		roots = append(roots, root)
	}
	return roots
}

// mountGlobs returns globs of all files of a mount.
func mountGlobs(m workspace.HostMount) []string {
	at := path.Clean(filepath.ToSlash(m.MountPath))
	if m.MountPath == "" {
		host, err := filepath.Abs(m.HostPath) // "." has a name too
		if err != nil {
			host = m.HostPath
		}
		at = filepath.Base(host)
	}
	return pathglob.Within(at)
}

// cutMount cuts a mount at its last colon, which is not the one of a drive.
func cutMount(value string) (host, path string) {
	drive := len(filepath.VolumeName(value))
	if i := strings.LastIndexByte(value[drive:], ':'); i >= 0 {
		return value[:drive+i], value[drive+i+1:]
	}
	return value, ""
}

// A runWorkspace is the workspace of a run. Nil is that of a run in the current folder.
type runWorkspace struct {
	*workspace.Workspace
	flags mountFlags
	state string
	errs  io.Writer
}

// openWorkspace makes the workspace, if there are mounts. Paths of the command line may be mounted.
func (o *runOptions) openWorkspace(ctx context.Context, errs io.Writer) (*runWorkspace, error) {
	if len(o.files.mounts) == 0 {
		return nil, nil
	}
	for _, m := range o.files.mounts {
		if holdsHome(m.HostPath) && isolation.Level(o.isolation.level) != isolation.LevelHost {
			return nil, advice.Wrap(usageError("%s: %s holds your home, and the agent may read all that is mounted", o.files.name(), m.HostPath),
				"choose a folder below it")
		}
	}
	w, err := workspace.Open(ctx, &workspace.Options{Mounts: o.files.mounts, AllowedHostRoots: o.files.roots, AllowAnyRoot: o.files.roots == nil})
	if err != nil {
		if stopped := context.Cause(ctx); errors.Is(stopped, errTimeIsUp) {
			return nil, ending{exitLimit, advice.Wrap(fmt.Errorf("%w while %s was copying", stopped, o.files.name()),
				"give it more time (%s), or mount less", o.limitName("--timeout"))}
		}
		if errors.Is(err, workspace.ErrSecurity) || errors.Is(err, fs.ErrNotExist) {
			return nil, usageError("%s: %w", o.files.name(), err)
		}
		return nil, fmt.Errorf("%s: %w", o.files.name(), err)
	}
	return &runWorkspace{Workspace: w, flags: o.files, state: o.state, errs: errs}, nil
}

// name is the source of the mounts, for errors.
func (f *mountFlags) name() string { return cmp.Or(f.file, "--mount") }

// holdsHome reports whether a folder is the home of the user, or one above it.
func holdsHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		home = string(filepath.Separator) // all that is known is that it is below
	}
	rel, err := filepath.Rel(realPath(dir), realPath(home))
	return err == nil && filepath.IsLocal(rel)
}

// realPath is a path without links, as far as that is known.
func realPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// leave applies the flags to the changes of a run. ended is the result of the run, and kept names the run in the store of kept runs,
// or is empty.
func (p *runWorkspace) leave(ctx context.Context, ended error, kept string, out io.Writer) error {
	if p == nil {
		return ended
	}
	ctx = context.WithoutCancel(ctx) // a run that was stopped has changed files too
	p.reportRestored()
	complete := cameToItsEnd(ended) || p.flags.incomplete && isIncomplete(ended)
	problem := errors.Join(p.settle(ctx, complete, kept, out), p.close())
	switch {
	case problem == nil:
		return ended
	case cameToItsEnd(ended): // and this is what went wrong
		return problem
	}
	return errors.Join(ended, problem)
}

func (p *runWorkspace) settle(ctx context.Context, complete bool, kept string, out io.Writer) error {
	if !complete && (p.flags.diff || p.flags.writeBack) {
		return p.reportUnfinished(ctx, kept)
	}
	if p.flags.diff {
		if _, err := p.Patch(ctx, out, nil); err != nil {
			return p.kept(fmt.Errorf("--diff: %w", err))
		}
	}
	if p.flags.writeBack {
		return p.writeBack(ctx)
	}
	if !p.flags.diff {
		return p.reportDiscarded(ctx)
	}
	return nil
}

// reportUnfinished reports that the changes of a run without an end are neither printed nor written back, and where they are. A part
// of a patch would be a success to git apply.
func (p *runWorkspace) reportUnfinished(ctx context.Context, kept string) error {
	if n, err := p.changed(ctx); err == nil && n == 0 {
		return nil
	}
	var missing, next []string
	if p.flags.diff {
		missing = append(missing, "no patch was printed")
		if kept != "" {
			next = append(next, fmt.Sprintf("drover runs show %s --diff prints what it changed until then", kept))
		}
	}
	if p.flags.writeBack {
		missing = append(missing, "nothing was written back")
	}
	if p.flags.writeBack || kept == "" {
		if err := p.Keep(); err != nil {
			return advice.Wrap(err, "copy what the agent has done from %s, before another run removes it", p.Root())
		}
		next = append(next, fmt.Sprintf("look at what it has done in %s, and remove that folder, and %[1]s.store if it is there", p.Root()))
	}
	report(p.errs, advice.Wrap(fmt.Errorf("the run did not come to its end, so %s", strings.Join(missing, ", and ")), "%s", strings.Join(next, "; or ")))
	return nil
}

// cameToItsEnd reports whether the agent has done its work, also if some of its calls were denied.
func cameToItsEnd(err error) bool {
	known, ok := errors.AsType[ending](err)
	return err == nil || ok && known.code == exitDenied
}

// isIncomplete reports whether the agent has answered, and its completion check does not hold.
func isIncomplete(err error) bool {
	_, is := root.IncompleteResponse[prompt.JSON](err)
	return is
}

// writeBack writes the changes to the host. If that fails, the workspace is kept.
func (p *runWorkspace) writeBack(ctx context.Context) error {
	dir, err := p.state, error(nil)
	if dir == "" {
		dir, err = leftover.StateFolder()
	}
	if err != nil {
		return p.kept(advice.Wrap(fmt.Errorf("--write-back: %w", err), "set XDG_STATE_HOME to a folder that can be written to"))
	}
	result, err := p.WriteBack(ctx, &workspace.WriteBackOptions{State: filepath.Join(dir, "writeback"), Only: p.flags.only})
	if err != nil {
		return p.kept(fmt.Errorf("--write-back: %w", err))
	}
	fmt.Fprint(p.errs, safetext.Lines(strings.ReplaceAll(result.String(), ", because Git is not set", "")))
	return nil
}

// kept is an error after which the workspace stays.
func (p *runWorkspace) kept(err error) error {
	err = errors.Join(err, p.Keep())
	return fmt.Errorf("%w\n  what the agent has done is in %s, which stays until you remove it, and %[2]s.store if it is there", err, p.Root())
}

// reportDiscarded reports that changes are discarded, and the flags that keep them.
func (p *runWorkspace) reportDiscarded(ctx context.Context) error {
	n, err := p.changed(ctx)
	if err != nil {
		return p.kept(err)
	}
	if n > 0 {
		report(p.errs, advice.Wrap(fmt.Errorf("the changes of the agent in its workspace are gone with it (%d paths)", n),
			"add --write-back to have them on the host, or --diff to see them"))
	}
	return nil
}

func (p *runWorkspace) changed(ctx context.Context) (int, error) {
	changes, release, err := p.Changes(ctx)
	if err != nil {
		return 0, err
	}
	release()
	return len(changes), nil
}

// reportRestored reports the files that another process changed during a rollback. The events do not name the
// other side, and do not report interrupted commands.
func (p *runWorkspace) reportRestored() {
	for _, r := range p.Restored() {
		for _, c := range r.Conflicts {
			fmt.Fprintf(p.errs, "drover: %s: %s", safetext.Line(c.Path), safetext.Line(c.Reason))
			if c.Aside != "" {
				_ = p.Keep() // the other side is stored beside it, and is reported
				fmt.Fprintf(p.errs, "; the other side is in %s", safetext.Line(c.Aside))
			}
			fmt.Fprintln(p.errs)
		}
	}
}

func (p *runWorkspace) close() error {
	if err := p.Close(); err != nil {
		return fmt.Errorf("the workspace could not be removed: %w", err)
	}
	return nil
}
