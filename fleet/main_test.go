// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/ident"
)

// The tests share one embedded server and one cluster. Each has streams of its own.
var (
	testDir string

	embedded = sync.OnceValues(func() (*server.Server, error) {
		return fleet.StartServer(filepath.Join(testDir, "embedded"))
	})
	cluster = sync.OnceValues(startCluster)
	started []*server.Server
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		runChild(role)
		return
	}
	dir, err := os.MkdirTemp("", "drover-fleet")
	if err != nil {
		panic(err)
	}
	testDir = dir
	code := m.Run()
	if ns, err := embedded(); err == nil {
		started = append(started, ns)
	}
	for _, ns := range started {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// startCluster starts three servers on loopback that sync always.
func startCluster() ([]*server.Server, error) {
	routes := make([]string, 3)
	ports := make([]int, 3)
	for i := range routes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		routes[i] = "nats://" + l.Addr().String()
		l.Close()
	}
	var all []*server.Server
	for i := range routes {
		ns, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprintf("n%d", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: filepath.Join(testDir, fmt.Sprintf("n%d", i)), SyncAlways: true,
			Cluster: server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: ports[i]},
			Routes:  server.RoutesFromStr(strings.Join(routes, ",")),
		})
		if err != nil {
			return nil, err
		}
		ns.Start()
		all = append(all, ns)
	}
	started = append(started, all...)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, ns := range all {
			if ns.JetStreamIsLeader() && len(ns.JetStreamClusterPeers()) == len(all) {
				return all, nil
			}
		}
	}
	return nil, fmt.Errorf("the cluster has no leader")
}

func urlsOf(all []*server.Server) []string {
	var urls []string
	for _, ns := range all {
		urls = append(urls, ns.ClientURL())
	}
	return urls
}

// onEach runs a test on the embedded server and on the cluster. Open opens a further fleet on the same streams.
func onEach(t *testing.T, test func(t *testing.T, open func(t *testing.T) *fleet.Fleet)) {
	t.Helper()
	for _, kind := range []string{"embedded", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "cluster" && testing.Short() {
				t.Skip("-short: no cluster")
			}
			name := "t" + ident.NewUUID()
			test(t, func(t *testing.T) *fleet.Fleet { return openOn(t, kind, name) })
		})
	}
}

func openOn(t *testing.T, kind, name string) *fleet.Fleet {
	t.Helper()
	var f *fleet.Fleet
	var err error
	if kind == "cluster" {
		all, failed := cluster()
		if failed != nil {
			t.Fatal(failed)
		}
		f, err = fleet.Open(t.Context(), &fleet.Options{URLs: urlsOf(all), Name: name})
	} else {
		ns, failed := embedded()
		if failed != nil {
			t.Fatal(failed)
		}
		f, err = fleet.OpenIn(t.Context(), ns, &fleet.Options{Name: name})
	}
	if err != nil {
		t.Fatalf("opening a fleet: %v", err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return f
}

const (
	childRole = "FLEET_TEST_ROLE"
	childDir  = "FLEET_TEST_DIR"
)

// runChild is what this program does as a process of a test.
func runChild(role string) {
	o := &fleet.Options{Dir: os.Getenv(childDir), Name: os.Getenv(childName)}
	if urls := os.Getenv(childURLs); urls != "" {
		o.Dir, o.URLs = "", []string{urls}
	}
	f, err := fleet.Open(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	switch role {
	case "append":
		appendForever(f)
	case "work":
		w := chaosWorker(f)
		fmt.Println(w.Run(context.Background()))
	case "pay":
		runPayer(f)
	}
}
