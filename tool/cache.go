// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
)

// CacheOptions configures [Cached]. The zero value is ready to use.
type CacheOptions struct {
	// TTL is how long a result is good. Zero means for as long as it is kept.
	TTL time.Duration
	// MaxEntries bounds how many results are kept; the one not used for longest goes first. Zero
	// means 256.
	MaxEntries int
	// Key tells calls apart: those with the same key have the same result. An empty key leaves the
	// call uncached. Nil means a digest of the input that does not depend on the order of keys: set
	// it if the result depends on who calls.
	Key func(ctx context.Context, input json.RawMessage) string
	// CacheMutating allows to cache a tool that mutates or is dangerous: of equal calls all but the
	// first then do nothing.
	CacheMutating bool
}

// Cached makes a tool that remembers results. Only those that succeeded are kept; dry runs are not.
// All callers get the same value and must not change it.
//
// Equal calls at the same time run once, within the context of the first but without its end: the
// run is stopped when nobody waits for it any more. A failure of it is that of all who wait.
//
// The error refuses a tool that mutates or is dangerous, unless CacheMutating is set.
func Cached(t *Tool, o CacheOptions, opts ...Option) (*Tool, error) {
	if err := checkParts("Cached", []*Tool{t}); err != nil {
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
	if risk := cached.Risks() & (Mutates | Dangerous); risk != 0 && !o.CacheMutating {
		return nil, fmt.Errorf("tool: %q: Cached: its risk is %s, and a result from the cache does nothing; "+
			"set CacheMutating if that is what you want", t.Name, risk)
	}
	return cached, cached.Check()
}

type cache struct {
	CacheOptions
	part *Tool

	mu      sync.Mutex
	entries map[string]*list.Element // of *entry
	recent  list.List                // the one used last in front
	flights map[string]*flight
}

type entry struct {
	key    string
	result Result
	stored time.Time
}

// A flight is a run for which one or more callers wait.
type flight struct {
	done    chan struct{}
	result  Result // once done is closed
	waiting int    // under the cache's lock
	stop    context.CancelFunc
}

func (c *cache) run(ctx context.Context, input json.RawMessage, dry bool) (Result, error) {
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
		return Result{}, ctx.Err()
	}
}

// join gives a known result, or a flight to wait for.
func (c *cache) join(ctx context.Context, key string, input json.RawMessage) (Result, *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.lookupLocked(key); ok {
		return r, nil
	}
	f := c.flights[key]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		var running context.Context
		running, f.stop = context.WithCancel(&flightContext{context.WithoutCancel(ctx), ctx})
		c.flights[key] = f
		go c.fly(running, key, input, f)
	}
	f.waiting++
	return Result{}, f
}

func (c *cache) lookupLocked(key string) (Result, bool) {
	el := c.entries[key]
	if el == nil {
		return Result{}, false
	}
	e := el.Value.(*entry)
	if c.TTL > 0 && time.Since(e.stored) >= c.TTL {
		c.recent.Remove(el)
		delete(c.entries, key)
		return Result{}, false
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

func (c *cache) storeLocked(key string, r Result) {
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

// leave stops a flight for which nobody waits any more. Later callers begin another.
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

// A flightContext is the context of the first caller without its end. Once that caller has left, its
// call is over: nothing may be told about it any more.
type flightContext struct {
	context.Context
	caller context.Context
}

func (c *flightContext) Value(key any) any {
	if _, ok := key.(runningKey); ok && c.caller.Err() != nil {
		return nil
	}
	return c.Context.Value(key)
}
