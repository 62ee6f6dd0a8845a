// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation_test

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/isolation/internal/cgroup"
	"github.com/drover-agents/drover/isolation/internal/jail"
	"github.com/drover-agents/drover/isolation/internal/watchdog"
	"github.com/drover-agents/drover/launch"
)

// requireCell skips where there are no cells.
func requireCell(t testing.TB) {
	t.Helper()
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("no cell can be had here: %v", reasons)
	}
}

// keyed is an isolation that is paid for with a key that no server accepts.
func keyed(temp string) *isolation.Isolation {
	return &isolation.Isolation{APIKey: "fake-key", TempDir: temp, Host: isolation.Host{Environ: func() []string { return nil }}}
}

// runIn makes a cell, runs a program in it and removes the cell.
func runIn(ctx context.Context, i *isolation.Isolation, dir, program string, args ...string) error {
	o := claude.Options{Dir: dir}
	cell, err := claudecell.Open(ctx, i, &o, isolation.OpenOptions{})
	if err != nil {
		return err
	}
	p, err := o.Spawner.Spawn(ctx, launch.Command{Path: program, Args: args, Dir: dir, Env: o.Environ()})
	if err != nil {
		_ = cell.Close()
		return err
	}
	_, _ = io.Copy(io.Discard, p.Stdout())
	output, _ := io.ReadAll(p.Stderr())
	if status := p.Wait(); status.Code != 0 {
		_ = cell.Close()
		return fmt.Errorf("exit %d: %s", status.Code, output)
	}
	return cell.Close()
}

// fill puts so many empty files into a folder.
func fill(t testing.TB, dir string, files, perFolder int) string {
	t.Helper()
	for n := range files {
		sub := dir
		if perFolder > 0 {
			sub = filepath.Join(dir, fmt.Sprint(n/perFolder))
			if n%perFolder == 0 {
				if err := os.Mkdir(sub, 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("file-%d", n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// cpuTime is what this process and its ended children have computed. It is more exact than the clock where
// others work on the same machine.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// measure runs work again and again, and reports the median of its time and the mean of its CPU time.
func measure(b *testing.B, work func() error) {
	b.Helper()
	var times []time.Duration
	before := cpuTime(b)
	for b.Loop() {
		began := time.Now()
		if err := work(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	b.ReportMetric(milliseconds(cpuTime(b)-before)/float64(b.N), "cpu-ms/op")
	b.ReportMetric(milliseconds(median(times)), "median-ms/op")
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkCell is a whole cell around a program that does nothing: home, gateway, proxy, control group,
// jail, watchdog, and the end of all of them. What is around it should not matter.
func BenchmarkCell(b *testing.B) {
	requireCell(b)
	b.Run("bare", func(b *testing.B) {
		measure(b, func() error { return exec.Command("/usr/bin/true").Run() })
	})
	for _, around := range []struct {
		name        string
		files, temp int
	}{
		{"empty", 0, 0},
		{"workspace of 10000 files", 10_000, 0},
		{"temporary folder of 50000 entries", 0, 50_000},
	} {
		b.Run(around.name, func(b *testing.B) {
			temp, dir := fill(b, b.TempDir(), around.temp, 0), fill(b, b.TempDir(), around.files, 100)
			i := keyed(temp)
			measure(b, func() error { return runIn(b.Context(), i, dir, "/usr/bin/true") })
		})
	}
}

// BenchmarkCellParts is what a cell is made of, each part alone.
func BenchmarkCellParts(b *testing.B) {
	requireCell(b)
	for name, part := range map[string]func(*testing.B) func() error{
		"sweep of homes":            partSweepHomes,
		"home":                      partHome,
		"gateway run":               partGateway,
		"proxy":                     partProxy,
		"sweep of control groups":   func(*testing.B) func() error { return func() error { cgroup.Sweep(); return nil } },
		"control group":             func(*testing.B) func() error { return partGroup },
		"jail":                      func(b *testing.B) func() error { return partJail(b, 0, nil) },
		"jail, three mounts":        func(b *testing.B) func() error { return partJail(b, 3, nil) },
		"jail, mounts, group":       partJailInGroup,
		"watchdog, 10000 files":     partWatchdog,
		"authentication":            partAuthenticate,
		"question for the level":    func(b *testing.B) func() error { return func() error { isolation.Best(b.Context()); return nil } },
		"environment of the agent":  func(*testing.B) func() error { return partEnviron },
		"sweep of homes, 50000 any": partSweepMany,
	} {
		b.Run(name, func(b *testing.B) {
			measure(b, part(b))
		})
	}
}

func partSweepHomes(b *testing.B) func() error {
	temp := b.TempDir()
	return func() error { _, err := isolation.SweepHomes(temp, ""); return err }
}

func partSweepMany(b *testing.B) func() error {
	temp := fill(b, b.TempDir(), 50_000, 0)
	return func() error { _, err := isolation.SweepHomes(temp, ""); return err }
}

func partHome(b *testing.B) func() error {
	temp := b.TempDir()
	return func() error {
		home, err := claudecell.NewHome(temp, claudecell.HomeOptions{})
		if err != nil {
			return err
		}
		return home.Close()
	}
}

func partGateway(*testing.B) func() error {
	return func() error {
		run, err := gateway.Shared().Open(gateway.RunOptions{Upstream: gateway.Anthropic(gateway.APIKey("fake-key"))})
		if err != nil {
			return err
		}
		return run.Close()
	}
}

func partProxy(*testing.B) func() error {
	return func() error {
		p, err := proxy.New(proxy.Policy{}, nil)
		if err != nil {
			return err
		}
		return p.Close()
	}
}

func partGroup() error {
	group, err := cgroup.New("bench", cgroup.Limits{Memory: 1 << 33, Processes: 512})
	if err != nil {
		return nil // a machine without control groups has no such cost
	}
	return group.Close()
}

func partJail(b *testing.B, mounts int, confine func([]int) error) func() error {
	s := jail.Spec{Path: "/usr/bin/true", Dir: "/", Confine: confine}
	for n := range uint16(3) {
		s.Listen = append(s.Listen, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 47800+n))
	}
	for range mounts {
		s.Mounts = append(s.Mounts, jail.Mount{Source: b.TempDir(), Writable: true})
	}
	return func() error {
		cell, err := jail.Start(b.Context(), s)
		if err != nil {
			return err
		}
		cell.Wait()
		for _, l := range cell.Listeners() {
			_ = l.Close()
		}
		_, _ = io.Copy(io.Discard, cell.Stdout())
		_, _ = io.Copy(io.Discard, cell.Stderr())
		return nil
	}
}

func partJailInGroup(b *testing.B) func() error {
	group, err := cgroup.New("bench", cgroup.Limits{Memory: 1 << 33, Processes: 512})
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() {
		if err := group.Close(); err != nil {
			b.Error(err)
		}
	})
	return partJail(b, 3, func(pids []int) error { return group.Add(pids...) })
}

func partWatchdog(b *testing.B) func() error {
	dir := fill(b, b.TempDir(), 10_000, 100)
	return func() error {
		w, err := watchdog.Start(b.Context(), watchdog.Options{
			Paths: []string{dir}, MaxBytes: 1 << 40, MaxFiles: 1 << 40, Exceeded: func(watchdog.Breach) {},
		})
		if err != nil {
			return err
		}
		w.Close()
		return nil
	}
}

func partAuthenticate(b *testing.B) func() error {
	i := keyed(b.TempDir())
	return func() error { _, err := claudecell.Authenticate(i); return err }
}

func partEnviron() error {
	_, err := (&isolation.Isolation{}).BuildEnv(isolation.LevelCell)
	return err
}
