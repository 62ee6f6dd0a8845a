// SPDX-License-Identifier: Apache-2.0

//go:build linux

package isolation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// A waiting is a cell in which a shell waits for its input.
type waiting struct {
	cell    *isolation.Cell
	process launch.Process
}

// end closes the cell although the shell waits.
func (w waiting) end() error {
	err := w.cell.Close()
	_, _ = io.Copy(io.Discard, w.process.Stdout())
	_, _ = io.Copy(io.Discard, w.process.Stderr())
	return err
}

// wait puts a shell into a new cell.
func wait(ctx context.Context, i *isolation.Isolation, dir string) (waiting, error) {
	o := claude.Options{Dir: dir}
	cell, err := claudecell.Open(ctx, i, &o, isolation.OpenOptions{})
	if err != nil {
		return waiting{}, err
	}
	p, err := o.Spawner.Spawn(ctx, launch.Command{Path: "/usr/bin/sh", Args: []string{"-c", "read line"}, Dir: dir, Env: o.Environ()})
	return waiting{cell, p}, err
}

// each does the work so many times at once.
func each(n int, work func(n int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() { errs[k] = work(k) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// BenchmarkManyCells is fifty cells at once: how long until all are there and until all are gone, what one
// takes of memory here and inside, and what it costs to watch them while they do nothing.
func BenchmarkManyCells(b *testing.B) {
	requireCell(b)
	const cells = 50
	temp := b.TempDir()
	dirs := make([]string, cells)
	for n := range dirs {
		dirs[n] = b.TempDir()
	}
	if err := runIn(b.Context(), keyed(temp), dirs[0], "/usr/bin/true"); err != nil { // what is made once
		b.Fatal(err)
	}
	var up, down, idle, here, inside []time.Duration // memory is in bytes
	for b.Loop() {
		found := make([]waiting, cells)
		before, began := memoryHere(), time.Now()
		err := each(cells, func(n int) (err error) {
			found[n], err = wait(b.Context(), keyed(temp), dirs[n])
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		up = append(up, time.Since(began))
		here = append(here, time.Duration(memoryHere()-before)/cells)
		inside = append(inside, time.Duration(memoryInside(found[0].process)))
		cpu := cpuTime(b)
		time.Sleep(2 * time.Second)
		idle = append(idle, (cpuTime(b)-cpu)/2)
		began = time.Now()
		if err := each(cells, func(n int) error { return found[n].end() }); err != nil {
			b.Fatal(err)
		}
		down = append(down, time.Since(began))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(milliseconds(median(up)), "up-ms")
	b.ReportMetric(milliseconds(median(down)), "down-ms")
	b.ReportMetric(milliseconds(median(idle))/10, "%core-watching")
	b.ReportMetric(float64(median(here))/1024, "KB-here/cell")
	b.ReportMetric(float64(median(inside))/1024, "KB-inside/cell")
}

// memoryHere is what this process has in use.
func memoryHere() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// memoryInside is what the processes of a cell have in memory, with what is shared divided.
func memoryInside(p launch.Process) (sum int64) {
	for _, pid := range proc.Descendants(initOf(p)) {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		for line := range strings.Lines(string(content)) {
			var kb int64
			if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kb); n == 1 {
				sum += kb << 10
			}
		}
	}
	return sum
}
