// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// CacheOptions configures [Cached]. The zero value is ready to use.
type CacheOptions struct {
	// TTL is how long a result is good. Zero means for as long as it is kept.
	TTL time.Duration
	// MaxEntries bounds how many results are kept; the one not used for longest goes first. Zero means 256.
	MaxEntries int
	// Key tells calls apart: those with the same key have the same result. An empty key leaves the call uncached. Nil means
	// a digest of the input that does not depend on the order of keys: set it if the result depends on who calls.
	Key func(ctx context.Context, input json.RawMessage) string
	// CacheMutating allows to cache a tool that mutates or is dangerous: of equal calls all but the first then do nothing.
	CacheMutating bool
}

// Cached makes a tool that remembers results. Only those that succeeded are kept; dry runs are not.
// All callers get the same value and must not change it.
//
// Equal calls at the same time run once, within the context of the first but without its end: the
// run is stopped when no caller waits for it any more. A failure of it is that of all who wait.
//
// The error refuses a tool that mutates or is dangerous, unless CacheMutating is set.
func Cached(t *tool.Tool, o CacheOptions, opts ...tool.Option) (*tool.Tool, error) {
	if err := checkParts("Cached", []*tool.Tool{t}); err != nil {
		return nil, err
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = 256
	}
	if o.Key == nil {
		o.Key = func(_ context.Context, input json.RawMessage) string { return plainjson.Digest(input) }
	}
	c := &cache{CacheOptions: o, part: t, entries: map[string]*list.Element{}, flights: map[string]*flight{}}
	cached := wrap(t, opts, c.run)
	if risk := cached.Risks() & (tool.Mutates | tool.Dangerous); risk != 0 && !o.CacheMutating {
		return nil, fmt.Errorf("compose: %q: Cached: its risk is %s, and a result from the cache does nothing; "+
			"set CacheMutating if that is what you want", t.Name, risk)
	}
	return cached, cached.Check()
}

type cache struct {
	CacheOptions
	part *tool.Tool

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry
	recent  list.List                // the one used last in front
	flights map[string]*flight
}

type entry struct {
	key    string
	result tool.Result
	stored time.Time
}

// A flight is a run for which one or more callers wait.
type flight struct {
	done    chan struct{}
	result  tool.Result // once done is closed
	waiting int         // under the cache's lock
	stop    context.CancelFunc
}

func (c *cache) run(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
	key := c.Key(ctx, input)
	if dry || key == "" {
		return runPart(ctx, c.part, input, dry), nil
	}
	known, f := c.join(ctx, key, input)
	if f == nil {
		return known, nil
	}
	defer c.leave(key, f)
	select {
	case <-f.done:
		return f.result, nil
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
}

// join gives a known result, or a flight to wait for.
func (c *cache) join(ctx context.Context, key string, input json.RawMessage) (tool.Result, *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.lookupLocked(key); ok {
		return r, nil
	}
	f := c.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		var running context.Context
		running, f.stop = context.WithCancel(tool.Detach(ctx))
		c.flights[key] = f
		go c.fly(running, key, input, f)
	}
	f.waiting++
	return tool.Result{}, f
}

func (c *cache) lookupLocked(key string) (tool.Result, bool) {
	el := c.entries[key]
	if el == nil {
		return tool.Result{}, false
	}
	e := el.Value.(*entry)
	if c.TTL > 0 && time.Since(e.stored) >= c.TTL {
		c.recent.Remove(el)
		delete(c.entries, key)
		return tool.Result{}, false
	}
	c.recent.MoveToFront(el)
	return e.result, true
}

func (c *cache) fly(ctx context.Context, key string, input json.RawMessage, f *flight) {
	r := runPart(ctx, c.part, input, false)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.OK() {
		c.storeLocked(key, r)
	}
	if c.flights[key] == f {
		delete(c.flights, key)
	}
	f.result = r
	close(f.done)
}

func (c *cache) storeLocked(key string, r tool.Result) {
	if old := c.entries[key]; old != nil {
		c.recent.Remove(old)
	}
	c.entries[key] = c.recent.PushFront(&entry{key, r, time.Now()})
	if c.recent.Len() > c.MaxEntries {
		last := c.recent.Back()
		c.recent.Remove(last)
		delete(c.entries, last.Value.(*entry).key)
	}
}

// leave stops a flight without callers. Later callers begin another.
func (c *cache) leave(key string, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiting--
	if f.waiting > 0 {
		return
	}
	f.stop()
	if c.flights[key] == f {
		delete(c.flights, key)
	}
}
