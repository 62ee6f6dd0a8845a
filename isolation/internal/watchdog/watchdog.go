// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
)

// Options configures a [Watchdog]. A zero limit means no limit.
type Options struct {
	// Paths are the folders and files that the cell may write to. They are counted together, each once.
	Paths []string
	// MaxBytes and MaxFiles bound what is added to the folders after Start.
	MaxBytes, MaxFiles int64
	// Whole makes MaxBytes and MaxFiles bound all that is in the folders.
	Whole bool
	// NoSetID ends a cell whose folders contain a program with set-id bits that the cell may write, when they are
	// counted first and whenever they are counted again. A write through a mapping leaves these bits.
	// Other systems than Linux do not look.
	NoSetID bool
	// MinFree is how many bytes must stay free on the disk of each folder.
	MinFree int64
	// OtherFileSystems also counts what is mounted below the folders.
	OtherFileSystems bool

	// Processes returns the first processes of the cell. They and all their descendants are asked
	// for memory, CPU time and open files without a name. Nil means none.
	Processes func() []int
	// MaxMemory bounds the memory of the cell, in bytes.
	MaxMemory int64
	// Memory is how much memory the cell uses; false if not known. Nil means to ask the Processes.
	Memory func() (int64, bool)
	// MinMemory is how many bytes of the machine's memory must stay available. Much of what a cell
	// takes is in none of its processes: files in memory that no process has mapped, messages that wait in
	// sockets. Without a control group this is what bounds it. Systems other than Linux do not report it.
	MinMemory int64
	// MaxCPU bounds the CPU time of the cell.
	MaxCPU time.Duration
	// CPU is how much CPU time the cell has used; false if not known. Nil means to ask the Processes.
	CPU func() (time.Duration, bool)

	// Interval is the time between two looks. Zero means 250 ms. Free space and memory are looked at more often.
	Interval time.Duration
	// Exceeded is called for the first limit that is broken, from the watchdog's own goroutine, and
	// nothing is watched afterwards. It must not call Close.
	Exceeded func(Breach)

	space func(path string) space // tests make a disk full with it
	spare func() (int64, bool)    // and the memory
}

// glances is how often free space is looked at in an interval.
const glances = 5

// The shares of a core that looks may cost, as divisors of the time until the next one.
const (
	share       = 20
	urgentShare = 5
)

// A Watchdog watches one cell.
type Watchdog struct {
	opts        Options
	interval    time.Duration
	baseline    Measure
	spent       time.Duration // the highest CPU time seen; it never falls
	walk        *walk         // the look that is going on, or nil
	begun       []space       // room on the disk of each path when that look began
	room        []space       // the same for the last look that was completed
	rest        time.Time     // no look before that costs something
	urgentAfter time.Time     // no urgent look before
	cancel      context.CancelFunc
	done        chan struct{}
	stocked     chan struct{} // closed after the first count

	mu   sync.Mutex
	last Measure
}

// Start takes stock of the folders and then watches them until ctx ends or Close is called. It
// fails if a folder cannot be read, and with a [Breach] if a limit is broken already.
func Start(ctx context.Context, o Options) (*Watchdog, error) {
	w, err := newWatchdog(o)
	if err != nil {
		return nil, err
	}
	if b := w.takeStock(ctx); b != nil {
		return nil, *b
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go w.run(ctx)
	return w, nil
}

// Begin is [Start] without the wait until the folders are counted, which takes a second for some hundred thousand files.
// Wait for [Watchdog.Ready] before the cell may add to them: what is there when they are counted is free. A limit that is
// broken already is an error of Begin if it needs no counting, and goes to Exceeded otherwise.
func Begin(ctx context.Context, o Options) (*Watchdog, error) {
	w, err := newWatchdog(o)
	if err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	go func() {
		b := w.takeStock(ctx)
		if b == nil || ctx.Err() != nil {
			w.run(ctx)
			return
		}
		defer close(w.done)
		defer w.cancel()
		w.opts.Exceeded(*b)
	}()
	return w, nil
}

// Ready is closed when the folders are counted, or when there is no more need to.
func (w *Watchdog) Ready() <-chan struct{} { return w.stocked }

func newWatchdog(o Options) (*Watchdog, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	w := &Watchdog{opts: o, interval: cmp.Or(o.Interval, 250*time.Millisecond), done: make(chan struct{}), stocked: make(chan struct{})}
	w.opts.Paths = outermost(o.Paths)
	if w.opts.space == nil {
		w.opts.space = spaceOf
	}
	if w.opts.spare == nil {
		w.opts.spare = spareMemory
	}
	return w, w.checkStart()
}

// checkStart finds out that all limits can be watched, and that the cell can start at all.
func (w *Watchdog) checkStart() error {
	w.room = w.spaces()
	for i, room := range w.room {
		if w.opts.MinFree > 0 && !room.known {
			return advice.Wrap(fmt.Errorf("watchdog: the free space on the disk of %s cannot be measured", w.opts.Paths[i]),
				"leave out Options.MinFree, or use another disk")
		}
	}
	if w.opts.asksProcesses() {
		if _, err := UsageOf(); err != nil {
			return err
		}
	}
	if err := allReadable(w.opts.Paths); err != nil {
		return err
	}
	if b := cmp.Or(w.checkFree(w.room), w.checkSpare()); b != nil {
		return *b
	}
	return nil
}

// takeStock finds out what is there before the cell. If ctx ends, it is not complete.
func (w *Watchdog) takeStock(ctx context.Context) *Breach {
	defer close(w.stocked)
	count := newWalk(w.opts.OtherFileSystems, w.opts.Paths)
	defer count.close()
	count.advance(func() bool { return ctx.Err() == nil })
	w.mu.Lock()
	w.baseline, w.last = count.found, count.found
	w.mu.Unlock()
	return w.checkTree(count.found)
}

func (o *Options) asksProcesses() bool {
	return o.MaxMemory > 0 && o.Memory == nil || o.MaxCPU > 0 && o.CPU == nil
}

// outermost leaves out folders that are inside of others, which would count twice.
func outermost(paths []string) []string {
	var kept []string
	for _, path := range slices.Sorted(slices.Values(realPaths(paths))) { // the outer one comes first
		inside := func(outer string) bool {
			return path == outer || strings.HasPrefix(path, strings.TrimSuffix(outer, string(filepath.Separator))+string(filepath.Separator))
		}
		if !slices.ContainsFunc(kept, inside) {
			kept = append(kept, path)
		}
	}
	return kept
}

func realPaths(paths []string) []string {
	real := make([]string, len(paths))
	for i, path := range paths {
		real[i] = path
		if abs, err := filepath.Abs(path); err == nil {
			real[i] = abs
		}
		if to, err := filepath.EvalSymlinks(real[i]); err == nil {
			real[i] = to
		}
	}
	return real
}

func (o *Options) check() error {
	if o.Exceeded == nil {
		return advice.Wrap(errors.New("watchdog: Options.Exceeded is nil"), "give a function that ends the cell")
	}
	if min(o.MaxBytes, o.MaxFiles, o.MinFree, o.MinMemory, o.MaxMemory, int64(o.MaxCPU), int64(o.Interval)) < 0 {
		return advice.Wrap(errors.New("watchdog: a limit is negative"), "use zero for no limit")
	}
	if o.asksProcesses() && o.Processes == nil {
		return advice.Wrap(errors.New("watchdog: a limit on memory or CPU time, but no source for its use"), "set Options.Processes, or Memory and CPU")
	}
	return nil
}

// Close stops watching and waits until nothing is looked at any more and Exceeded has returned.
func (w *Watchdog) Close() {
	w.cancel()
	<-w.done
}

// Measure is what the last complete look found in the folders.
func (w *Watchdog) Measure() Measure {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *Watchdog) run(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	defer func() { w.walk.close() }()
	tick := time.NewTicker(max(w.interval/glances, 1))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if b := w.look(ctx); b != nil {
			if ctx.Err() == nil {
				w.opts.Exceeded(*b)
			}
			return
		}
	}
}

// look is one tick: first what costs nothing, then, if it is time for that, the processes and a slice of the tree.
func (w *Watchdog) look(ctx context.Context) *Breach {
	room, began := w.spaces(), time.Now()
	if b := cmp.Or(w.checkFree(room), w.checkSpare()); b != nil {
		return b
	}
	urgent := began.After(w.urgentAfter) && w.urgent(room)
	if !urgent && began.Before(w.rest) {
		return nil
	}
	defer func() { w.pause(began, urgent) }()
	if b := w.checkProcesses(); b != nil {
		return b
	}
	if w.opts.MaxBytes == 0 && w.opts.MaxFiles == 0 || !w.advance(ctx, room, urgent) {
		return nil
	}
	return w.confirm(ctx)
}

// pause sets when the next look may be, after one that began then.
func (w *Watchdog) pause(began time.Time, urgent bool) {
	took := time.Since(began)
	if urgent {
		w.urgentAfter = began.Add(urgentShare * took)
		w.rest = w.urgentAfter
		return
	}
	// A bit less than the whole: a slice that took just its time must not skip a tick.
	w.rest = began.Add(max(w.interval, share*took) * 9 / 10)
}

// advance goes on with the look at the tree for the time that one tick may cost, or to its end if it
// is urgent, and reports whether a limit is broken. It breaks off as soon as it is.
func (w *Watchdog) advance(ctx context.Context, room []space, urgent bool) (over bool) {
	until := time.Now().Add(w.interval / share)
	if w.walk == nil {
		w.begin(room)
	}
	complete := w.walk.advance(func() bool {
		over = w.checkTree(w.walk.found) != nil
		return !over && ctx.Err() == nil && (urgent || time.Now().Before(until))
	})
	over = over || w.checkTree(w.walk.found) != nil
	if complete {
		w.mu.Lock()
		w.last = w.walk.found
		w.mu.Unlock()
		w.room = w.begun
	}
	if complete || over {
		w.walk.close()
		w.walk = nil
	}
	return over
}

func (w *Watchdog) begin(room []space) {
	w.walk, w.begun = newWalk(w.opts.OtherFileSystems, w.opts.Paths), room
	if w.opts.Processes != nil {
		w.walk.unnamed(w.opts.Processes())
	}
}

// confirm looks once more from the beginning, without a pause.
func (w *Watchdog) confirm(ctx context.Context) *Breach {
	w.begin(w.spaces())
	defer func() { w.walk.close(); w.walk = nil }()
	w.walk.advance(func() bool { return ctx.Err() == nil && w.checkTree(w.walk.found) == nil })
	return w.checkTree(w.walk.found)
}

// urgent reports whether a disk lost as much as the folders may still take since the last complete
// look. Others may have taken it, so that is only a reason to look.
func (w *Watchdog) urgent(room []space) bool {
	grown := w.counted(w.Measure())
	bytesLeft, filesLeft := w.opts.MaxBytes-grown.Bytes, w.opts.MaxFiles-grown.Files
	for i, now := range room {
		before := w.room[i]
		if !now.known || !before.known {
			continue
		}
		if w.opts.MaxBytes > 0 && before.free-now.free > bytesLeft ||
			w.opts.MaxFiles > 0 && before.files-now.files > filesLeft {
			return true
		}
	}
	return false
}

// counted is the part of a measure that the limits are about.
func (w *Watchdog) counted(m Measure) Measure {
	if w.opts.Whole {
		return m
	}
	m.Bytes -= w.baseline.Bytes
	m.Files -= w.baseline.Files
	return m
}

func (w *Watchdog) spaces() []space {
	room := make([]space, len(w.opts.Paths))
	for i, path := range w.opts.Paths {
		room[i] = w.opts.space(path)
	}
	return room
}

func (w *Watchdog) checkFree(room []space) *Breach {
	for i, now := range room {
		if w.opts.MinFree > 0 && now.known && now.free < w.opts.MinFree {
			return &Breach{FreeSpace, w.opts.MinFree, now.free, w.opts.Paths[i]}
		}
	}
	return nil
}

func (w *Watchdog) checkSpare() *Breach {
	if w.opts.MinMemory == 0 {
		return nil
	}
	spare, known := w.opts.spare()
	if !known || spare >= w.opts.MinMemory {
		return nil
	}
	return &Breach{What: SpareMemory, Limit: w.opts.MinMemory, Found: spare}
}

func (w *Watchdog) checkTree(m Measure) *Breach {
	grown := w.counted(m)
	switch {
	case w.opts.NoSetID && m.SetID != "":
		return &Breach{What: SetID, Path: m.SetID}
	case w.opts.MaxBytes > 0 && grown.Bytes > w.opts.MaxBytes:
		return &Breach{Bytes, w.opts.MaxBytes, grown.Bytes, m.Largest}
	case w.opts.MaxFiles > 0 && grown.Files > w.opts.MaxFiles:
		return &Breach{Files, w.opts.MaxFiles, grown.Files, m.Fullest}
	}
	return nil
}

// checkProcesses asks the processes once for both limits.
func (w *Watchdog) checkProcesses() *Breach {
	var usage Usage
	var pids []int
	asked := false
	if w.opts.asksProcesses() {
		pids = w.opts.Processes()
		got, err := UsageOf(pids...)
		usage, asked = got, err == nil
	}
	memory := func() (int64, bool) { return usage.Memory, asked }
	if w.opts.Memory != nil {
		memory = w.opts.Memory
	} else if usage.Memory > w.opts.MaxMemory && w.opts.MaxMemory > 0 {
		memory = func() (int64, bool) { return exactMemory(pids), true }
	}
	cpu := func() (time.Duration, bool) { return usage.CPU, asked }
	if w.opts.CPU != nil {
		cpu = w.opts.CPU
	}
	return cmp.Or(w.checkMemory(memory), w.checkCPU(cpu))
}

func (w *Watchdog) checkMemory(memory func() (int64, bool)) *Breach {
	if w.opts.MaxMemory == 0 {
		return nil
	}
	used, known := memory()
	if !known || used <= w.opts.MaxMemory {
		return nil
	}
	return &Breach{What: Memory, Limit: w.opts.MaxMemory, Found: used}
}

func (w *Watchdog) checkCPU(cpu func() (time.Duration, bool)) *Breach {
	if w.opts.MaxCPU == 0 {
		return nil
	}
	if used, known := cpu(); known {
		w.spent = max(w.spent, used)
	}
	if w.spent <= w.opts.MaxCPU {
		return nil
	}
	return &Breach{What: CPUTime, Limit: int64(w.opts.MaxCPU), Found: int64(w.spent)}
}
