// SPDX-License-Identifier: Apache-2.0

package isolation

import (
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

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/jail"
	"github.com/drover-agents/drover/internal/proc"
)

// Where a CLI in a jail finds what its cell serves. The gateway has an address of its own, so that
// model calls can be kept from the proxy while "localhost" is not; the ports are ones that a server
// which an agent starts is unlikely to want.
var gatewayAddress = netip.MustParseAddrPort("127.0.0.2:47800")

const (
	httpProxyPort  = 47801
	socksProxyPort = 47802
)

var (
	httpProxyAddress  = netip.AddrPortFrom(loopback, httpProxyPort)
	socksProxyAddress = netip.AddrPortFrom(loopback, socksProxyPort)
	loopback          = netip.AddrFrom4([4]byte{127, 0, 0, 1})
)

// jailWalls are a jail: the level cell.
type jailWalls struct {
	cell   *Cell
	mounts []jail.Mount
}

// jail prepares the walls; nothing is started.
func (c *Cell) jail(o *claude.Options) (*jailWalls, error) {
	mounts, err := c.mounts(o)
	if err != nil {
		return nil, err
	}
	return &jailWalls{cell: c, mounts: mounts}, nil
}

// addresses implements walls. Where the machine's own loopback may be reached, "localhost" means that;
// otherwise it is the cell's.
func (w *jailWalls) addresses() addresses {
	direct := []string{gatewayAddress.Addr().String()}
	if !w.cell.isolation.network().AllowLocalhost {
		direct = append(direct, "127.0.0.1", "localhost", "::1")
	}
	return addresses{
		gateway:   "http://" + gatewayAddress.String(),
		httpProxy: "http://" + httpProxyAddress.String(), socksURL: "socks5h://" + socksProxyAddress.String(),
		noProxy: direct,
	}
}

// spawn implements walls.
func (w *jailWalls) spawn(ctx context.Context, cmd claude.Command) (claude.Process, error) {
	program, mounts, err := programOf(cmd, w.mounts)
	if err != nil {
		return nil, err
	}
	limits := w.cell.isolation.Limits.Resolved()
	spec := jail.Spec{
		Path: program, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env,
		Mounts: mounts, Listen: []netip.AddrPort{gatewayAddress, httpProxyAddress, socksProxyAddress},
		Limits: jail.Limits{
			Processes: limits.Processes, FileSize: limits.FileSize, CPU: limits.CPUTime, OpenFiles: limits.OpenFiles,
		},
		TempBytes: limits.TempBytes, Nested: w.cell.isolation.sandbox().Nested,
	}
	if spec.Nested {
		if err := probeNested(ctx, spec); err != nil {
			return nil, err
		}
	}
	return w.cell.start(ctx, spec)
}

// programOf is the CLI as it is found inside, with all that is to be mounted.
func programOf(cmd claude.Command, mounts []jail.Mount) (string, []jail.Mount, error) {
	real, err := filepath.EvalSymlinks(cmd.Path)
	if err != nil {
		return "", nil, &claude.LaunchError{Path: cmd.Path, Err: err, Hint: "give the path of a CLI that there is"}
	}
	if folder := replaceable(mounts, cmd.Path, real); folder != "" {
		return "", nil, &claude.LaunchError{
			Path: cmd.Path, Err: fmt.Errorf("it is in %s, where an agent could replace it", folder),
			Hint: "install the CLI elsewhere, or name one that the agent cannot write: Options.CLIPath, " + claude.EnvCLI,
		}
	}
	mounts = slices.Clone(mounts)
	add := func(m jail.Mount) {
		if !strings.HasPrefix(m.Source, "/usr/") && !covered(mounts, m) {
			mounts = append(mounts, m)
		}
	}
	add(jail.Mount{Source: real})
	for _, arg := range cmd.Args { // a CLI that is a script comes after its interpreter
		if strings.HasPrefix(arg, "-") || !filepath.IsAbs(arg) {
			break
		}
		if _, err := os.Stat(arg); err == nil {
			add(jail.Mount{Source: filepath.Dir(arg)})
		}
	}
	if config := variable(cmd.Env, claude.EnvConfigDir); config != "" {
		add(jail.Mount{Source: config, Writable: true}) // that of a resumed conversation is not the home's
	}
	return real, ordered(mounts), nil
}

// replaceable is the folder in which an agent could replace one of these files, or "".
func replaceable(mounts []jail.Mount, paths ...string) string {
	for _, m := range mounts {
		if m.Writable && slices.ContainsFunc(paths, func(path string) bool { return within(m.Source, path) || within(m.Target, path) }) {
			return m.Source
		}
	}
	return ""
}

// variable is the value of a variable in "NAME=value" entries.
func variable(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// start starts the CLI in its jail and serves what it finds there.
func (c *Cell) start(ctx context.Context, spec jail.Spec) (claude.Process, error) {
	kept := c.confine(spec.Mounts)
	spec.Confine = kept.add
	started, err := jail.Start(ctx, spec)
	if err != nil {
		return nil, errors.Join(&claude.LaunchError{Path: spec.Path, Err: err, Hint: "run drover doctor, which tries the walls"}, kept.release())
	}
	p := walled{started.Process}
	if err := kept.hold(started.Init(), p); err != nil {
		discard(started)
		return nil, err
	}
	network := c.isolation.network()
	for n, l := range started.Listeners() {
		serve := []func(net.Listener) error{
			c.run.Serve, c.proxyOr(network.HTTPProxyPort), c.proxyOr(network.SOCKSProxyPort),
		}[n]
		c.serve(l, func(l net.Listener) error {
			<-kept.watchdog.Ready()
			return serve(l)
		})
	}
	c.started(p)
	return p, nil
}

// discard ends a jail that nobody gets to see, and closes what belongs to it.
func discard(started *jail.Cell) {
	for _, l := range started.Listeners() {
		_ = l.Close() // nobody has used it
	}
	_ = started.Kill() // it may have ended
	_, _ = io.Copy(io.Discard, started.Stdout())
	_, _ = io.Copy(io.Discard, started.Stderr())
}

// started tells whoever wants to know of a process.
func (c *Cell) started(p claude.Process) {
	if c.isolation.Started != nil {
		c.isolation.Started(p)
	}
}

// walled makes a process behind walls one of the CLI's.
type walled struct{ *proc.Process }

// Wait implements [claude.Process].
func (w walled) Wait() claude.ExitStatus {
	status := w.Process.Wait()
	return claude.ExitStatus{Code: status.Code, Signal: status.Signal}
}
