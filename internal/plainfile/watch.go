// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Watch waits for changes of files in a folder, so that their reader need not look at them again and again. It must be closed.
//
// On Linux the system reports changes, to one goroutine for all watches of a program: a watch without changes costs nothing. The first
// change is reported at once; those within the next 10 ms are reported together. On other systems, and on file systems that report
// nothing (those of a network, for example), each watch looks at its files: every 20 to 80 ms, less often the longer they stay as they
// are, and every 320 ms if they have not changed at all since it began.
type Watch struct {
	dir     string
	names   []string
	changed chan struct{} // has room for one
	done    chan struct{}
	number  int32 // of the folder in the queue of the system
	looks   atomic.Bool
	looking sync.WaitGroup
}

// NewWatch watches the files of a folder that have these names, also before they are made. It reports each change behind the call, so a
// reader that calls it before its first look misses none.
func NewWatch(dir string, names ...string) *Watch {
	w := newWatch(dir, names)
	if !reported.add(w) {
		w.startLooking()
	}
	return w
}

func (w *Watch) startLooking() {
	w.looks.Store(true)
	w.looking.Go(w.look)
}

// Looks reports whether the files are looked at, because the system does not report their changes.
func (w *Watch) Looks() bool { return w.looks.Load() }

func newWatch(dir string, names []string) *Watch {
	return &Watch{dir: dir, names: names, changed: make(chan struct{}, 1), done: make(chan struct{})}
}

// Changed has a value when a file may have changed since the last one was received: it was written, replaced, made, removed or
// given another mode, or a program has closed it that could write it. Many changes may be one value, and a value may be for no change.
// Where files are looked at, there is one every 320 ms at the latest: nothing there reports that a program has closed a file.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Close ends the watch.
func (w *Watch) Close() {
	reported.remove(w)
	close(w.done)
	w.looking.Wait()
}

func (w *Watch) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// The pace of looks.
const (
	fastest = 20 * time.Millisecond
	slowest = 4 * fastest
	anyway  = 4 * slowest // without a change
)

// look looks at the files until the watch is closed.
func (w *Watch) look() {
	w.wake() // for a change between the end of reports and here
	last, pace, most, woken := w.state(), fastest, anyway, time.Now()
	for {
		select {
		case <-time.After(pace):
		case <-w.done:
			return
		}
		now := w.state()
		if pace = min(pace*5/4, most); now != last {
			pace, most = fastest, slowest
		}
		if now != last || time.Since(woken) >= anyway {
			w.wake()
			last, woken = now, time.Now()
		}
	}
}

// state is what a look can see of the files.
func (w *Watch) state() string {
	var all strings.Builder
	for _, name := range w.names {
		if info, err := os.Lstat(filepath.Join(w.dir, name)); err == nil {
			fmt.Fprintln(&all, info.Size(), info.ModTime().UnixNano(), info.Mode())
		} else {
			all.WriteString("-\n")
		}
	}
	return all.String()
}

func (w *Watch) has(name string) bool { return slices.Contains(w.names, name) }
