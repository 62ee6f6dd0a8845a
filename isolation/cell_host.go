// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"net"
	"os"

	"github.com/drover-agents/drover/claude"
)

// openWalls are no walls of ours: the levels sandbox and host. Home, environment and gateway are those
// of every cell; the gateway is reached over the machine's loopback, and opens to its token alone.
type openWalls struct {
	cell *Cell
	at   addresses
}

// open serves the gateway and the proxy on loopback.
func (c *Cell) open() (*openWalls, error) {
	at := addresses{noProxy: []string{"127.0.0.1", "localhost", "::1"}}
	for _, served := range []struct {
		url   *string
		kind  string
		serve func(net.Listener) error
	}{{&at.gateway, "http", c.run.Serve}, {&at.httpProxy, "http", c.proxy.Serve}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		*served.url = served.kind + "://" + l.Addr().String()
		c.serve(l, served.serve)
	}
	if c.level == LevelHost { // nothing could make a program use a proxy
		at.httpProxy = ""
	}
	return &openWalls{cell: c, at: at}, nil
}

func (w *openWalls) addresses() addresses { return w.at }

func (w *openWalls) spawn(ctx context.Context, cmd claude.Command) (claude.Process, error) {
	spawner := w.cell.host
	if spawner == nil {
		// As root, bubblewrap makes a /proc in which the sandbox of the CLI cannot make its own.
		spawner = &claude.HostSpawner{NoPIDNamespace: os.Geteuid() == 0 && w.cell.level == LevelSandbox}
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
	w.cell.started(p)
	return p, nil
}
