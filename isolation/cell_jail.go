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
	"github.com/drover-agents/drover/launch"
)

// Where a program in a jail finds what its cell serves. The gateway has an address of its own, so that model calls can be
// kept from the proxy while "localhost" is not; the ports are ones that a server which an agent starts is unlikely to want.
var gatewayAddress = netip.MustParseAddrPort("127.0.0.2:47800")

var (
	httpProxyAddress  = netip.AddrPortFrom(loopback, HTTPProxyPort)
	socksProxyAddress = netip.AddrPortFrom(loopback, SOCKSProxyPort)
	loopback          = netip.AddrFrom4([4]byte{127, 0, 0, 1})
)

// noTempLimit is more than any machine has in memory. For a jail zero means a default of its own.
const noTempLimit = 1 << 50

// A jailIsolator runs programs in a jail: the level cell.
type jailIsolator struct {
	cell   *Cell
	mounts []jail.Mount
	served []func(net.Listener) error // beside the gateway and the proxies
}

// jail prepares the isolation; it starts no program.
func (c *Cell) jail(p Program) (*jailIsolator, error) {
	mounts, err := c.mounts(p)
	if err != nil {
		return nil, err
	}
	mounts, c.shields = c.shielded(mounts)
	c.guarded = jail.Guardable(c.cli)
	return &jailIsolator{cell: c, mounts: mounts}, nil
}

// noProxy is what programs reach without a proxy. "localhost" is the machine's if that may be reached, else the cell's.
func (c *Cell) noProxy() []string {
	direct := []string{gatewayAddress.Addr().String()}
	if !c.isolation.network().AllowLocalhost {
		direct = append(direct, "127.0.0.1", "localhost", "::1")
	}
	return direct
}

func (w *jailIsolator) addresses() addresses {
	return addresses{
		gateway:   "http://" + gatewayAddress.String(),
		httpProxy: "http://" + httpProxyAddress.String(), socksURL: "socks5h://" + socksProxyAddress.String(),
		noProxy: w.cell.noProxy(),
	}
}

// maxServed is what a jail takes of listeners beside those of the gateway and the proxies.
const maxServed = jail.MaxListen - 3

// listen implements isolator. The listener is opened in each jail that is started.
func (w *jailIsolator) listen(serve func(net.Listener) error) (url string, err error) {
	if len(w.served) == maxServed {
		return "", advice.Wrap(fmt.Errorf("isolation: a cell serves at most %d handlers", maxServed),
			"put several behind one handler, each with a path of its own")
	}
	w.served = append(w.served, serve)
	return "http://" + servedAddress(len(w.served)-1).String(), nil
}

// servedAddress is where the nth further listener is: beside the gateway, to which no proxy leads.
func servedAddress(n int) netip.AddrPort {
	return netip.AddrPortFrom(gatewayAddress.Addr(), SOCKSProxyPort+1+uint16(n))
}

func (w *jailIsolator) spawn(ctx context.Context, cmd launch.Command) (launch.Process, error) {
	program, mounts, err := w.cell.programOf(cmd, w.mounts)
	if err != nil {
		return nil, err
	}
	spec := w.cell.jailSpec(program, cmd, mounts)
	network := w.cell.isolation.network()
	spec.Listen = []netip.AddrPort{gatewayAddress, httpProxyAddress, socksProxyAddress}
	servers := []func(net.Listener) error{w.cell.run.Serve, w.cell.proxyOr(network.HTTPProxyPort), w.cell.proxyOr(network.SOCKSProxyPort)}
	for n, serve := range w.served {
		spec.Listen, servers = append(spec.Listen, servedAddress(n)), append(servers, serve)
	}
	if spec.Nested {
		if err := probeNested(ctx, spec); err != nil {
			return nil, err
		}
	}
	spec.Guard = jail.Guardable(program)
	return w.cell.start(ctx, spec, servers...)
}

// jailSpec is a jail without a way out.
func (c *Cell) jailSpec(program string, cmd launch.Command, mounts []jail.Mount) jail.Spec {
	limits := c.isolation.Limits.resolved()
	return jail.Spec{
		Path: program, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env, Mounts: mounts,
		Limits: jail.Limits{
			Processes: limits.Processes, FileSize: limits.FileSize, CPU: limits.CPUTime, OpenFiles: limits.OpenFiles,
		},
		TempBytes: cmp.Or(limits.TempBytes, noTempLimit), Nested: c.isolation.sandbox().Nested,
	}
}

// programOf is the CLI as it is found inside, with all that is to be mounted.
func (c *Cell) programOf(cmd launch.Command, mounts []jail.Mount) (string, []jail.Mount, error) {
	real, err := filepath.EvalSymlinks(cmd.Path)
	if err != nil {
		return "", nil, &launch.Error{Path: cmd.Path, Err: err, Hint: "give the path of a CLI that there is"}
	}
	programs := append([]string{cmd.Path, real}, c.script(cmd)...)
	if folder := replaceable(mounts, programs...); folder != "" {
		return "", nil, &launch.Error{
			Path: cmd.Path, Err: fmt.Errorf("it is in %s, where an agent could replace it", folder),
			Hint: strings.TrimSuffix("install it elsewhere, or name one that the agent cannot write: "+c.pathSetting, ": "),
		}
	}
	mounts = slices.Clone(mounts)
	add := func(m jail.Mount) {
		if !strings.HasPrefix(m.Source, "/usr/") && !covered(mounts, m) {
			mounts = append(mounts, m)
		}
	}
	add(jail.Mount{Source: real})
	for _, script := range programs[2:] {
		folder := besides(script)
		add(jail.Mount{Source: leadsTo(folder), Target: folder})
	}
	if config := c.configDir(cmd); config != "" {
		add(ownMount(config)) // that of a resumed conversation may be elsewhere
	}
	return real, ordered(mounts), nil
}

// script is the CLI if it is a script that an interpreter runs: as it is named, and as it is found.
func (c *Cell) script(cmd launch.Command) []string {
	if c.cli == "" || c.cli == cmd.Path || !slices.Contains(cmd.Args, c.cli) {
		return nil
	}
	real, err := filepath.EvalSymlinks(c.cli)
	if err != nil {
		return nil // the interpreter reports it
	}
	return []string{c.cli, real}
}

// besides is the folder of a script, which needs what is beside it, unless that is more than an agent should see.
func besides(script string) string {
	if dir := filepath.Dir(script); !tooWide(dir) {
		return dir
	}
	return script
}

// replaceable is the folder in which an agent could replace one of these files, or "".
func replaceable(mounts []jail.Mount, paths ...string) string {
	for _, path := range paths {
		if m, ok := innermost(mounts, path); ok && m.Writable {
			return m.Source
		}
	}
	return ""
}

// innermost is the mount that a path is in.
func innermost(mounts []jail.Mount, path string) (found jail.Mount, ok bool) {
	for _, m := range mounts {
		at := cmp.Or(m.Target, m.Source)
		if within(at, path) && (!ok || len(at) > len(cmp.Or(found.Target, found.Source))) {
			found, ok = m, true
		}
	}
	return found, ok
}

// shielded adds mounts under which an agent cannot replace a CLI in a folder that it can write, such as one in the project.
// That part of the folder is read-only then: a mount cannot be moved, nor its content changed. A link right in the folder,
// or a script, which needs what is beside it, cannot be shielded; spawn refuses them.
func (c *Cell) shielded(mounts []jail.Mount) (_ []jail.Mount, folders []string) {
	real, err := filepath.EvalSymlinks(c.cli)
	if err != nil {
		return mounts, nil // spawn reports it
	}
	for _, path := range []string{c.cli, real} {
		m, ok := innermost(mounts, path)
		if !ok || !m.Writable || m.Handle == nil {
			continue
		}
		rest, err := filepath.Rel(m.Target, path)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(filepath.ToSlash(rest), "/")
		if shield, ok := c.shield(m, first); ok {
			mounts, folders = append(mounts, shield), append(folders, shield.Source)
		}
	}
	return ordered(mounts), folders
}

// shield is what is right in a mount, if it can be shielded.
func (c *Cell) shield(m jail.Mount, name string) (_ jail.Mount, ok bool) {
	handle, err := openBeneath(m.Handle, name)
	if err != nil {
		return jail.Mount{}, false
	}
	c.onClose(handle.Close)
	shield := jail.Mount{Source: filepath.Join(m.Source, name), Target: filepath.Join(m.Target, name), Handle: handle}
	info, err := handle.Stat()
	if link, err := os.Lstat(shield.Source); err != nil || link.Mode().Type() == os.ModeSymlink {
		return jail.Mount{}, false
	}
	return shield, err == nil && (info.IsDir() || info.Mode().IsRegular() && !isScript(handleName(handle)))
}

// isScript reports whether a program is read by another one.
func isScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return true
	}
	defer func() { _ = file.Close() }()
	begin := make([]byte, 4)
	_, err = io.ReadFull(file, begin)
	return err != nil || string(begin) != "\x7fELF"
}

func variable(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// start starts a program in its jail and serves on its listeners.
func (c *Cell) start(ctx context.Context, spec jail.Spec, servers ...func(net.Listener) error) (launch.Process, error) {
	kept, err := c.confine(ctx, spec.Mounts)
	if err != nil {
		return nil, err
	}
	spec.Confine = kept.add
	started, err := jail.Start(ctx, spec)
	if err != nil {
		return nil, errors.Join(&launch.Error{Path: spec.Path, Err: err, Hint: "run drover doctor, which tries the isolation"}, kept.release())
	}
	p := isolated{started.Process, kept}
	if err := kept.hold(started.Init(), p); err != nil {
		discard(p, started.Listeners()...)
		return nil, err
	}
	for n, l := range started.Listeners() {
		c.serve(l, func(l net.Listener) error {
			<-kept.watchdog.Ready()
			return servers[n](l)
		})
	}
	return p, nil
}

// discard ends a program that the caller does not get, and closes what belongs to it.
func discard(p launch.Process, listeners ...net.Listener) {
	for _, l := range listeners {
		_ = l.Close() // it was not used
	}
	_ = p.Kill() // it may have ended
	_, _ = io.Copy(io.Discard, p.Stdout())
	_, _ = io.Copy(io.Discard, p.Stderr())
}

// isolated makes an isolated process a [launch.Process].
type isolated struct {
	*proc.Process
	kept *confinement
}

// Kill implements [launch.Process].
func (w isolated) Kill() error {
	w.kept.killed.Store(true)
	return w.Process.Kill()
}

// Wait implements [launch.Process].
func (w isolated) Wait() launch.ExitStatus {
	status := w.Process.Wait()
	w.kept.ended(status)
	return launch.ExitStatus{Code: status.Code, Signal: status.Signal}
}
