// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/fleet/fleettest"
	"github.com/drover-agents/drover/internal/ident"
)

// The tests share one embedded server and one cluster. Each has streams of its own.
var (
	testDir string

	embedded = sync.OnceValues(func() (*server.Server, error) {
		return fleet.StartServer(filepath.Join(testDir, "embedded"))
	})
	cluster     = sync.OnceValues(startCluster)
	stopCluster = func() {}
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
		ns.Shutdown()
		ns.WaitForShutdown()
	}
	stopCluster()
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

func startCluster() (*fleettest.Cluster, error) {
	c, err := fleettest.StartCluster(testDir, 3)
	if err == nil {
		stopCluster = c.Close
	}
	return c, err
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
		servers, failed := cluster()
		if failed != nil {
			t.Fatal(failed)
		}
		f, err = fleet.Open(t.Context(), &fleet.Options{URLs: servers.URLs(), Name: name})
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
