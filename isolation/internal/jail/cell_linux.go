// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/internal/proc"
)

// nobody is a user of every Linux that owns nothing.
const nobody = 65534

// A Cell is a program that runs in a cell. Kill ends everything inside, Wait returns when all of it is gone.
type Cell struct {
	*proc.Process
	listeners []net.Listener
}

// Listeners are the sockets opened inside, in the order of the [Spec]. The caller closes them; they
// accept nothing more once the cell has ended.
func (c *Cell) Listeners() []net.Listener { return c.listeners }

// Start starts the program of s in a cell, and returns when it runs. The context covers the start
// only. If a cell cannot be had here at all, the error is an [UnsupportedError].
func Start(ctx context.Context, s Spec) (*Cell, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bwrap, err := findBwrap(s.Bwrap)
	if err != nil {
		return nil, err
	}
	s.Bwrap, s.Dir = bwrap, cmp.Or(s.Dir, "/")
	if err := s.check(); err != nil {
		return nil, err
	}
	s.guard()
	l := Launch{Listen: s.Listen, Limits: s.Limits, Path: s.Path, Args: s.Args}
	cell, err := start(ctx, s, MountsByHandle(ctx, s.Bwrap), Launch.Arguments, l)
	if err != nil && ctx.Err() == nil {
		err = cmp.Or(Supported(ctx, s.Bwrap), err) // the better answer, if no cell at all can be had
	}
	return cell, err
}

func findBwrap(path string) (string, error) {
	found, err := exec.LookPath(cmp.Or(path, "bwrap"))
	if err != nil {
		return "", &UnsupportedError{
			Reason: "bubblewrap was not found: " + err.Error(),
			Fix:    "install the package bubblewrap (0.8 or newer)",
		}
	}
	return filepath.Abs(found)
}

// start starts a checked spec. The helper gets the result of arguments.
func start(ctx context.Context, s Spec, byFD bool, arguments func(Launch) []string, l Launch) (*Cell, error) {
	from, err := s.openSources()
	if err != nil {
		return nil, err
	}
	defer from.close()
	if l.mounted, err = from.expected(s.Dir); err != nil {
		return nil, err
	}
	handoff, err := NewHandoff()
	if err != nil {
		return nil, err
	}
	defer handoff.Close()
	var out outfit
	defer out.close()
	b := proc.Bubblewrap{Path: s.Bwrap, Dir: "/", Env: []string{}, Confine: s.Confine}
	binds, err := s.drop(&b, from, &out, byFD)
	if err != nil {
		return nil, err
	}
	l.Host = out.hostPipe(&b)
	l.Report, l.hold = out.add(handoff.Child, nil), true
	helper := out.add(HelperFile())
	args := out.arguments(s, binds)
	if out.err != nil {
		_ = b.Held.Close()
		return nil, out.err
	}
	b.Files = out.files
	b.Args = []string{"--args", strconv.Itoa(args)}
	b.Command = append([]string{"/proc/self/fd/" + strconv.Itoa(helper)}, arguments(l)...)
	p, err := proc.StartBubblewrap(ctx, b)
	if err != nil {
		return nil, err
	}
	_ = handoff.Child.Close()
	handoff.held = func(namespace *os.File) error { return limitFiles(namespace, s.tempFolders(binds), b.Credential) }
	listeners, err := handoff.Receive(ctx, len(s.Listen))
	if err != nil {
		return nil, abandon(p, err)
	}
	return &Cell{Process: p, listeners: listeners}, nil
}

// drop sees to it that bubblewrap does not run as root, and returns the mounts as it finds them.
func (s Spec) drop(b *proc.Bubblewrap, from sources, out *outfit, byFD bool) ([]bind, error) {
	if os.Geteuid() != 0 {
		var binds []bind
		for _, m := range from {
			mount := bind{m.Source, m.target(), m.Writable, byFD}
			if byFD {
				mount.source = strconv.Itoa(out.add(dup(m.file)))
			}
			binds = append(binds, mount)
		}
		return binds, nil
	}
	id := cmp.Or(s.UID, nobody)
	st, err := newStage(from, s.Bwrap, owner{id, id})
	if err != nil {
		return nil, err
	}
	b.Credential = &proc.Credential{UID: id, GID: id}
	b.Prepare = st.set
	return st.binds(), nil
}

// abandon ends a cell whose program did not run, and adds its stderr.
func abandon(p *proc.Process, err error) error {
	_ = p.Kill()
	output, _ := io.ReadAll(io.LimitReader(p.Stderr(), 2048))
	status := p.Wait()
	_, _ = io.Copy(io.Discard, p.Stdout())
	_, _ = io.Copy(io.Discard, p.Stderr())
	if errors.Is(err, errNoReport) {
		err = fmt.Errorf("%w (exit %d): %s", err, status.Code, strings.TrimSpace(string(output)))
	}
	return fmt.Errorf("starting a cell: %w", err)
}

// An outfit collects the descriptors that bubblewrap gets.
type outfit struct {
	files []*os.File
	err   error // the first that occurred
}

// add adds a file and returns its number in bubblewrap.
func (o *outfit) add(f *os.File, err error) int {
	if err != nil {
		o.err = cmp.Or(o.err, err)
		return 0
	}
	o.files = append(o.files, f)
	return proc.FirstFile + len(o.files) - 1
}

// hostPipe adds the read end of a pipe whose other end b keeps open until the cell has ended, or this program.
func (o *outfit) hostPipe(b *proc.Bubblewrap) int {
	r, w, err := os.Pipe()
	b.Held = w
	return o.add(r, err)
}

// arguments writes bubblewrap's arguments to a file, as its command line can be read inside, and returns the file's number.
func (o *outfit) arguments(s Spec, binds []bind) int {
	filter := o.add(DataFile(Filter(s.Nested)))
	files := map[string]int{}
	for _, f := range s.files() {
		files[f.Path] = o.add(DataFile(f.Data))
	}
	args := strings.Join(s.arguments(binds, filter, files), "\x00") + "\x00"
	return o.add(DataFile([]byte(args)))
}

func (o *outfit) close() { closeAll(o.files) }
