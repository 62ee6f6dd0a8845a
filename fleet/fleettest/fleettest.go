// SPDX-License-Identifier: Apache-2.0

// Package fleettest starts NATS servers for tests of a fleet.
package fleettest

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Cluster is a cluster of NATS servers on loopback, in this process. They sync each write before they acknowledge it.
type Cluster struct{ servers []*server.Server }

// StartCluster starts a cluster of so many servers, each with a folder below dir, and waits until it has a leader.
func StartCluster(dir string, size int) (*Cluster, error) {
	routes, ports := make([]string, size), make([]int, size)
	for i := range routes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("fleettest: %w", err)
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		routes[i] = "nats://" + l.Addr().String()
		_ = l.Close() // its port is what is needed
	}
	c := &Cluster{}
	for i := range routes {
		ns, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprintf("n%d", i)), SyncAlways: true,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		})
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("fleettest: %w", err)
		}
		ns.Start()
		c.servers = append(c.servers, ns)
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, ns := range c.servers {
			if ns.JetStreamIsLeader() && len(ns.JetStreamClusterPeers()) == size {
				return c, nil
			}
		}
	}
	c.Close()
	return nil, errors.New("fleettest: the cluster has no leader")
}

// URLs are the addresses of the servers for clients.
func (c *Cluster) URLs() []string {
	var urls []string
	for _, ns := range c.servers {
		urls = append(urls, ns.ClientURL())
	}
	return urls
}

// Close stops the servers. Their folders stay.
func (c *Cluster) Close() {
	for _, ns := range c.servers {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
}
