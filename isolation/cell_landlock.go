// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/isolation/internal/jail"
	"github.com/drover-agents/drover/isolation/internal/landlock"
	"github.com/drover-agents/drover/launch"
)

// A landlockIsolator uses Landlock and a filter of system calls: the level landlock. The CLI is in the network of
// the machine, in which it reaches only the ports of what its cell serves.
type landlockIsolator struct {
	cell     *Cell
	mounts   []jail.Mount
	at       addresses
	ports    []uint16
	enforced landlock.Enforced
}

// Names of users and hosts, which many programs look up, beside what of the system a jail shows. A file
// that is there and cannot be read upsets OpenSSL more than one that is not there.
var landlockSystem = []string{"/proc", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl/openssl.cnf"}

// noSystemGit keeps git from /etc/gitconfig: it gives up if that is there and cannot be read.
const noSystemGit = "GIT_CONFIG_NOSYSTEM=1"

var landlockDevices = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty"}

// landlock prepares the isolation and opens the gateway and the proxy; it does not start the CLI.
func (c *Cell) landlock(p Program) (*landlockIsolator, error) {
	mounts, err := c.mounts(p)
	if err != nil {
		return nil, err
	}
	w := &landlockIsolator{cell: c, mounts: mounts}
	if err := w.serve(); err != nil {
		return nil, err
	}
	file, enforced, err := w.ruleset(mounts).Open()
	if err != nil {
		return nil, fmt.Errorf("isolation: %w", err)
	}
	w.enforced = enforced
	return w, file.Close()
}

// serve opens what the CLI reaches. The gateway has an address of its own, as in a jail: see gatewayAddress.
func (w *landlockIsolator) serve() error {
	network := w.cell.isolation.network()
	w.at.noProxy = w.cell.noProxy()
	model, err := w.listenOn(gatewayAddress.Addr(), w.cell.run.Serve)
	if err != nil {
		return err
	}
	own, err := w.listenOn(loopback, w.cell.proxy.Serve)
	if err != nil {
		return err
	}
	at := func(chosen int) string {
		if chosen == 0 {
			return own.String()
		}
		w.ports = append(w.ports, uint16(chosen))
		return netip.AddrPortFrom(loopback, uint16(chosen)).String()
	}
	w.at.gateway = "http://" + model.String()
	w.at.httpProxy, w.at.socksURL = "http://"+at(network.HTTPProxyPort), "socks5h://"+at(network.SOCKSProxyPort)
	return nil
}

// listenOn serves on a port that the system picks.
func (w *landlockIsolator) listenOn(on netip.Addr, serve func(net.Listener) error) (netip.AddrPort, error) {
	l, err := net.Listen("tcp4", netip.AddrPortFrom(on, 0).String())
	if err != nil {
		return netip.AddrPort{}, advice.Wrap(fmt.Errorf("isolation: a listener for the CLI: %w", err),
			"see whether this program may open more files and ports (ulimit -n)")
	}
	w.cell.serve(l, serve)
	at := l.Addr().(*net.TCPAddr).AddrPort()
	w.ports = append(w.ports, at.Port())
	return at, nil
}

func (w *landlockIsolator) addresses() addresses { return w.at }

func (w *landlockIsolator) listen(serve func(net.Listener) error) (url string, err error) {
	at, err := w.listenOn(gatewayAddress.Addr(), serve)
	return "http://" + at.String(), err
}

// ruleset is what stays possible with these mounts.
func (w *landlockIsolator) ruleset(mounts []jail.Mount) landlock.Ruleset {
	there := func(paths []string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
			_, err := os.Stat(path)
			return err != nil
		})
	}
	r := landlock.Ruleset{
		ReadOnly: append(jail.SystemPaths(), there(landlockSystem)...), Devices: there(landlockDevices), ConnectTCP: w.ports,
		BindAnyTCP: len(w.ports) > 0 && w.cell.isolation.network().AllowLocalBinding, // not where nothing is served
		Handles:    map[string]*os.File{},
	}
	for _, m := range mounts {
		if m.Handle != nil {
			r.Handles[m.Source] = m.Handle
		}
		if m.Writable {
			r.ReadWrite = append(r.ReadWrite, m.Source)
		} else {
			r.ReadOnly = append(r.ReadOnly, m.Source)
		}
	}
	return r
}

func (w *landlockIsolator) spawn(ctx context.Context, cmd launch.Command) (launch.Process, error) {
	program, mounts, err := w.cell.programOf(cmd, w.mounts)
	if err != nil {
		return nil, err
	}
	return w.start(ctx, cmd, program, mounts)
}

func (w *landlockIsolator) start(ctx context.Context, cmd launch.Command, program string, mounts []jail.Mount) (launch.Process, error) {
	kept, err := w.cell.confine(ctx, mounts)
	if err != nil {
		return nil, err
	}
	started, err := w.launch(ctx, cmd, program, mounts, kept)
	if err != nil {
		return nil, errors.Join(&launch.Error{Path: cmd.Path, Err: err, Hint: "run drover doctor, which tries the isolation"}, kept.release())
	}
	p := detached{isolated{started, kept}, w.cell.home.Path()}
	if err := kept.hold(started.PID(), p); err != nil {
		discard(p)
		return nil, err
	}
	return p, nil
}

// launch starts the helper, which becomes the program. The helper waits for its filter until it is in its control group.
func (w *landlockIsolator) launch(ctx context.Context, cmd launch.Command, program string, mounts []jail.Mount, kept *confinement) (*proc.Process, error) {
	kit, err := openKit(w.ruleset(mounts))
	defer kit.close()
	if err != nil {
		return nil, err
	}
	dir, err := openDir(mounts, cmd.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	l := jail.Launch{Report: 3, Ruleset: 4, Filter: 5, Dir: 7, Limits: kept.limitsByProcess(), Path: program, Args: cmd.Args}
	p, err := proc.Start(ctx, proc.Spec{
		Path: "/proc/self/fd/6", Args: l.Arguments(), Dir: "/", Env: append([]string{noSystemGit}, cmd.Env...), NoPIDNamespace: true,
		Files: []*os.File{kit.handoff.Child, kit.rules, kit.filter, kit.helper, dir},
	})
	if err != nil {
		return nil, err
	}
	if err = kept.add([]int{p.PID()}); err == nil {
		err = kit.release(ctx)
	}
	if err != nil {
		return nil, abandoned(p, err)
	}
	return p, nil
}

// openDir opens the working directory beneath its mount: the helper enters what was checked.
func openDir(mounts []jail.Mount, dir string) (*os.File, error) {
	in, ok := innermost(mounts, dir)
	if !ok || in.Handle == nil {
		return nil, advice.Wrap(fmt.Errorf("isolation: the working directory %q is in no folder that the CLI can use", dir),
			"use the one of the cell, or name its folder in Sandbox.WritablePaths")
	}
	rest, err := filepath.Rel(in.Target, dir)
	if err != nil {
		return nil, err
	}
	return openBeneath(in.Handle, rest)
}

// A kit is what the helper gets: the ruleset, itself, a socket to report on, and a pipe with its filter.
type kit struct {
	rules, helper, filter, gate *os.File
	handoff                     *jail.Handoff
}

// openKit opens everything. The kit must be closed, also after an error.
func openKit(r landlock.Ruleset) (*kit, error) {
	k := &kit{}
	var err error
	if k.rules, _, err = r.Open(); err != nil {
		return k, err
	}
	if k.helper, err = jail.HelperFile(); err != nil {
		return k, err
	}
	if k.handoff, err = jail.NewHandoff(); err != nil {
		return k, err
	}
	k.filter, k.gate, err = os.Pipe()
	return k, err
}

// release gives the helper its filter, and waits until the program runs.
func (k *kit) release(ctx context.Context) error {
	_ = k.handoff.Child.Close()
	_, err := k.gate.Write(jail.SharedNetworkFilter()) // a pipe has room for it
	_ = k.gate.Close()
	_, failed := k.handoff.Receive(ctx, 0)
	return cmp.Or(failed, err) // the helper knows better why it takes nothing
}

func (k *kit) close() {
	for _, f := range []*os.File{k.rules, k.helper, k.filter, k.gate} {
		_ = f.Close() // harmless for what was not opened, or is closed
	}
	if k.handoff != nil {
		k.handoff.Close()
	}
}

// abandoned ends a helper that did not become the program, and adds its output.
func abandoned(p *proc.Process, err error) error {
	_ = p.Kill()
	output, _ := io.ReadAll(io.LimitReader(p.Stderr(), 2048))
	_, _ = io.Copy(io.Discard, p.Stdout())
	_, _ = io.Copy(io.Discard, p.Stderr())
	p.Wait()
	return fmt.Errorf("behind Landlock: %w: %s", err, strings.TrimSpace(string(output)))
}

// limitsByProcess are the limits that the kernel keeps for each process. Without a control group it counts
// the processes of the user as a whole; those that are there already are added to the limit.
func (f *confinement) limitsByProcess() jail.Limits {
	l := jail.Limits{FileSize: f.limits.FileSize, CPU: f.limits.CPUTime, OpenFiles: f.limits.OpenFiles}
	if f.group == nil && f.limits.Processes > 0 {
		l.Processes = f.limits.Processes + userTasks()
	}
	return l
}
