// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/drover-agents/drover/record"
)

// A feed reads a run that is under way once for all who follow it: its log, and what its program says. Who follows is a watcher of it.
type feed struct {
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex
	run      record.Run // of a run that is over, its end
	watchers map[*watcher]bool
	entries  []feedEntry // the latest, as they are sent
	size     int         // of entries, in bytes
	dropped  int64       // the position of the last entry that was taken out of entries
	state    []byte      // what the program has said last, as it is sent
	over     bool
	err      error // why the log cannot be read further
}

type feedEntry struct {
	pos  int64
	text []byte
}

// The entries that a feed keeps. One who is further behind reads the log. A test has a smaller one.
var maxFeedEntries = 4096

const maxFeedBytes = 4 << 20

// feeds are those of the runs that are followed, by the folder of the run.
type feeds struct {
	mu  sync.Mutex
	all map[string]*feed
}

// join has a feed of a run wake w. leave ends that.
func (fs *feeds) join(run *record.Run, w *watcher) (f *feed, leave func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.all[run.Path]
	if f == nil {
		ctx, stop := context.WithCancel(context.Background())
		f = &feed{stop: stop, run: *run, watchers: map[*watcher]bool{}}
		if fs.all == nil {
			fs.all = map[string]*feed{}
		}
		fs.all[run.Path] = f
		f.running.Go(func() { f.readLog(ctx, *run) })
		f.running.Go(func() { f.readLive(ctx, run.Path) })
	}
	f.mu.Lock()
	f.watchers[w] = true
	f.mu.Unlock()
	return f, func() { fs.leave(run.Path, f, w) }
}

func (fs *feeds) leave(path string, f *feed, w *watcher) {
	fs.mu.Lock()
	f.mu.Lock()
	delete(f.watchers, w)
	last := len(f.watchers) == 0
	f.mu.Unlock()
	if last {
		delete(fs.all, path)
		f.stop()
	}
	fs.mu.Unlock()
	if last {
		f.running.Wait()
	}
}

func (f *feed) wakeLocked() {
	for w := range f.watchers {
		w.wake()
	}
}

func (f *feed) readLog(ctx context.Context, run record.Run) {
	var failed error
	for line, err := range run.Follow(ctx, 0) {
		if err != nil {
			failed = err
			break
		}
		f.add(feedEntry{line.Pos, sseText("entry", strconv.FormatInt(line.Pos, 10), line.Event)})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run, f.over, f.err = run, true, failed
	f.wakeLocked()
}

func (f *feed) add(e feedEntry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries = append(f.entries, e)
	f.size += len(e.text)
	for len(f.entries) > maxFeedEntries || f.size > maxFeedBytes {
		f.dropped = f.entries[0].pos
		f.size -= len(f.entries[0].text)
		f.entries = f.entries[1:]
	}
	f.wakeLocked()
}

func (f *feed) readLive(ctx context.Context, dir string) {
	live := make(chan frame)
	f.running.Go(func() { watchLive(ctx, dir, "/state", live) })
	for {
		select {
		case said := <-live:
			f.say(said)
		case <-ctx.Done():
			return
		}
	}
}

func (f *feed) say(said frame) {
	text := sseText(said.name, "", said.data)
	f.mu.Lock()
	defer f.mu.Unlock()
	if said.name == "state" {
		f.state = text
		f.wakeLocked()
		return
	}
	for w := range f.watchers {
		w.part(text)
	}
}

// A feedPart is what is new for one who follows.
type feedPart struct {
	texts  [][]byte // to be sent
	state  []byte   // the last state among what was sent
	pos    int64    // the last entry among it
	behind bool     // entries behind pos are in the log only
	over   bool     // the run is over, and texts are all that was left of it
	run    record.Run
	err    error
}

// next is what is new behind an entry and a state that were sent.
func (f *feed) next(w *watcher, pos int64, state []byte) (p feedPart) {
	parts := w.take()
	f.mu.Lock()
	defer f.mu.Unlock()
	p.pos, p.state = pos, f.state
	if string(f.state) != string(state) {
		p.texts = append(p.texts, f.state)
	}
	p.texts = append(p.texts, parts...)
	if p.behind = pos < f.dropped; p.behind {
		return p
	}
	from, _ := slices.BinarySearchFunc(f.entries, pos+1, func(e feedEntry, pos int64) int { return int(e.pos - pos) })
	for _, e := range f.entries[from:] {
		p.texts, p.pos = append(p.texts, e.text), e.pos
	}
	p.over, p.run, p.err = f.over, f.run, f.err
	return p
}
