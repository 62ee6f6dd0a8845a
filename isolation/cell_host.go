// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/launch"
)

// openIsolator adds no isolation of its own: the levels sandbox and host. Home, environment and gateway are those
// of every cell; the gateway is reached over the machine's loopback, and opens to its token alone.
type openIsolator struct {
	cell *Cell
	at   addresses
}

// raiseNone serves the gateway on loopback and, where something makes programs use it, the proxy.
func (c *Cell) raiseNone() (*openIsolator, error) {
	w := &openIsolator{cell: c, at: addresses{noProxy: []string{"127.0.0.1", "localhost", "::1"}}}
	var err error
	if w.at.gateway, err = c.serveHTTP(c.run.Serve); err != nil || c.level == LevelHost {
		return w, err
	}
	network := c.isolation.network()
	own := func(scheme string, port int) string {
		return scheme + "://" + netip.AddrPortFrom(loopback, uint16(port)).String()
	}
	if network.SOCKSProxyPort != 0 {
		w.at.socksURL = own("socks5h", network.SOCKSProxyPort)
	}
	if network.HTTPProxyPort != 0 {
		w.at.httpProxy = own("http", network.HTTPProxyPort)
		return w, nil
	}
	w.at.httpProxy, err = c.serveHTTP(c.proxy.Serve)
	return w, err
}

// serveHTTP serves on a port of the machine's loopback that the system picks, and returns its address.
func (c *Cell) serveHTTP(serve func(net.Listener) error) (string, error) {
	l, err := net.Listen("tcp4", netip.AddrPortFrom(loopback, 0).String())
	if err != nil {
		return "", advice.Wrap(fmt.Errorf("isolation: a listener for the CLI: %w", err),
			"see whether this program may open more files and ports (ulimit -n)")
	}
	c.serve(l, serve)
	return "http://" + l.Addr().String(), nil
}

func (w *openIsolator) addresses() addresses { return w.at }

func (w *openIsolator) listen(serve func(net.Listener) error) (url string, err error) {
	return w.cell.serveHTTP(serve)
}

func (w *openIsolator) spawn(ctx context.Context, cmd launch.Command) (launch.Process, error) {
	spawner := w.cell.host
	if spawner == nil {
		// As root, bubblewrap makes a /proc in which the sandbox of the CLI cannot make its own.
		spawner = &launch.HostSpawner{NoPIDNamespace: os.Geteuid() == 0 && w.cell.level == LevelSandbox}
	}
	p, err := spawner.Spawn(ctx, cmd)
	if err != nil {
		return nil, err
	}
	w.cell.onClose(func() error {
		err := p.Kill()
		p.Wait()
		return err
	})
	return p, nil
}
