// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// A timedModel is a scripted model that knows when it was asked for the first time.
type timedModel struct {
	*httptest.Server
	asked atomic.Int64 // in nanoseconds since 1970
}

func newTimedModel(t testing.TB) *timedModel {
	t.Helper()
	turn := script.Text("done")
	turn.Repeat = script.Forever
	model, err := script.NewModel(script.New(turn))
	if err != nil {
		t.Fatal(err)
	}
	m := &timedModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			m.asked.CompareAndSwap(0, time.Now().UnixNano())
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// A timedRun is one run of the real CLI.
type timedRun struct{ first, end, cpu time.Duration }

func (m *timedModel) launch(b *testing.B, o *claude.Options, i *isolation.Isolation) timedRun {
	b.Helper()
	m.asked.Store(0)
	cpu, began := cpuTime(b), time.Now()
	closeCell, inside := func() error { return nil }, func() time.Duration { return 0 }
	if i != nil {
		i.Started = func(p launch.Process) { inside = cpuInside(p) }
		cell, err := claudecell.Open(b.Context(), i, o, isolation.OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		closeCell = cell.Close
	}
	if err := ask(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	cpu -= inside() // bubblewrap does not hand it on
	if err := closeCell(); err != nil {
		b.Fatal(err)
	}
	return timedRun{time.Unix(0, m.asked.Load()).Sub(began), time.Since(began), cpuTime(b) - cpu}
}

// cpuInside reads the CPU time of a cell from its control group, zero without one.
func cpuInside(p launch.Process) func() time.Duration {
	groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", initOf(p)))
	return func() time.Duration {
		for line := range strings.Lines(string(groups)) {
			_, path, _ := strings.Cut(strings.TrimSpace(line), ":/")
			for _, pattern := range []string{"/sys/fs/cgroup/*/" + path + "/cpuacct.usage", "/sys/fs/cgroup/" + path + "/cpu.stat"} {
				if files, _ := filepath.Glob(pattern); len(files) > 0 && strings.Contains(path, "drover.") {
					return cpuIn(files[0])
				}
			}
		}
		return 0
	}
}

// cpuIn reads a file of version 1, in nanoseconds, or of version 2, whose first line is in microseconds.
func cpuIn(path string) time.Duration {
	content, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(content), "\n")
	unit := time.Nanosecond
	if value, ok := strings.CutPrefix(line, "usage_usec "); ok {
		line, unit = value, time.Microsecond
	}
	n, _ := strconv.ParseInt(line, 10, 64)
	return time.Duration(n) * unit
}

// initOf is the first process of a cell, as the host sees it.
func initOf(p launch.Process) int { return p.(interface{ Init() int }).Init() }

// ask has the CLI answer one prompt.
func ask(ctx context.Context, o *claude.Options) error {
	for _, err := range claude.Query(ctx, "go", o) {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkLaunch is what a cell adds to a run of the real CLI: bare and in a cell take turns. The first
// figures go to the first question to the model, the second ones to the end of everything.
//
//	go test -run '^$' -bench Launch -benchtime 20x ./isolation
func BenchmarkLaunch(b *testing.B) {
	requireCell(b)
	for name, files := range map[string]int{"empty workspace": 0, "workspace of 10000 files": 10_000} {
		b.Run(name, func(b *testing.B) {
			cli, model := claudetest.CLI(b), newTimedModel(b)
			fill(b, cli.Work, files, 100)
			options := func() *claude.Options {
				return &claude.Options{
					CLIPath: cli.Path, Dir: cli.Work, SettingSources: []string{}, StrictMCP: true,
					Env: claude.ExactEnv(cli.Env(model.URL)), Spawner: launch.HostSpawner{NoPIDNamespace: true},
				}
			}
			var bare, cell launches
			for b.Loop() {
				fresh(b, cli) // a cell has a new home each time
				bare.add(model.launch(b, options(), nil))
				o := options()
				o.Spawner = nil
				cell.add(model.launch(b, o, &isolation.Isolation{TempDir: cli.Root}))
			}
			report(b, bare, cell)
		})
	}
}

// fresh empties the folders that a CLI without a cell writes to.
func fresh(b *testing.B, cli *claudetest.RealCLI) {
	b.Helper()
	for _, dir := range []string{cli.Home, cli.Config, cli.Temp} {
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
	}
}

type launches struct{ first, end, cpu []time.Duration }

func (l *launches) add(one timedRun) {
	l.first, l.end, l.cpu = append(l.first, one.first), append(l.end, one.end), append(l.cpu, one.cpu)
}

func report(b *testing.B, bare, cell launches) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // the sum of both has no meaning
	for name, pair := range map[string][2][]time.Duration{
		"first": {bare.first, cell.first}, "end": {bare.end, cell.end}, "cpu": {bare.cpu, cell.cpu},
	} {
		b.ReportMetric(milliseconds(median(pair[0])), name+"-bare-ms")
		b.ReportMetric(milliseconds(median(differences(pair[1], pair[0]))), name+"-added-ms")
	}
}

// differences are those of neighbours, which the machine treated alike.
func differences(more, less []time.Duration) []time.Duration {
	found := make([]time.Duration, len(more))
	for n := range more {
		found[n] = more[n] - less[n]
	}
	return found
}
